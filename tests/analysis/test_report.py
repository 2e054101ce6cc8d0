"""`mpisim plot`: what is on the page."""

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mpisim.analysis.costs import Target
from mpisim.analysis.curves import Axis, over_seeds
from mpisim.analysis.fleet.table import fleet_costs
from mpisim.analysis.link_model import ModelledSeconds
from mpisim.analysis.report.chart_data import DEADLINES, MOST
from mpisim.analysis.report.page import decades
from mpisim.cli import main
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import parse
from mpisim.runs.log.reader import read, read_all

X = ["bits_up", "bits_total", "round", "oracle_calls", "seconds"]
MODELLED = ["seconds@10mbit", "seconds@100mbit", "seconds@1gbit"]


@pytest.fixture
def write(tmp_path):
    """write(*flags): the page about the logs that were made, and its data."""

    def page(*flags, code=0):
        out = tmp_path / "page" / "report.html"
        assert main(["plot", str(tmp_path), "-o", str(out), *flags]) == code
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
        key = "seconds@100mbit" if x.name == "seconds" else x.name
        full, shown = over_seeds(logs, x, Axis("loss", log=True)), curve["points"][key]["loss"]
        assert len(shown["x"]) <= MOST + 2 and shown.keys() == {"x", "y", "low", "high"}
        for end in (0, -1):
            for name in shown:
                assert shown[name][end] == pytest.approx(getattr(full, name)[end], rel=1e-4)
        assert np.interp(shown["x"], full.x, full.y) == pytest.approx(shown["y"], rel=1e-3)


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
        expected = {cost.name: [*cost.levels, cost.left_out] for cost in costs}
        for name, *values in rows:
            assert values == pytest.approx(expected.pop(name), rel=1e-3)
        assert not expected


def test_what_scrolls_can_be_reached_with_the_keyboard(make_log, write):
    make_log()
    text, _ = write("--fleet=1mbit")
    boxes = re.findall(r'<div class="scroll"[^>]*>', text)
    assert len(boxes) >= 3
    assert all('tabindex="0" role="region" aria-label="' in box for box in boxes)


def test_nothing_is_loaded_from_elsewhere(make_log, write):
    make_log()
    text, _ = write()
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


def test_each_problem_is_a_section(make_log, write):
    text = read(make_log()).attrs["config"]
    make_log(method="diana")
    make_log(attrs={"config": text.replace("mushrooms", "a9a")})
    make_log(attrs={"workers": 1})
    page, data = write()
    assert [(section["name"], len(section["curves"])) for section in data["sections"]] == [
        ("non-convex loss on a9a, 5 workers", 1),
        ("non-convex loss on mushrooms, 1 worker", 1),
        ("non-convex loss on mushrooms, 5 workers", 2),
    ]
    assert page.count('<section class="problem">') == 3


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
        ([5.0, 0.02], [1.0, 0.1]),
        ([1.0, 1e-3], [0.1, 0.01, 1e-3]),
        ([1.0, 1e-33], [1e-1, 1e-4, 1e-7, 1e-9, 1e-12, 1e-15]),  # to the rounding errors of f
        ([1.0, 0.5], []),
        ([np.nan, 0.0], []),
    ],
)
def test_targets_are_powers_of_ten_that_a_run_reaches(make_log, values, levels):
    log = read(make_log(rounds=1, columns={"grad_norm_sq": np.array(values)}))
    assert [target.level for target in decades([log])] == pytest.approx(levels)
