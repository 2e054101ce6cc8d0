// The page: choices of problem, axes and curves, the tip under the pointer, sorted tables.

const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("choices"), tip = document.getElementById("tip");
const problems = [...document.querySelectorAll("section.problem")];
const chosen = {};  // {problem: set of hidden curves}
let chart;

function fill(select, options) {
  for (const [value, text] of options) select.add(new Option(text, value));
}

const axis = (name) => data[name].find((one) => one.key === form[name].value);

function hidden() {
  const own = data.sections[form.problem.value].curves;
  return chosen[form.problem.value] ??= new Set(own.flatMap((curve, i) => curve.shown ? [] : [i]));
}

// The curves of the chosen problem, each with its points on the chosen axes, or none.
const curves = () => data.sections[form.problem.value].curves.map((curve, i) =>
  ({...curve, i, points: curve.points[form.x.value]?.[form.y.value]}));

function draw() {
  const axes = {
    x: {...axis("x"), log: form.logx.checked},
    y: {...axis("y"), log: form.logy.checked},
  };
  chart = drawChart(curves().filter((curve) => curve.points && !hidden().has(curve.i)), axes);
  document.getElementById("chart").replaceChildren(chart.svg);
  chart.svg.addEventListener("pointermove", (event) => point(event, axes));
  chart.svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  problems.forEach((section, i) => { section.hidden = i !== Number(form.problem.value); });
  drawLegend();
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
    element("line", {x1: 0, x2: 34, y1: 5, y2: 5, stroke: curve.colour, "stroke-width": 2.5,
      "stroke-dasharray": curve.dash}, sample);
    label.append(box, sample, curve.label);
    if (!curve.points) {
      label.className = "none";
      label.title = "has nothing on these axes";
    }
    return label;
  }));
}

function showAll(all) {
  const own = data.sections[form.problem.value].curves;
  chosen[form.problem.value] = new Set(all ? [] : own.keys());
  draw();
}

function point(event, axes) {
  const box = chart.svg.getBoundingClientRect(), zoom = W / box.width;
  const found = chart.nearest((event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom);
  tip.hidden = !found;
  if (!found) return;
  const {curve, i} = found, p = curve.points;
  const lines = [curve.label, `${axes.x.label}: ${short(p.x[i])}`, `${axes.y.label}: ${short(p.y[i])}`];
  if (p.low) lines.push(`band of ${curve.runs} seeds: ${short(p.low[i])} to ${short(p.high[i])}`);
  tip.textContent = lines.join("\n");
  const right = event.pageX + 14 + tip.offsetWidth > document.documentElement.clientWidth;
  tip.style.left = `${right ? event.pageX - 14 - tip.offsetWidth : event.pageX + 14}px`;
  tip.style.top = `${event.pageY + 14}px`;
}

// The choices are in the address, so that a link shows the same figure.
function remember() {
  const words = new URLSearchParams();
  for (const name of ["problem", "x", "y"]) words.set(name, form[name].value);
  for (const name of ["logx", "logy"]) words.set(name, form[name].checked ? 1 : 0);
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
}

function sortBy(heading) {
  const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = new Intl.Collator("en", {numeric: true});
  const compare = (a, b) => {
    const [p, q] = [a, b].map((row) => row.cells[column]);
    const both = "value" in p.dataset && "value" in q.dataset;
    return both ? p.dataset.value - q.dataset.value : order.compare(p.textContent, q.textContent);
  };
  body.append(...[...body.rows].sort((a, b) => down ? compare(b, a) : compare(a, b)));
}

function save() {
  const link = document.createElement("a");
  const text = new XMLSerializer().serializeToString(chart.svg);
  link.href = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
  link.download = `${form.y.value}-${form.x.value}.svg`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

fill(form.problem, data.sections.map((section, i) => [i, section.name]));
document.getElementById("problems").hidden = data.sections.length < 2;
for (const name of ["x", "y"]) {
  fill(form[name], data[name].map((one) => [one.key, one.label]));
  form[name].addEventListener("change", () => { form["log" + name].checked = axis(name).log; draw(); });
  form["log" + name].addEventListener("change", draw);
}
form.problem.addEventListener("change", draw);
document.getElementById("all").addEventListener("click", () => showAll(true));
document.getElementById("none").addEventListener("click", () => showAll(false));
document.getElementById("save").addEventListener("click", save);
for (const heading of document.querySelectorAll(".sortable thead th"))
  heading.addEventListener("click", () => sortBy(heading));
addEventListener("hashchange", () => { recall(); draw(); });
recall();
draw();
