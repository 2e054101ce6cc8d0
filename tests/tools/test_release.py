"""What is packaged, and the tools around it."""

import json
import os
import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest

from benchmarks.table import verdict
from mpisim.analysis.card import CHART
from mpisim.core import VERSION
from mpisim.runs.sweep import grid as sweeps
from tests.comm.jobs import ROOT
from tests.helpers import sampled
from tools import lowest, warm_up
from tools.cards import PICTURE, digest
from tools.check_site import loads
from tools.demo import __main__ as demo
from tools.release_check import environment

SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg")


def test_every_requirement_has_a_lowest_version():
    result = list(lowest.constraints((ROOT / "setup.cfg").read_text()))
    assert {"numpy==2.0.*", "mpi4py==4.1.*"} <= set(result)
    assert len(set(result)) == len(result) > 20
    text = "[options]\ninstall_requires =\n    numpy\n[options.extras_require]\n"
    with pytest.raises(SystemExit, match="'numpy' is not NAME >= VERSION"):
        list(lowest.constraints(text))


def test_the_versions_agree():
    """CITATION.cff and the workflow say what setup.cfg and version.py say."""
    for name in ("codemeta.json", ".zenodo.json"):
        about = json.loads((ROOT / name).read_text())
        assert about["version"] == VERSION and "mpisim" in (about.get("name") or about["title"])
    paper = (ROOT / "paper.md").read_text()
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.M))
    assert set(re.findall(r"@(\w+)\]", paper)) == entries
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited and cited[1] == VERSION
    classified = re.findall(r":: (3\.\d+)$", SETUP["metadata"]["classifiers"], re.M)
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    tested = re.search(r"python: \[(.*)\]", workflow)
    assert tested and [v.strip(' "') for v in tested[1].split(",")] == classified
    assert SETUP["options"]["python_requires"] == f">= {classified[0]}"
    assert "run: bash .ci/run" in workflow


def test_the_package_is_tried_without_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MPISIM_DATA", "/data")
    monkeypatch.setenv("PATH", f"{ROOT}/.venv/bin:/usr/bin")
    result = environment(tmp_path / "bin", tmp_path)
    assert result["PATH"] == f"{tmp_path}/bin:/usr/bin" and result["HOME"] == str(tmp_path)
    assert not {"PYTHONPATH", "MPISIM_DATA"} & set(result)


@pytest.mark.parametrize(
    ("page", "result"),
    [
        ('<script src="https://cdn.net/x.js"></script>', ["https://cdn.net/x.js"]),
        ('<link rel="stylesheet" href="//fonts.net/a.css">', ["//fonts.net/a.css"]),
        ('<a href="https://cdn.net">text</a><img src="a.png">', []),
        ('<link rel="canonical" href="https://mpisim.net/a.html">', []),
    ],
)
def test_a_site_loads_nothing_from_elsewhere(page, result):
    assert loads(page) == result


def test_the_picture_holds_todays_numbers():
    """Of one of its curves, which the seed draws."""
    [label] = sampled(CHART, 1)
    assert digest(label).encode() in PICTURE.read_bytes(), "run python -m tools.cards"


def test_runs_of_the_warm_up_succeed(monkeypatch, capsys):
    some = sampled(warm_up.experiments(), 12)
    monkeypatch.setattr(warm_up, "experiments", lambda: some)
    before = dict(os.environ)
    assert warm_up.main() == 0
    assert capsys.readouterr().err == "" and os.environ == before


GRID = tomllib.loads((Path(demo.__file__).with_name("grid.toml")).read_text())


def test_each_method_is_repeated_at_its_step_on_all_ranks():
    steps = {one["method"]["name"]: 2.0**k for k, one in enumerate(GRID["sweep"]["methods"])}
    _, points = sweeps.points(demo.repeated(GRID, steps), [], "logs")
    assert len(points) == len(demo.SEEDS) * len(steps)
    for point in points:
        assert point["method"]["stepsize"] == steps[point["method"]["name"]]
        assert point["run"]["ranks"] == "all" and point["run"]["stop"] == GRID["run"]["stop"]
    assert GRID["run"]["stop"] == {demo.TARGET.y: demo.TARGET.level}


RECIPES = ("Dockerfile", "apptainer.def")


OPENMPI = (ROOT / "tools" / "env.openmpi").read_text()


def recipe(name):
    return (ROOT / "tools" / name).read_text()


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_installed_is_there(name):
    [extras] = re.findall(r"pip install --no-cache-dir '/opt/mpisim\[(.*)\]'", recipe(name))
    assert set(extras.split(",")) <= set(SETUP["options.extras_require"])
    [version] = re.findall(r"python:(\S+)-slim", recipe(name))
    assert f"Python :: {version}\n" in SETUP["metadata"]["classifiers"] + "\n"
    for file in re.findall(r"/opt/mpisim/(\S+\.py)", recipe(name)):
        assert (ROOT / file).is_file()
    assert name in (ROOT / "docs/how-to/cluster.md").read_text()


def test_open_mpi_has_the_same_settings_everywhere():
    message = dict(
        re.findall(r'^export (\w+_MCA_\w+|OMPI_ALLOW\w+)="\$\{\w+:-(.*)\}"', OPENMPI, re.M)
    )
    settings = dict(re.findall(r"((?:OMPI|PRTE)_\w+)=(\S+)", recipe("Dockerfile")))
    assert len(settings) == 4 and settings.items() <= message.items()


@pytest.mark.parametrize(
    ("ratios", "bound", "expected"),
    [
        *(([0.9], "<= 1", "ok"), ([1.1] * 5, "<= 1", "cannot tell"), ([1.1] * 6, "<= 1", "MISSED")),
        ([1.1] * 6 + [0.9], "<= 1", "cannot tell"),
        ([1.1] * 40 + [0.9], "<= 1", "MISSED"),  # a disturbed run of many does not hide it
        *(([70.0], ">= 60", "ok"), ([50.0] * 6, ">= 60", "MISSED"), ([50.0], "", "")),
        ([50.0] * 5 + [70.0], ">= 60", "cannot tell"),
    ],
)
def test_noise_is_no_missed_bound(ratios, bound, expected):
    assert verdict(ratios, bound) == expected
