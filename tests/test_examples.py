"""The examples of the documents run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

import mpisim
from mpisim.analysis.plugin import ranks
from mpisim.analysis.plugin.outcome import NotChecked
from mpisim.cli import main

DOCS = Path(__file__).parents[1] / "docs"


def examples(page: str) -> list[str]:
    """The Python examples of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)


def test_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for example in examples("how-to/python.md"):
        exec(example, names)
    assert names["result"].status == "done" and len(names["runs"]) == 4
    assert (tmp_path / "logs" / "first.png").is_file()
    assert capsys.readouterr().out.startswith("done ")


def test_own_paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_dasha_plugin.py").write_text("\n\n".join(examples("how-to/own-paper.md")))
    own = ["method.name=my-dasha", "method.a=0.05", "method.stepsize=theory"]
    theirs = ["method.name=dasha", "method.a=0.05", "method.stepsize=theory"]
    common = ["problem.name=logistic", "problem.data=sample", "problem.workers=4", "run.rounds=9"]
    common += ["compressor.name=randk", "compressor.k=10"]
    flags = [word for s in [*own, *common] for word in ("--set", s)]
    plugin = ["--plugin", "my_dasha_plugin.py"]
    assert main(["run", *plugin, *flags, "--out", "own.h5"]) == 0
    step = str(mpisim.load("own.h5")[0].attrs["stepsize"])
    flags = [word for s in [*theirs, *common] for word in ("--set", s)]
    assert main(["run", *flags, "--set", f"method.stepsize={step}", "--out", "theirs.h5"]) == 0
    one, other = (mpisim.load(name)[0].columns["loss"] for name in ("own.h5", "theirs.h5"))
    assert (one == other).all()


@pytest.mark.parametrize(
    "settings",
    [
        ["method.name=ef21", "method.stepsize=0.1", "compressor.name=firstk", "compressor.k=10"],
        ["method.name=my-diana", "method.stepsize=theory", "compressor.name=natural"],
    ],
)
def test_extending(settings, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stem = f"mine_{settings[0].rpartition('=')[2].replace('-', '_')}"
    Path(f"{stem}.py").write_text("\n\n".join(examples("how-to/extending.md")))
    settings = [*settings, "problem.name=logistic", "problem.data=sample", "problem.workers=4"]
    flags = [word for s in [*settings, "run.rounds=20"] for word in ("--set", s)]
    assert main(["run", "--plugin", f"{stem}.py", *flags, "--out", "log.h5"]) == 0
    log = mpisim.load("log.h5")[0]
    assert log.columns["loss"][-1] < log.columns["loss"][0]


def test_extending_passes_mpisim_check(tmp_path, monkeypatch, capsys):
    def none(folder):
        raise NotChecked("other tests start mpirun")

    monkeypatch.setattr(ranks, "start", none)
    plugin = tmp_path / "mine_checked.py"
    plugin.write_text("\n\n".join(examples("extending.md")))
    assert main(["check", str(plugin)]) == 0
    said = capsys.readouterr().out
    assert "ok      compressor firstk (k = 2): " in said and "ok      method my-diana: " in said


def test_commands_that_read_results(make_log, monkeypatch):
    """Every command of the page, on logs made by hand."""
    monkeypatch.chdir(make_log().parent)
    make_log(seed=2, rate=0.12)
    make_log(method="diana", rate=0.05)
    Path("logs").mkdir()
    for log in sorted(Path().glob("*.h5")):
        log.rename(Path("logs") / log.name)
    lines = (DOCS / "how-to/reading-results.md").read_text().splitlines()
    commands = [line.strip() for line in lines if line.startswith("    mpisim ")]
    assert len(commands) >= 14
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
