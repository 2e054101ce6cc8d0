"""What is packaged, and the lowest versions that it is tested with."""

import json
import re
from configparser import ConfigParser
from pathlib import Path

import pytest

from mpisim.core import VERSION
from tools import lowest
from tools.check_site import loads
from tools.release_check import environment

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_a_lowest_version():
    found = list(lowest.constraints((ROOT / "setup.cfg").read_text()))
    assert {"numpy==2.0.*", "mpi4py==4.1.*"} <= set(found)
    assert len(set(found)) == len(found) > 20
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
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    classified = re.findall(r":: (3\.\d+)$", config["metadata"]["classifiers"], re.M)
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    tested = re.search(r"python: \[(.*)\]", workflow)
    assert tested and [v.strip(' "') for v in tested[1].split(",")] == classified
    assert config["options"]["python_requires"] == f">= {classified[0]}"
    assert "run: bash .ci/run" in workflow


def test_the_package_is_tried_without_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MPISIM_DATA", "/data")
    monkeypatch.setenv("PATH", f"{ROOT}/.venv/bin:/usr/bin")
    found = environment(tmp_path / "bin", tmp_path)
    assert found["PATH"] == f"{tmp_path}/bin:/usr/bin" and found["HOME"] == str(tmp_path)
    assert not {"PYTHONPATH", "MPISIM_DATA"} & set(found)


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ('<script src="https://cdn.net/x.js"></script>', ["https://cdn.net/x.js"]),
        ('<link rel="stylesheet" href="//fonts.net/a.css">', ["//fonts.net/a.css"]),
        ('<a href="https://cdn.net">text</a><img src="a.png">', []),
        ('<link rel="canonical" href="https://mpisim.net/a.html">', []),
    ],
)
def test_a_site_loads_nothing_from_elsewhere(page, found):
    assert loads(page) == found
