"""The texts of ``mpisim data``."""

from mpisim.cli import data as commands
from mpisim.problems.data import find as finding
from mpisim.problems.data.find import ROOT, registry


def test_list(here, monkeypatch, tmp_path):
    monkeypatch.setattr(finding, "ROOT", tmp_path)
    (here / "w8a.xz").touch()
    (here / "train-images-idx3-ubyte.gz").touch()
    lines = {line.split()[0]: line for line in commands.list_text().splitlines()}
    assert list(lines) == ["name", *registry()]
    assert lines["w8a"].split() == ["w8a", "49749", "300", str(here / "w8a.xz")]
    assert lines["a9a"].endswith("not here")
    assert "1 of 4 files" in lines["mnist"]


def test_info_measures_and_verifies(here):
    (here / "sample").write_bytes((ROOT / "datasets" / "sample").read_bytes())
    text = commands.info_text("sample")
    assert "sha256 agrees with the registry" in text
    assert "1600 rows, largest index 123, 22213 entries" in text
    assert "labels -1: 1192, 1: 408" in text
    (here / "sample").write_text("1 1:3 2:4\n0 2:1\n1 7:2\n")
    text = commands.info_text("sample")
    assert "NOT the registered file" in text and "3 rows, largest index 7, 4 entries" in text
    assert "labels 0: 1, 1: 2" in text and "row norms 1 to 5" in text
    (here / "mg").write_text("0.5 1:1\n" * 3)
    assert "NOT the registered file" in commands.info_text("mg")
    (here / "mg").write_text("0.5 6:1\n" * 1385)
    assert "no sha256 for it: only rows and features were checked" in commands.info_text("mg")
