"""What is packaged, and the tools around it."""

import json
import os
import re
from configparser import ConfigParser

import pytest

from benchmarks.table import verdict
from mpisim.analysis.card import CHART
from mpisim.core import VERSION
from tests.comm.jobs import ROOT
from tests.helpers import sampled
from tools import lowest, mutants, warm_up
from tools.cards import PICTURE, digest
from tools.check_site import loads

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


ELSEWHERE = (
    '<script src="https://cdn.net/x.js"></script><link rel="stylesheet" href="//a.net/b.css">'
)
HERE = '<a href="https://a.net">a</a><img src="a.png"><link rel="canonical" href="https://a.net/a.html">'


def test_a_site_loads_nothing_from_elsewhere():
    assert loads(ELSEWHERE) == ["https://cdn.net/x.js", "//a.net/b.css"] and loads(HERE) == []


def test_the_picture_holds_todays_numbers():
    """Of one of its curves, which the seed draws."""
    [label] = sampled(CHART, 1)
    assert digest(label).encode() in PICTURE.read_bytes(), "run python -m tools.cards"


def test_runs_of_the_warm_up_succeed(monkeypatch, capsys):
    some = sampled(warm_up.experiments(), 6)
    monkeypatch.setattr(warm_up, "experiments", lambda: some)
    before = dict(os.environ)
    assert warm_up.main() == 0
    assert capsys.readouterr().err == "" and os.environ == before


@pytest.mark.parametrize("name", ["Dockerfile", "apptainer.def"])
def test_what_is_installed_is_there(name):
    recipe = (ROOT / "tools" / name).read_text()
    [extras] = re.findall(r"pip install --no-cache-dir '/opt/mpisim\[(.*)\]'", recipe)
    assert set(extras.split(",")) <= set(SETUP["options.extras_require"])
    [version] = re.findall(r"python:(\S+)-slim", recipe)
    assert f"Python :: {version}\n" in SETUP["metadata"]["classifiers"] + "\n"
    for file in re.findall(r"/opt/mpisim/(\S+\.py)", recipe):
        assert (ROOT / file).is_file()
    assert name in (ROOT / "docs/how-to/cluster.md").read_text()


def test_open_mpi_has_the_same_settings_everywhere():
    sourced, recipe = (
        (ROOT / "tools" / name).read_text() for name in ("env.openmpi", "Dockerfile")
    )
    exported = re.findall(r'^export (\w+_MCA_\w+|OMPI_ALLOW\w+)="\$\{\w+:-(.*)\}"', sourced, re.M)
    settings = re.findall(r"((?:OMPI|PRTE)_\w+)=(\S+)", recipe)
    assert len(settings) == 4 and set(settings) <= set(exported)


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


def test_each_fault_of_mutants_has_its_line():
    faults = mutants.mutants()
    lines = [(ROOT / one.file).read_text().count(f"{one.line}\n") for one in faults]
    assert lines == [1] * 40 and all((ROOT / test).exists() for one in faults for test in one.tests)
