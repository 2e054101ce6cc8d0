"""The archive of a study: checked elsewhere, run again, and refused where it was changed."""

import hashlib
import json
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpisim.analysis import artifact
from mpisim.analysis.artifact import CHECKLIST, CRATE, MANIFEST
from mpisim.cli import main

CLAIMS = "mine/results/fig1.quick.claims.json"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The archive of the template's study, on record with fewer rounds."""
    folder = tmp_path_factory.mktemp("archive")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["new", "study", "papers/mine"]) == 0
        grid = Path("papers/mine/fig1.toml")
        grid.write_text(grid.read_text().replace("rounds = 200", "rounds = 30"))
        assert main(["artifact", "papers/mine"]) == 2  # nothing is on record
        assert main(["study", "papers/mine", "fig1", "--record"]) == 0
        record = Path("papers/mine/results/fig1.quick.provenance.json")  # on any machine
        record.write_text(re.sub(r'"seconds": [\d.]+', '"seconds": 1.0', record.read_text()))
        assert main(["artifact", "papers/mine"]) == 0
        patch.chdir("papers/mine")
        for _ in range(2):  # in the folder itself: the first one is no part of the second
            assert main(["artifact", "."]) == 0
        assert Path("mine.zip").read_bytes() == (folder / "mine.zip").read_bytes()
        Path("mine.zip").unlink()
        patch.chdir(folder)
        grid.write_text(grid.read_text().replace('"plugin.py"', '"../plugin.py"'))
        Path("papers/plugin.py").write_text("")
        assert main(["artifact", "papers/mine", "-o", "other.zip"]) == 2
    assert not (folder / "other.zip").exists()
    return folder / "mine.zip"


@pytest.fixture
def changed(archive, tmp_path, monkeypatch):
    """A function: the path of the archive with one file changed, and with a manifest that fits."""
    monkeypatch.chdir(tmp_path)

    def change(name, content, fitting):
        with zipfile.ZipFile(archive) as file:
            files = {one: file.read(one) for one in file.namelist()}
        files[name] = content(files.get(name, b""))
        if fitting:
            digests = [(hashlib.sha256(data).hexdigest(), n) for n, data in files.items()]
            lines = [f"{digest}  {n}\n" for digest, n in digests if n != MANIFEST]
            files[MANIFEST] = "".join(lines).encode()
        with zipfile.ZipFile("changed.zip", "w") as file:
            for one, data in files.items():
                file.writestr(one, data)
        return "changed.zip"

    return change


def test_it_is_accepted_elsewhere(archive, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    command("verify", archive)
    assert "--load-plugins trusts it" in command("verify", archive, "--rerun", code=2)
    out = command("verify", archive, "--rerun", "--load-plugins")
    assert "1 of 1 comparisons drawn" in out and out.endswith("nothing is wrong\n")


def test_it_describes_itself(archive):
    with zipfile.ZipFile(archive) as file:
        graph = {one["@id"]: one for one in json.loads(file.read(CRATE))["@graph"]}
        parts = {one["@id"] for one in graph["./"]["hasPart"]} | {CRATE}
        assert parts == set(file.namelist())
        assert graph["#fig1.quick"]["result"] and graph["mine/plugin.py"]["contentSize"]
        text = file.read(CHECKLIST).decode()
        assert "| plugins | plugin.py (" in file.read("mine/results/README.md").decode()
    for part in (
        *("| fig1, quick | 10 done |", "| 1, 2, 3, 4, 5 |", "| in minutes |"),
        *("where a figure tunes", "- [ ] no seed was left out"),
        *("- [ ] authors are named", "- [x] a license"),
    ):
        assert part in text
    assert "run.seed" not in text  # the seeds have a column


def test_pytorch_is_installed_from_its_own_index(monkeypatch):
    """PyPI has no such version, and another build may have other bits."""
    index = "--extra-index-url https://download.pytorch.org/whl/cpu"
    for version, first in (("2.13.0+cpu", [index]), ("2.13.0", [])):
        torch = SimpleNamespace(name="torch", version=version)
        monkeypatch.setattr(artifact.metadata, "distributions", lambda one=torch: [one])
        assert artifact._lock().splitlines()[2:] == [*first, f"torch=={version}"]


@pytest.mark.parametrize(
    ("name", "content", "fitting", "why"),
    [
        ("mine/plugin.py", lambda data: data + b"\n", False, "plugin.py: has changed since"),
        ("mine/more.py", lambda data: b"1", False, f"mine/more.py: is not in {MANIFEST}"),
        (CLAIMS, lambda data: data.replace(b'"holds"', b'"tie"'), True, "judged again holds"),
    ],
)
def test_a_change_is_detected(name, content, fitting, why, changed, command):
    assert why in command("verify", changed(name, content, fitting), code=1)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mine/plugin.py/more.py", "cannot be unpacked"),
        (f"mine/{300 * 'x'}", "cannot be unpacked"),
        ("mine/../../outside.py", "is not allowed as the name of a file"),
        ("/tmp/outside.py", "is not allowed as the name of a file"),
    ],
)
def test_a_name_that_no_file_can_have_or_elsewhere_is_one_line(name, why, changed, command):
    line = command("verify", changed(name, lambda data: b"1", True), code=2)
    assert why in line and line.count("\n") == 1


def test_other_rows_are_detected(changed, command):
    rerun = "--rerun", "--load-plugins"
    file = changed("mine/fig1.toml", lambda data: data.replace(b"k = 10", b"k = 11"), True)
    assert "no such run in the figure's grid" in command("verify", file, *rerun, code=1)
    digest = rb'(-[0-9a-f]{8}": ")[0-9a-f]{8}'
    file = changed(CLAIMS, lambda data: re.sub(digest, rb"\g<1>00000000", data), True)
    assert command("verify", file, *rerun, code=1).count("other rows than on record") == 10


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive(content, tmp_path, command):
    (tmp_path / "some.zip").write_bytes(content)
    line = command("verify", tmp_path / "some.zip", code=2)
    assert "some.zip" in line and line.count("\n") == 1
