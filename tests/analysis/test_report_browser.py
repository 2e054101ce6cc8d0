"""The page of `mpisim plot` in a real browser, where there is one."""

import html
import json
import re
import shutil
import subprocess
from urllib.parse import parse_qsl

import numpy as np
import pytest

from mpisim.cli import main
from mpisim.runs.log.reader import read
from tests.comm.jobs import HANG_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
FLAGS += ("--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1240,1000")
ERRORS = """<head><script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
</script>"""
READER = """<script>
addEventListener("load", () => {{
  const found = {{}}, all = (query) => [...document.querySelectorAll(query)];
  const form = document.getElementById("choices");
  const choose = (name, value) => {{
    form[name].value = value;
    form[name].dispatchEvent(new Event("change"));
  }};
  const state = () => ({{
    curves: all("path.curve").map((path) => path.getAttribute("d").split("L").length),
    bands: all("path.band").length,
    labels: all(".xlabel, .ylabel").map((text) => text.textContent),
    ticks: all("#chart text").length,
  }});
  {actions}
  found.errors = errors;
  found.loaded = performance.getEntriesByType("resource").length;
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
}});
</script></body>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no browser (apt-get install chromium)"),
]


@pytest.fixture
def report(make_log, tmp_path):
    """A report about MARINA with two seeds and DIANA on mushrooms, and MARINA on a9a."""
    first = make_log(rate=0.2)
    make_log(rate=0.1, seed=2), make_log(method="diana", rate=0.05)
    config = read(first).attrs["config"].replace("mushrooms", "a9a")
    make_log(attrs={"config": config}, drop=("grad_norm_sq",))
    page = tmp_path / "report.html"
    assert main(["plot", str(tmp_path), "-o", str(page)]) == 0
    return page


def browse(page, *flags, choices=""):
    command = [BROWSER, *FLAGS, *flags, f"--user-data-dir={page.parent / 'profile'}"]
    address = page.as_uri() + (f"#{choices}" if choices else "")
    job = subprocess.run([*command, address], capture_output=True, text=True, timeout=HANG_SECONDS)
    assert job.returncode == 0, job.stderr
    return job.stdout


def after(page, actions, choices=""):
    """What the ``actions``, in JavaScript, put into ``found``."""
    text = page.read_text().replace("<head>", ERRORS)
    tried = page.with_name("tried.html")
    tried.write_text(text.replace("</body>", READER.format(actions=actions)))
    shown = browse(tried, "--dump-dom", choices=choices)
    [content] = re.findall(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    result = json.loads(html.unescape(content))
    assert result.pop("errors") == [] and result.pop("loaded") == 0
    return result


def test_axes_and_problems_can_be_chosen(report):
    seen = after(
        report,
        """
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
        """,
    )
    mushrooms = "non-convex loss on mushrooms, 5 workers"
    assert seen["names"] == ["non-convex loss on a9a, 5 workers", mushrooms]
    assert seen["visible"] == [True, False] and seen["then"] == [False, True]
    assert seen["first"]["curves"] == []  # on a9a, whose log has no grad_norm_sq
    assert len(seen["pairs"]) == 8 * 3
    for pair, state in seen["pairs"].items():
        assert len(state["curves"]) == 2 and state["bands"] == 1, pair
        assert min(state["curves"]) >= 50 and state["ticks"] >= 6, pair
    assert seen["pairs"]["bits_up loss"]["labels"] == ["bits sent per worker", "f(xᵏ)"]
    modelled = seen["pairs"]["seconds@1gbit grad_norm_sq"]["labels"]
    assert modelled == ["modelled seconds, 1gbit", "‖∇f(xᵏ)‖²"]
    assert len(seen["linear"]["curves"]) == 2 and seen["linear"]["ticks"] >= 6


def test_points_are_shown_and_compared_with_pointer_and_keys(report):
    seen = after(
        report,
        """
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
        """,
        choices="problem=1&x=round&y=grad_norm_sq",
    )
    hidden, text = seen["tip"]
    label, x, y = text.splitlines()
    assert not hidden and (label, x) == ("DIANA", "round: 50")
    assert float(y.rpartition(" ")[2]) == pytest.approx(np.exp(-2.5), rel=1e-3)
    assert seen["away"] and seen["ended"]
    first, last = seen["compared"].splitlines()[:3], seen["compared"].splitlines()[3:]
    assert first[0] == "DIANA" and last[0].startswith("MARINA") and first[1] == "round: 0"
    assert last[1] == "round: 50" and last[-3] == "second / first:"
    ratio = np.exp(-50 * 0.15)  # of the mean of log y over rates 0.1 and 0.2, to 1 at the start
    assert float(last[-1].rpartition(" ")[2]) == pytest.approx(ratio, rel=5e-3)
    lines = seen["keys"].splitlines()
    assert lines[:2] == ["DIANA", "round: 2"] and lines[3].startswith("MARINA")
    assert lines[4] == "round: 2"


def test_curves_can_be_hidden_and_links_keep_the_choices(report):
    seen = after(
        report,
        """
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
        """,
        choices="problem=1&x=seconds&y=loss&logy=0",
    )
    assert seen["start"]["labels"] == ["seconds", "f(xᵏ)"]
    assert [len(seen[name]["curves"]) for name in ("start", "fewer", "none", "all")] == [2, 1, 0, 2]
    assert seen["address"] == "#problem=1&x=seconds&y=mean_grad_norm_sq&logx=1&logy=1"
    words = dict(parse_qsl(seen["zoomed"][1:]))
    assert words["hide"] == "0" and len(words["view"].split(",")) == 4
    assert seen["shown"] == seen["again"] and len(seen["again"]["curves"]) == 1
    assert seen["full"] == seen["address"] + "&hide=0"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", seen["file"])
    assert texts[-1].startswith("MARINA") and 'fill="#fff"' in seen["file"]
