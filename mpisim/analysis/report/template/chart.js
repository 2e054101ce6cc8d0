"use strict";
// One chart: SVG of curves with bands over two axes, and the point next to the pointer.

const SVG = "http://www.w3.org/2000/svg";
const W = 860, H = 480, LEFT = 78, RIGHT = 14, TOP = 12, BOTTOM = 52;

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

const SUPER = {"-": "⁻", "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷",
  "8": "⁸", "9": "⁹"};
const power = (exponent) => "10" + [...String(exponent)].map((letter) => SUPER[letter]).join("");

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace(/\.?0+e/, "e");
  for (const [unit, factor] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (size >= factor) return Number((value / factor).toPrecision(4)) + unit;
  return String(Number(value.toPrecision(4)));
}

// A scale from values to pixels. A logarithmic one shows positive values only.
function scale(values, log, from, to) {
  const shown = values.filter((value) => !log || value > 0);
  let low = Math.min(...shown), high = Math.max(...shown);
  if (!shown.length) [low, high] = log ? [1, 10] : [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const f = log ? Math.log10 : (value) => value;
  const pad = 0.03 * (f(high) - f(low)), a = f(low) - pad, b = f(high) + pad;
  return {
    log, a, b,
    at: (value) => from + (f(value) - a) / (b - a) * (to - from),
    has: (value) => !log || value > 0,
  };
}

function ticks(axis) {
  const step = (span, count) => {
    const raw = span / count, ten = 10 ** Math.floor(Math.log10(raw));
    return ten * [1, 2, 5, 10].find((m) => m * ten >= raw);
  };
  const found = [], span = axis.b - axis.a;
  if (axis.log && span >= 2) {
    const by = Math.max(1, Math.ceil(span / 8));
    for (let e = Math.ceil(axis.a / by) * by; e <= axis.b; e += by) found.push([10 ** e, power(e)]);
  } else if (axis.log && span >= 0.5) {
    for (let e = Math.floor(axis.a); e <= axis.b; e++)
      for (const m of [1, 2, 5]) {
        const value = m * 10 ** e;
        if (Math.log10(value) >= axis.a && Math.log10(value) <= axis.b) found.push([value, short(value)]);
      }
  } else {
    const [low, high] = axis.log ? [10 ** axis.a, 10 ** axis.b] : [axis.a, axis.b];
    const by = step(high - low, 7);
    for (let i = Math.ceil(low / by); i * by <= high; i++) found.push([i * by, short(i * by)]);
  }
  return found;
}

function drawAxes(svg, x, y, labels) {
  for (const [value, text] of ticks(x)) {
    const at = x.at(value);
    element("line", {x1: at, x2: at, y1: TOP, y2: H - BOTTOM, stroke: "#e2e2e2"}, svg);
    element("text", {x: at, y: H - BOTTOM + 18, "text-anchor": "middle"}, svg, text);
  }
  for (const [value, text] of ticks(y)) {
    const at = y.at(value);
    element("line", {x1: LEFT, x2: W - RIGHT, y1: at, y2: at, stroke: "#e2e2e2"}, svg);
    element("text", {x: LEFT - 7, y: at + 4, "text-anchor": "end"}, svg, text);
  }
  element("path", {d: `M${LEFT} ${TOP}V${H - BOTTOM}H${W - RIGHT}`, fill: "none", stroke: "#333"}, svg);
  const middle = (TOP + H - BOTTOM) / 2;
  element("text", {x: (LEFT + W - RIGHT) / 2, y: H - 10, "text-anchor": "middle", "font-size": 14,
    class: "xlabel"}, svg, labels[0]);
  element("text", {transform: `translate(18 ${middle}) rotate(-90)`, "text-anchor": "middle",
    "font-size": 14, class: "ylabel"}, svg, labels[1]);
}

const line = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

// Draws curves [{label, colour, dash, points: {x, y, low, high}}]; returns {svg, nearest}.
function drawChart(curves, axes) {
  const all = (name) => curves.flatMap((curve) => curve.points[name] || []);
  const x = scale(all("x"), axes.x.log, LEFT, W - RIGHT);
  const y = scale([...all("y"), ...all("low"), ...all("high")], axes.y.log, H - BOTTOM, TOP);
  const svg = element("svg", {viewBox: `0 0 ${W} ${H}`, xmlns: SVG, role: "img", "font-size": 12,
    "font-family": "system-ui, sans-serif", "aria-label": `${axes.y.label} over ${axes.x.label}`});
  drawAxes(svg, x, y, [axes.x.label, axes.y.label]);
  const targets = [];
  for (const curve of curves) {
    const p = curve.points;
    const some = p.x.map((_, i) => i).filter((i) => x.has(p.x[i]) && y.has(p.y[i]));
    const place = (name) => some.filter((i) => y.has(p[name][i])).map((i) => [x.at(p.x[i]), y.at(p[name][i])]);
    if (p.low) {
      const d = line([...place("high"), ...place("low").reverse()]) + "Z";
      element("path", {d, fill: curve.colour, opacity: 0.18, class: "band"}, svg);
    }
    element("path", {d: line(place("y")), fill: "none", stroke: curve.colour, "stroke-width": 2,
      "stroke-dasharray": curve.dash, "stroke-linejoin": "round", class: "curve"}, svg);
    for (const i of some) targets.push({curve, i, at: [x.at(p.x[i]), y.at(p.y[i])]});
  }
  const dot = element("circle", {r: 4.5, stroke: "#fff", "stroke-width": 1.5, visibility: "hidden"}, svg);
  // The point next to a place in the chart, in its own units, or undefined; marks it.
  const nearest = (px, py) => {
    let best, least = 60 ** 2;
    for (const target of targets) {
      const far = (target.at[0] - px) ** 2 + (target.at[1] - py) ** 2;
      if (far < least) [best, least] = [target, far];
    }
    dot.setAttribute("visibility", best ? "visible" : "hidden");
    if (best) {
      dot.setAttribute("cx", best.at[0]);
      dot.setAttribute("cy", best.at[1]);
      dot.setAttribute("fill", best.curve.colour);
    }
    return best;
  };
  return {svg, nearest};
}
