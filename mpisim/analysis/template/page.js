// The page: choices of problem, axes and curves, the tip under the pointer, sorted tables.

const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("choices"), tip = document.getElementById("tip");
const problems = [...document.querySelectorAll("section.problem")];
const fleet = document.getElementById("fleet"), fleetForm = fleet.querySelector("form");
const chosen = {};  // {problem: set of hidden curves}
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
let chart, view;  // view: {x, y}, the ends of the axes where the chart is zoomed
let current, anchor, held = false;  // the point that is told, the one it is compared with; stays

function fill(select, options) {
  for (const [value, text] of options) select.add(new Option(text, value));
}

const axis = (name) => data[name].find((one) => one.key === form[name].value);

const hiddenAtFirst = () =>
  data.sections[form.problem.value].curves.flatMap((curve, i) => curve.shown ? [] : [i]);
const hidden = () => chosen[form.problem.value] ??= new Set(hiddenAtFirst());

// The curves of the chosen problem, each with its points on the chosen axes, or none.
const curves = () => data.sections[form.problem.value].curves.map((curve, i) =>
  ({...curve, i, points: curve.points[form.x.value]?.[form.y.value]}));

const drawn = () => curves().filter((curve) => curve.points && !hidden().has(curve.i));
const axes = () => ({x: {...axis("x"), log: form.logx.checked}, y: {...axis("y"), log: form.logy.checked}});

function draw() {
  const focused = chart && chart.svg === document.activeElement;
  fitTo(document.getElementById("chart").clientWidth);
  chart = drawChart(drawn(), axes(), view);
  document.getElementById("chart").replaceChildren(chart.svg);
  for (const [name, action] of Object.entries({pointermove, pointerdown, pointerup, keydown, dblclick, pointerleave}))
    chart.svg.addEventListener(name, action);
  if (focused) chart.svg.focus();
  tell();
  problems.forEach((section, i) => { section.hidden = i !== Number(form.problem.value); });
  drawLegend();
  drawFleet();
  remember();
}

function drawLegend() {
  const legend = document.getElementById("legend");
  legend.replaceChildren(...curves().map((curve) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !hidden().has(curve.i);
    box.addEventListener("change", () => {
      if (box.checked) hidden().delete(curve.i); else hidden().add(curve.i);
      draw();
    });
    const sample = element("svg", {width: 34, height: 10});
    element("line", {x1: 0, x2: 34, y1: 5, y2: 5, stroke: ink(curve.colour), "stroke-width": 2.5,
      "stroke-dasharray": curve.dash}, sample);
    label.append(box, sample, curve.label);
    if (!curve.points) {
      label.className = "none";
      label.title = "has nothing on these axes";
    }
    return label;
  }));
}

// The settings on the chosen clients, with the deadline, until the target: the fastest first.
function drawFleet() {
  const own = data.sections[form.problem.value].fleets, names = ["fleet", "deadline", "target"];
  fleet.hidden = !own.tables;
  if (!own.tables) return;
  for (const name of names) {
    const select = fleetForm[name], before = select.value;
    select.replaceChildren();
    fill(select, own[name].map((text, i) => [i, text]));
    if (before < own[name].length && before !== "") select.value = before;
  }
  const at = names.reduce((place, name) => place * own[name].length + Number(fleetForm[name].value), 0);
  const rows = own.tables[at];
  fleet.querySelector("tbody").replaceChildren(...rows.map(([name, ...numbers]) => {
    const row = document.createElement("tr");
    row.insertCell().textContent = name;
    numbers.forEach((value, i) => {
      const cell = row.insertCell();
      cell.className = "number";
      cell.textContent = i === 3 ? `${short(100 * value)}%` : short(value);
    });
    return row;
  }));
  const [first, second] = rows, ratio = second && short(second[2] / first[2]);
  document.getElementById("winner").textContent = !first ? "No setting gets there." :
    `${first[0]} reaches the target first` + (second ? `, ${ratio} times as fast as ${second[0]}.` : ".");
}

function showAll(all) {
  const own = data.sections[form.problem.value].curves;
  chosen[form.problem.value] = new Set(all ? [] : own.keys());
  draw();
}

// The place of the pointer in the chart's units.
function place(event) {
  const box = chart.svg.getBoundingClientRect();
  return [(event.clientX - box.left) * W / box.width, (event.clientY - box.top) * W / box.width];
}

// Tells the values of a point, and what they are of the anchor's; without a point, nothing.
function tell(point, compared) {
  [current, anchor] = [point, compared];
  held = held && Boolean(compared);
  tip.hidden = !point;
  const both = compared && compared !== point ? [compared, point] : point ? [point] : [];
  chart.mark(...both);
  if (!point) return;
  const {x, y} = axes(), lines = both.flatMap((one) => {
    const {curve, i} = one, p = curve.points;
    const band = p.low ? [`band of ${curve.runs} seeds: ${short(p.low[i])} to ${short(p.high[i])}`] : [];
    return [curve.label, `${x.label}: ${short(one.x)}`, `${y.label}: ${short(one.y)}`, ...band];
  });
  if (both.length === 2)
    lines.push("second / first:", `${x.label}: ${short(point.x / compared.x)}`, `${y.label}: ${short(point.y / compared.y)}`);
  tip.textContent = lines.join("\n");
  const box = chart.svg.getBoundingClientRect(), zoom = box.width / W;
  const left = box.left + scrollX + zoom * point.at[0], wide = document.documentElement.clientWidth;
  const right = left + 14 + tip.offsetWidth > wide;
  tip.style.left = `${Math.max(right ? left - 14 - tip.offsetWidth : left + 14, 4)}px`;
  tip.style.top = `${box.top + scrollY + zoom * point.at[1] + 14}px`;
}

