// What test_report does on the page, and what it reads there; // == begins a part.
// == errors
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
// == reader
addEventListener("load", () => {
  const found = {}, all = (query) => [...document.querySelectorAll(query)];
  const form = document.getElementById("choices");
  const choose = (name, value) => {
    form[name].value = value;
    form[name].dispatchEvent(new Event("change"));
  };
  const state = () => ({
    curves: all("path.curve").map((path) => path.getAttribute("d").split("L").length),
    bands: all("path.band").length,
    labels: all(".xlabel, .ylabel").map((text) => text.textContent),
    ticks: all("#chart text").length,
  });
  ACTIONS
  found.errors = errors;
  found.loaded = performance.getEntriesByType("resource").length;
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
// == axes
found.first = state();
found.names = [...form.problem.options].map((option) => option.text);
found.visible = all("section.problem").map((section) => !section.hidden);
choose("problem", 1);
found.pairs = {};
for (const x of form.x.options) for (const y of form.y.options) {
  choose("x", x.value); choose("y", y.value);
  found.pairs[x.value + " " + y.value] = state();
}
found.then = all("section.problem").map((section) => !section.hidden);
form.logx.click(); form.logy.click();
found.linear = state();
// == points
const svg = document.querySelector("#chart svg"), box = svg.getBoundingClientRect();
const end = svg.querySelector("path.curve").getPointAtLength(1e9);
const zoom = box.width / svg.viewBox.baseVal.width;
const move = (x, y) => svg.dispatchEvent(
  new PointerEvent("pointermove", {clientX: x, clientY: y, bubbles: true}));
move(box.left + zoom * end.x, box.top + zoom * end.y);
found.tip = [tip.hidden, tip.innerText];
move(box.left + box.width - 2, box.top + 2);
found.away = tip.hidden;
const at = (curve, end) => {
  const path = svg.querySelectorAll("path.curve")[curve];
  const point = path.getPointAtLength(end ? 1e9 : 0);
  return {clientX: box.left + zoom * point.x, clientY: box.top + zoom * point.y};
};
svg.dispatchEvent(new PointerEvent("pointerdown", at(0, false)));
svg.dispatchEvent(new PointerEvent("pointermove", at(1, true)));
svg.dispatchEvent(new PointerEvent("pointerup", at(1, true)));
move(box.left + box.width - 2, box.top + 2);
found.compared = tip.innerText;
const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key}));
press("Escape");
found.ended = tip.hidden;
["ArrowRight", "ArrowRight", "ArrowRight", "Enter", "ArrowDown"].forEach(press);
found.keys = tip.innerText;
// == legend
found.start = state();
document.querySelector("#legend input").click();
found.fewer = state();
document.getElementById("none").click();
found.none = state();
document.getElementById("all").click();
found.all = state();
choose("y", "mean_grad_norm_sq");
found.address = location.hash;
document.getElementById("in").click();
document.querySelector("#legend input").click();
found.zoomed = location.hash;
found.shown = state();
recall();
draw();
found.again = state();
found.file = picture(chart.svg, drawn());
document.getElementById("whole").click();
found.full = location.hash;
