"use strict";
// One chart: SVG of curves with bands over two axes, and the point next to the pointer.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 72, RIGHT = 14, TOP = 12, BOTTOM = 52;
let W = 860, H = 480;

// A narrow chart has as many units as pixels, so that its text keeps its size.
function fitTo(pixels) {
  W = Math.min(Math.max(pixels, 280), 860);
  H = Math.max(Math.round(0.56 * W), 300);
}

// Black is the colour of text, which is white on a dark page.
const ink = (colour) => colour === "#000000" ? "currentColor" : colour;

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

// A scale from values to pixels. A logarithmic one shows positive values only. `view`: its ends, in
// logarithms for a logarithmic one; all values unless given.
function scale(values, log, from, to, view) {
  const shown = values.filter((value) => !log || value > 0);
  let low = Math.min(...shown), high = Math.max(...shown);
  if (!shown.length) [low, high] = log ? [1, 10] : [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const f = log ? Math.log10 : (value) => value;
  const pad = 0.03 * (f(high) - f(low)), [a, b] = view || [f(low) - pad, f(high) + pad];
  return {
    log, a, b,
    place: (pixel) => a + (pixel - from) / (to - from) * (b - a),
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
    element("line", {x1: at, x2: at, y1: TOP, y2: H - BOTTOM, stroke: "currentColor", opacity: 0.15}, svg);
    element("text", {x: at, y: H - BOTTOM + 18, "text-anchor": "middle"}, svg, text);
  }
  for (const [value, text] of ticks(y)) {
    const at = y.at(value);
    element("line", {x1: LEFT, x2: W - RIGHT, y1: at, y2: at, stroke: "currentColor", opacity: 0.15}, svg);
    element("text", {x: LEFT - 7, y: at + 4, "text-anchor": "end"}, svg, text);
  }
  element("path", {d: `M${LEFT} ${TOP}V${H - BOTTOM}H${W - RIGHT}`, fill: "none", stroke: "currentColor"}, svg);
  const middle = (TOP + H - BOTTOM) / 2;
  element("text", {x: (LEFT + W - RIGHT) / 2, y: H - 10, "text-anchor": "middle", "font-size": 14,
    class: "xlabel"}, svg, labels[0]);
  element("text", {transform: `translate(18 ${middle}) rotate(-90)`, "text-anchor": "middle",
    "font-size": 14, class: "ylabel"}, svg, labels[1]);
}

const line = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

// Draws curves [{label, colour, dash, points: {x, y, low, high}}]; returns {svg, x, y, targets, mark}.
// `view`: {x, y}, the ends of the axes, or nothing. Targets are the points that can be pointed at.
function drawChart(curves, axes, view) {
  const all = (name) => curves.flatMap((curve) => curve.points[name] || []);
  const x = scale(all("x"), axes.x.log, LEFT, W - RIGHT, view?.x);
  const y = scale([...all("y"), ...all("low"), ...all("high")], axes.y.log, H - BOTTOM, TOP, view?.y);
  const svg = element("svg", {viewBox: `0 0 ${W} ${H}`, xmlns: SVG, role: "img", "font-size": 12, fill: "currentColor",
    "font-family": "system-ui, sans-serif", "aria-label": `${axes.y.label} over ${axes.x.label}`, tabindex: 0});
  drawAxes(svg, x, y, [axes.x.label, axes.y.label]);
  const frame = element("clipPath", {id: "frame"}, svg);
  element("rect", {x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM}, frame);
  const inside = element("g", {"clip-path": "url(#frame)"}, svg), targets = [];
  for (const curve of curves) {
    const p = curve.points;
    const some = p.x.map((_, i) => i).filter((i) => x.has(p.x[i]) && y.has(p.y[i]));
    const place = (name) => some.filter((i) => y.has(p[name][i])).map((i) => [x.at(p.x[i]), y.at(p[name][i])]);
    if (p.low) {
      const d = line([...place("high"), ...place("low").reverse()]) + "Z";
      element("path", {d, fill: ink(curve.colour), opacity: 0.18, class: "band"}, inside);
    }
    element("path", {d: line(place("y")), fill: "none", stroke: ink(curve.colour), "stroke-width": 2,
      "stroke-dasharray": curve.dash, "stroke-linejoin": "round", class: "curve"}, inside);
    for (const i of some) {
      const at = [x.at(p.x[i]), y.at(p.y[i])];
      if (at[0] >= LEFT && at[0] <= W - RIGHT && at[1] >= TOP && at[1] <= H - BOTTOM)
        targets.push({curve, i, at, x: p.x[i], y: p.y[i]});
    }
  }
  const marks = element("g", {class: "marks"}, svg);
  // Marks points, with a line from the first to the second.
  const mark = (...points) => {
    marks.replaceChildren();
    if (points.length === 2)
      element("path", {d: line(points.map((point) => point.at)), stroke: "currentColor", "stroke-dasharray": "3 3"}, marks);
    for (const point of points)
      element("circle", {cx: point.at[0], cy: point.at[1], r: 4.5, fill: ink(point.curve.colour), stroke: "#fff",
        "stroke-width": 1.5}, marks);
  };
  return {svg, x, y, targets, mark};
}

// The target that is nearest to a place in the chart, within 60 units, or undefined.
function nearest(targets, px, py) {
  let best, least = 60 ** 2;
  for (const target of targets) {
    const far = (target.at[0] - px) ** 2 + (target.at[1] - py) ** 2;
    if (far < least) [best, least] = [target, far];
  }
  return best;
}

// The chart as a file, on white, with its legend below.
function picture(svg, curves) {
  const copy = svg.cloneNode(true), height = H + 20 * curves.length + 8;
  copy.querySelector(".marks").remove();
  for (const [key, value] of Object.entries({viewBox: `0 0 ${W} ${height}`, width: W, height, color: "#111"}))
    copy.setAttribute(key, value);
  copy.prepend(element("rect", {width: W, height, fill: "#fff"}));
  curves.forEach((curve, i) => {
    const at = H + 20 * i + 8;
    element("line", {x1: LEFT, x2: LEFT + 34, y1: at, y2: at, stroke: ink(curve.colour), "stroke-width": 2.5,
      "stroke-dasharray": curve.dash}, copy);
    element("text", {x: LEFT + 44, y: at + 4}, copy, curve.label);
  });
  return new XMLSerializer().serializeToString(copy);
}