// Dragging from one point to another compares them; a click or Escape ends it.
function pointermove(event) {
  if (!held) tell(nearest(chart.targets, ...place(event)) || (anchor && current), anchor);
}

function pointerdown(event) {
  held = false;
  const found = nearest(chart.targets, ...place(event));
  tell(found, found);
}

function pointerup() {
  held = Boolean(anchor && anchor !== current);
  if (!held) tell(current);
}

function pointerleave() {
  if (!held) tell();
}

// Arrows go along a curve and to others, Enter compares, + - 0 zoom, with Shift arrows move the view.
function keydown(event) {
  const arrow = ARROWS[event.key];
  if (arrow && event.shiftKey) zoom(1, [arrow[0] / 4, -arrow[1] / 4]);
  else if (arrow) tell(next(...arrow), anchor);
  else if (event.key === "Enter" && current) [anchor, held] = [current, true];
  else if (event.key === "Escape") tell();
  else if (event.key === "+" || event.key === "=") zoom(0.5);
  else if (event.key === "-") zoom(2);
  else if (event.key === "0") zoom();
  else return;
  event.preventDefault();
}

// The next point along the curve, or the nearest in x of the next curve.
function next(along, across) {
  if (!current) return chart.targets[0];
  const order = [...new Set(chart.targets.map((target) => target.curve))];
  const curve = order[order.indexOf(current.curve) + across] || current.curve;
  const own = chart.targets.filter((target) => target.curve === curve);
  const far = (target) => Math.abs(target.at[0] - current.at[0]);
  if (across) return own.reduce((a, b) => far(b) < far(a) ? b : a);
  return own[own.indexOf(current) + along] || current;
}

// Shows `factor` of each axis, moved by shares of it and around a place in pixels; all without factor.
function zoom(factor, shift = [0, 0], around = [LEFT + (W - LEFT - RIGHT) / 2, TOP + (H - TOP - BOTTOM) / 2]) {
  const part = (one, i) => {
    const at = one.place(around[i]), move = shift[i] * (one.b - one.a);
    return [at + factor * (one.a - at) + move, at + factor * (one.b - at) + move];
  };
  view = factor && {x: part(chart.x, 0), y: part(chart.y, 1)};
  draw();
}

const dblclick = (event) => zoom(0.5, [0, 0], place(event));

// The choices are in the address, so that a link shows the same figure.
function remember() {
  const words = new URLSearchParams();
  for (const name of ["problem", "x", "y"]) words.set(name, form[name].value);
  for (const name of ["logx", "logy"]) words.set(name, form[name].checked ? 1 : 0);
  const some = [...hidden()].sort((a, b) => a - b).join(".");
  if (some !== hiddenAtFirst().join(".")) words.set("hide", some);
  if (view) words.set("view", [...view.x, ...view.y].map((end) => Number(end.toPrecision(6))));
  history.replaceState(null, "", "#" + words);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const name of ["problem", "x", "y"]) {
    const there = [...form[name].options].some((option) => option.value === words.get(name));
    if (there) form[name].value = words.get(name);
  }
  for (const name of ["x", "y"]) {
    const word = words.get("log" + name);
    form["log" + name].checked = word === null ? axis(name).log : word === "1";
  }
  if (words.has("hide")) chosen[form.problem.value] = new Set(words.get("hide").split(".").filter(Boolean).map(Number));
  const ends = (words.get("view") || "").split(",").map(Number);
  view = ends.length === 4 && ends.every(Number.isFinite) ? {x: ends.slice(0, 2), y: ends.slice(2)} : undefined;
}

function sortBy(heading) {
  const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = new Intl.Collator("en", {numeric: true});
  const compare = (a, b) => {
    const [p, q] = [a, b].map((row) => row.cells[column]);
    const [x, y] = [p, q].map((cell) => Number(cell.dataset.value ?? parseFloat(cell.textContent)));
    const texts = order.compare(p.textContent, q.textContent);  // also of nan and inf
    return isFinite(x) && isFinite(y) ? x - y || texts : texts;
  };
  body.append(...[...body.rows].sort((a, b) => down ? compare(b, a) : compare(a, b)));
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([picture(chart.svg, drawn())], {type: "image/svg+xml"}));
  link.download = `${form.y.value}-${form.x.value}.svg`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function chooseOther(name) {
  view = undefined;
  if (name) form["log" + name].checked = axis(name).log;
  draw();
}

const press = (id, action) => document.getElementById(id).addEventListener("click", action);

fill(form.problem, data.sections.map((section, i) => [i, section.name]));
document.getElementById("problems").hidden = data.sections.length < 2;
for (const name of ["x", "y"]) {
  fill(form[name], data[name].map((one) => [one.key, one.label]));
  form[name].addEventListener("change", () => chooseOther(name));
  form["log" + name].addEventListener("change", () => chooseOther());
}
form.problem.addEventListener("change", () => chooseOther());
fleetForm.addEventListener("change", drawFleet);
press("all", () => showAll(true));
press("none", () => showAll(false));
press("save", save);
press("in", () => zoom(0.5));
press("out", () => zoom(2));
press("whole", () => zoom());
for (const heading of document.querySelectorAll(".sortable thead th"))
  heading.addEventListener("click", () => sortBy(heading));
addEventListener("hashchange", () => { recall(); draw(); });
addEventListener("resize", draw);
recall();
draw();
