"""`mpisim plot`: what is on the page, also in a real browser, where there is one."""

import html
import json
import random
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from mpisim.analysis.costs import Target
from mpisim.analysis.curves import Axis, over_seeds
from mpisim.analysis.fleet_table import fleet_costs
from mpisim.analysis.formatting import TEMPLATES
from mpisim.analysis.link_model import ModelledSeconds
from mpisim.analysis.report import decades
from mpisim.analysis.report_data import DEADLINES, MOST
from mpisim.cli import main
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import parse
from mpisim.runs.log.reader import read, read_all
from tests.comm.jobs import HANG_SECONDS

X = ["bits_up", "bits_total", "round", "oracle_calls", "seconds"]
MODELLED = ["seconds@10mbit", "seconds@100mbit", "seconds@1gbit"]


@pytest.fixture
def write(tmp_path):
    """write(*flags): the page about the logs that were made, and its data."""

    def page(*flags):
        out = tmp_path / "page" / "report.html"
        assert main(["plot", str(tmp_path), "-o", str(out), *flags]) == 0
        text = out.read_text()
        [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
        return text, json.loads(data)

    return page


def test_curves_are_those_of_plot(make_log, write):
    logs = read_all([make_log(rounds=900, rate=0.01 * s, seed=s) for s in (1, 2)])
    _, data = write()
    [section] = data["sections"]
    assert section["name"] == "non-convex loss on mushrooms, 5 workers"
    [curve] = section["curves"]
    assert curve["label"] == "MARINA + RandK (K = 10)" and curve["runs"] == 2
    assert [axis["key"] for axis in data["x"]] == X + MODELLED
    assert [axis["key"] for axis in data["y"]] == ["grad_norm_sq", "loss", "mean_grad_norm_sq"]
    modelled = ModelledSeconds("seconds", True, links=parse("100mbit"))
    for x in (Axis("bits_up", log=True), Axis("round", log=False), modelled):
        key = "seconds@100mbit" if x is modelled else x.name
        full, shown = over_seeds(logs, x, Axis("loss", log=True)), curve["points"][key]["loss"]
        assert len(shown["x"]) <= MOST + 2 and shown.keys() == {"x", "y", "low", "high"}
        for name, end in product(shown, (0, -1)):
            assert shown[name][end] == pytest.approx(getattr(full, name)[end], rel=1e-4)
        assert np.interp(shown["x"], full.x, full.y) == pytest.approx(shown["y"], rel=1e-3)


def test_a_log_with_its_own_clock_has_no_modelled_seconds(make_log, write):
    make_log("diana", columns={"simulated_seconds": np.arange(51.0)})
    assert [axis["key"] for axis in write()[1]["x"]] == X
    make_log()
    curves = {one["label"]: one["points"] for one in write()[1]["sections"][0]["curves"]}
    assert [bool(curves[name][MODELLED[0]]) for name in ("MARINA", "DIANA")] == [True, False]


def test_the_reader_chooses_clients_deadline_and_target(make_log, write):
    logs = read_all([make_log(rate=0.2), make_log("diana", rate=0.3)])
    _, plain = write()
    assert plain["sections"][0]["fleets"] == {}
    how = ["--fleet=1mbit", "--fleet=mlab:US", "--target=round>=10", "--target=round>=50"]
    shown = write(*how)[1]["sections"][0]["fleets"]
    assert shown["fleet"] == ["1mbit", "mlab:US"] and shown["deadline"][:2] == ["none", "0.1 s"]
    targets = [Target("round", k, rises=True) for k in (10, 50)]
    every = []
    for text, limit in product(shown["fleet"], DEADLINES):
        costs = fleet_costs(logs, [replace(Fleet(text), deadline=limit)], targets, 5)
        every += [[cost for cost in costs if cost.target == target] for target in targets]
    assert len(shown["tables"]) == len(every) == 2 * 5 * 2
    for rows, costs in zip(shown["tables"], every, strict=True):
        assert [row[2] for row in rows] == sorted(row[2] for row in rows)
        values = {name: values for name, *values in rows}
        assert values.keys() == {cost.name for cost in costs}
        for cost in costs:
            assert values[cost.name] == pytest.approx([*cost.levels, cost.left_out], rel=1e-3)


def test_a_problem_without_the_column_of_a_target_has_no_choices(make_log, write):
    text = read(make_log(columns={"test_accuracy": np.linspace(0, 1, 51)})).attrs["config"]
    make_log(attrs={"config": text.replace("mushrooms", "a9a"), "workers": 1})
    page, data = write("--fleet=1mbit", "--target=test_accuracy=0.5")
    assert page.count('<section class="problem">') == 2
    assert {section["name"]: bool(section["fleets"]) for section in data["sections"]} == {
        "non-convex loss on a9a, 1 worker": False,
        "non-convex loss on mushrooms, 5 workers": True,
    }


def test_nothing_is_loaded_and_what_scrolls_can_be_reached_with_the_keyboard(make_log, write):
    make_log()
    text, _ = write("--fleet=1mbit")
    boxes = re.findall(r'<div class="scroll"([^>]*)>', text)
    assert len(boxes) >= 3
    assert all(box.startswith(' tabindex="0" role="region" aria-label="') for box in boxes)
    assert "default-src 'none'" in text
    assert not re.search(r"\b(src|href)\s*=\s*[\"']|@import|url\((?!#)", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}


def test_texts_of_logs_are_no_html(make_log, write):
    evil = "</script><script>alert(1)</script>&"
    attrs = {"command": evil, "status": evil}
    make_log(compressor=f'name = "{evil}"', attrs=attrs), make_log(attrs=attrs)
    text, data = write("--title", evil)
    assert "<script>alert" not in text and text.count("</script>") == 2
    assert any(evil in curve["label"] for curve in data["sections"][0]["curves"])


def test_tables(make_log, write):
    machine = {"cpu": "a processor", "cores": 4}
    make_log(rate=0.2, attrs=machine), make_log(rate=0.1, seed=2, attrs=machine)
    make_log(method="diana", attrs=machine | {"status": "diverged"})
    text, _ = write("--target", "grad_norm_sq=1e-2", "--network", "5mbit")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    for cell in (
        *("MARINA", "grad_norm_sq ≤ 0.01", "35.5 ± 16.26", "15.36 ± 5.204", "1.278 ± 0.5855"),
        *("log1.h5", "diverged", "4 cores, a processor", "mpisim run e.toml", "1, 2"),
    ):
        assert cell in cells, cell
    assert "3 runs: 2 done, 1 diverged." in text and "36 ms" in text
    assert "modelled seconds, 5mbit" in text and "modelled seconds, 1gbit" not in text


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        *(([5.0, 0.02], [1.0, 0.1]), ([1.0, 1e-3], [0.1, 0.01, 1e-3])),
        ([1.0, 1e-33], [1e-1, 1e-4, 1e-7, 1e-9, 1e-12, 1e-15]),  # to the rounding errors of f
        *(([1.0, 0.5], []), ([np.nan, 0.0], [])),
    ],
)
def test_targets_are_powers_of_ten_that_a_run_reaches(make_log, values, levels):
    log = read(make_log(rounds=1, columns={"grad_norm_sq": np.array(values)}))
    assert [target.level for target in decades([log])] == pytest.approx(levels)


