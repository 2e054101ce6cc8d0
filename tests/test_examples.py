"""The examples of the documents run as they stand there."""

import copy
import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import mpisim
from mpisim.cli import main
from mpisim.testing import NotChecked
from tests.comm.jobs import HANG_SECONDS
from tests.helpers import settings, table
from tests.resumes import differences
from tools import notebook

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


@pytest.fixture
def one_process(monkeypatch):
    """`mpisim check` on one rank: tests/testing/test_check.py has it start mpirun."""

    def no_job(*_):
        raise NotChecked("other tests start mpirun")

    monkeypatch.setattr("mpisim.testing.runs.run_job", no_job)


def test_implementing_a_paper(one_process, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("my_dasha_plugin.py").write_text("\n\n".join(examples("how-to/own-paper.md")))
    common = ["problem.name=logistic", "problem.data=sample", "problem.workers=4", "run.rounds=9"]
    common += ["compressor.name=randk", "compressor.k=10"]

    def run(name, step, *words):
        given = settings(*common, f"method.name={name}", f"method.stepsize={step}")
        command("run", *given, *words, "--out", f"{name}.h5")
        return mpisim.load(f"{name}.h5")[0]

    mine = run("my-dasha", "theory", "--plugin", "my_dasha_plugin.py")
    other = run("dasha", mine.attrs["stepsize"])
    assert (mine.columns["loss"] == other.columns["loss"]).all()
    assert "ok      method my-dasha: " in command("check", "my_dasha_plugin.py")


def test_extending(one_process, tmp_path, monkeypatch, command):
    """On the tutorial's experiment its method's log is that of ``diana``; sums would drift."""
    monkeypatch.chdir(tmp_path)
    Path("mine_extended.py").write_text("\n\n".join(examples("how-to/extending.md")))
    common = ["problem.name=logistic", "problem.data=sample", "problem.workers=4", "run.rounds=20"]
    for given in (
        ["method.name=ef21", "method.stepsize=0.1", "compressor.name=firstk", "compressor.k=10"],
        ["method.name=my-diana", "method.stepsize=theory", "compressor.name=natural"],
    ):
        words = settings(*given, *common)
        command("run", "--plugin", "mine_extended.py", *words, "--out", "log.h5", "--force")
        log = mpisim.load("log.h5")[0]
        assert log.columns["loss"][-1] < log.columns["loss"][0]
    Path("first.toml").write_text(BLOCK.search((TUTORIAL / "first-run.md").read_text())[3])
    command("data", "sample")
    for name in ("my-diana", "diana"):
        given = settings(f"method.name={name}", "run.rounds=100")
        command("run", "first.toml", "--plugin", "mine_extended.py", *given, "--out", f"{name}.h5")
    assert differences(Path("my-diana.h5"), Path("diana.h5")) == []
    output = command("check", "mine_extended.py")
    for name in ("compressor firstk (k = 2)", "compressor largest (k = 2)", "method my-diana"):
        assert f"ok      {name}: " in output


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
        words = shlex.split(command.replace("--d 1000", "--d 60"), comments=True)
        assert main(words[1:]) == 0, command


TUTORIAL = DOCS / "tutorial"
BLOCK = re.compile(r"^```(sh|toml|python)\n(?:# (\S+)\n)?(.*?)^```", re.M | re.S)
MPIRUN = re.compile(r"^mpirun -n \d+ (?=mpisim )")


@pytest.mark.mpi
def test_tutorial(one_process, tmp_path, monkeypatch):
    """All pages in their order, in one folder: files are written, commands and Python run.

    The first command under mpirun starts a job; without mpirun, the others write the same logs.
    Grids have fewer rounds than on the page.
    """
    monkeypatch.chdir(tmp_path)
    pages = re.findall(r"^([a-z-]+)$", (TUTORIAL / "index.md").read_text(), re.M)
    texts = [path.read_text() for page in pages if (path := TUTORIAL / f"{page}.md").is_file()]
    assert pages[0] == "first-run" and len(texts) >= 8
    for block in map(BLOCK.findall, texts):
        for language, name, text in block:
            if name:
                Path(name).write_text(text.replace("rounds = 300", "rounds = 30"))
            elif language == "python":
                exec(text, {})
            else:
                for line in text.splitlines():
                    run_line(line)
    assert Path("figures/papers-fig1.png").is_file() and Path("seconds.png").is_file()
    one, two = mpisim.load(["logs/marina.h5", "logs/marina-2.h5"])
    assert two.attrs["ranks"] == 2 and (one.columns["loss"] == two.columns["loss"]).all()
    assert mpisim.load("logs/night.h5")[0].columns["round"][-1] == 600


def run_line(line: str) -> None:
    """A command of the tutorial; under mpirun only the first time."""
    mpirun = MPIRUN.match(line)
    if mpirun and "marina-2.h5" in line:
        words = shlex.split(line.replace("mpisim", f"{sys.executable} -m mpisim", 1))
        subprocess.run(words, check=True, timeout=HANG_SECONDS)
        return
    words = shlex.split(line[mpirun.end() :] if mpirun else line)
    assert words[0] == "mpisim", line
    assert main(words[1:]) == 0, line


def test_readme(tmp_path, monkeypatch):
    """The experiment, the plugin with its commands, and the notebook cell of README."""
    monkeypatch.chdir(tmp_path)
    readme = (DOCS.parent / "README.md").read_text()
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", readme, re.M)
    code = [textwrap.dedent(block).strip("\n") for block in blocks]
    starts = "[problem]", "# window.py", "mpisim run first.toml --plugin", "import mpisim\nresult"
    experiment, source, command, cell = (
        next(text for text in code if text.startswith(start)) for start in starts
    )
    Path("first.toml").write_text(experiment.replace("rounds = 500", "rounds = 50"))
    Path("window.py").write_text(source)
    for line in command.splitlines():
        assert main(shlex.split(line)[1:]) == 0
    names: dict = {}
    exec(cell, names)
    assert names["result"].status == "done"
    assert len(readme.splitlines()) <= 120


def test_notebook(tmp_path, monkeypatch):
    """The notebook has the outputs that its cells have now, seconds and pixels apart."""
    monkeypatch.chdir(tmp_path)
    shipped = json.loads(notebook.NOTEBOOK.read_text())["cells"]
    cells = notebook.execute({"cells": copy.deepcopy(shipped)})["cells"]
    seconds = re.compile(r"(, about .* left|\s+[\d.e-]+ ± [\d.e-]+)$", re.MULTILINE)
    for pair in zip(shipped, cells, strict=True):
        texts = [[out.get("text", "-") for out in cell.get("outputs", [])] for cell in pair]
        old, new = ([seconds.sub("", text).split() for text in several] for several in texts)
        assert old == new, "python -m tools.notebook writes the outputs anew"


def test_trackers(tmp_path, monkeypatch):
    """The search of the page, with fewer trials: the best one is the best of its trials."""
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    monkeypatch.chdir(tmp_path)
    assert main(["data", "sample"]) == 0
    example, _ = examples("how-to/trackers.md")
    names: dict = {}
    exec(example.replace("n_trials=20", "n_trials=2"), names)
    trials = names["search"].trials
    bits = {trial.value: trial.params for trial in trials if trial.value is not None}
    assert len(trials) == 2 and names["search"].best_params == bits[min(bits)]


def test_hydra(tmp_path, monkeypatch):
    """The script and the command of the page, on a short run: six logs in folders of their own."""
    pytest.importorskip("hydra")
    monkeypatch.chdir(tmp_path)
    assert main(["data", "sample"]) == 0
    Path("app.py").write_text(examples("how-to/trackers.md")[1])
    tables = table({"name": "diana", "stepsize": 0.1}, {"name": "randk", "k": 3}, rounds=5)
    Path("first.yaml").write_text(json.dumps(tables))
    page = (DOCS / "how-to/trackers.md").read_text()
    [command] = re.findall(r"^    python (app.py .*)$", page, re.M)
    subprocess.run([sys.executable, *command.split()], check=True, timeout=HANG_SECONDS)
    logs = mpisim.load(sorted(Path("multirun").rglob("*.h5")))
    found = {(log.attrs["seed"], log.config["compressor"]["k"]) for log in logs}
    assert found == {(seed, k) for seed in (1, 2, 3) for k in (5, 10)}