SORTED = """
const rows = TEXTS.map((value) => ({cells: [{dataset: DATASET, textContent: value}]}));
const append = (...sorted) => sorted.forEach((row) => console.log(row.cells[0].textContent));
const heading = {cellIndex: 0, getAttribute() {}, setAttribute() {}, parentNode: {cells: []}};
sortBy({...heading, closest: () => ({tBodies: [{rows, append}]})});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize(
    ("dataset", "texts"),
    [
        ("{value}", ["-4", "1e-07", "0.5", "2", "3", "inf", "nan", "nan"]),
        ("{}", ["0.0512", "0.25 × theory", "0.5 × theory", "9.76 ± 1", "1.2e+05", "a", "b"]),
    ],
)
def test_tables_are_sorted_also_with_runs_that_diverged(dataset, texts, seed):
    """Whatever the order before: numbers, then inf and nan."""
    code = TEMPLATES.joinpath("page.js").read_text()
    [function] = re.findall(r"^function sortBy.*?^}", code, re.DOTALL | re.MULTILINE)
    before = json.dumps(random.Random(seed).sample(texts, len(texts)))
    script = function + SORTED.replace("TEXTS", before).replace("DATASET", dataset)
    job = subprocess.run(["node", "-e", script], capture_output=True, text=True)
    assert job.stdout.splitlines() == texts, job.stderr


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
FLAGS += ("--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1240,1000")
_, *PARTS = re.split(
    r"^// == (\w+)\n", Path(__file__).with_name("browser.js").read_text(), flags=re.M
)
SCRIPTS = dict(zip(PARTS[::2], PARTS[1::2], strict=True))

in_a_browser = pytest.mark.skipif(BROWSER is None, reason="there is no browser (chromium)")


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


def after(page, part, choices=""):
    """What this part of browser.js puts into ``found``."""
    errors, reader = (f"<script>\n{SCRIPTS[name]}</script>" for name in ("errors", "reader"))
    text = page.read_text().replace("<head>", f"<head>{errors}")
    text = text.replace("</body>", reader.replace("ACTIONS", SCRIPTS[part]) + "</body>")
    tried = page.with_name("tried.html")
    tried.write_text(text)
    command = [BROWSER, *FLAGS, "--dump-dom", f"--user-data-dir={page.parent / 'profile'}"]
    command.append(tried.as_uri() + (f"#{choices}" if choices else ""))
    job = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert job.returncode == 0, job.stderr
    [content] = re.findall(r'<pre id="found">(.*?)</pre>', job.stdout, re.DOTALL)
    result = json.loads(html.unescape(content))
    assert result.pop("errors") == [] and result.pop("loaded") == 0
    return result


@in_a_browser
@pytest.mark.slow
def test_axes_and_problems_can_be_chosen(report):
    seen = after(report, "axes")
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


@in_a_browser
@pytest.mark.slow
def test_points_are_shown_and_compared_with_pointer_and_keys(report):
    seen = after(report, "points", choices="problem=1&x=round&y=grad_norm_sq")
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


@in_a_browser
@pytest.mark.slow
def test_curves_can_be_hidden_and_links_keep_the_choices(report):
    seen = after(report, "legend", choices="problem=1&x=seconds&y=loss&logy=0")
    assert seen["start"]["labels"] == ["seconds", "f(xᵏ)"]
    assert [len(seen[name]["curves"]) for name in ("start", "fewer", "none", "all")] == [2, 1, 0, 2]
    assert seen["address"] == "#problem=1&x=seconds&y=mean_grad_norm_sq&logx=1&logy=1"
    words = dict(parse_qsl(seen["zoomed"][1:]))
    assert words["hide"] == "0" and len(words["view"].split(",")) == 4
    assert seen["shown"] == seen["again"] and len(seen["again"]["curves"]) == 1
    assert seen["full"] == seen["address"] + "&hide=0"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", seen["file"])
    assert texts[-1].startswith("MARINA") and 'fill="#fff"' in seen["file"]
