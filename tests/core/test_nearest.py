"""What was probably meant by a name that is not known."""

from __future__ import annotations

import pytest

from mpisim.cli import main
from mpisim.core.errors import suggestion

NAMES = ("randk", "topk", "rank-k", "qsgd")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("TopK", "topk"),
        ("top_k", "topk"),
        ("rand-d-k", "randk"),
        ("rnadk", "randk"),
        ("qgsd", "qsgd"),
        ("nothing", ""),
        (3, ""),
        ("x" * 100_000, ""),
    ],
)
def test_meant(name, near):
    assert suggestion(name, NAMES) == (f"did you mean {near!r}? " if near else "")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("method.name=Marina", "method.name: unknown name 'Marina'; did you mean 'marina'?"),
        ("method.stepsze=3", "method.stepsze: unknown key for 'marina'; did you mean 'stepsize'?"),
        ("compressor.name=TopK", "unknown name 'TopK'; did you mean 'topk'?"),
        ("problem.dat=x", "problem.dat: unknown key; did you mean 'data'?"),
        ("problem.name=logistics", "unknown name 'logistics'; did you mean 'logistic'?"),
        ("problem.worker=3", "problem.worker: unknown key; did you mean 'workers'?"),
        ("run.round=3", "run.round: unknown key; did you mean 'rounds'?"),
    ],
)
def test_mistakes_on_the_command_line(setting, said, capsys):
    settings = ["problem.name=logistic", "problem.data=sample", "method.name=marina"]
    settings += ["method.stepsize=0.1", "compressor.name=randk", "compressor.k=2", "run.rounds=2"]
    words = [word for one in [*settings, setting] for word in ("--set", one)]
    assert main(["run", *words]) == 2
    line = capsys.readouterr().err.rstrip("\n")
    assert said in line and "\n" not in line


EXPERIMENT = """
[problem]
name = "logistic"
data = "sample"
workers = 2
[method]
name = "gd"
stepsize = 0.1
[run]
rounds = 1
"""


def test_files_of_the_other_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(EXPERIMENT)
    (tmp_path / "grid.toml").write_text(EXPERIMENT + "[sweep]\nseeds = [1]\n")
    assert main(["run", "grid.toml"]) == 2
    said = "mpisim: grid.toml: has a grid, [sweep]; did you mean `mpisim sweep grid.toml`?\n"
    assert capsys.readouterr().err == said
    assert main(["sweep", "one.toml"]) == 0  # it is a grid of one point
    said = "mpisim: one.toml: has no [sweep], so it is a grid of one point\n"
    assert capsys.readouterr().err.startswith(said)
    assert main(["sweep", "grid.toml"]) == 0
    assert "has no [sweep]" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plott"], "unknown command 'plott'; did you mean 'plot'? known: run, sweep, tune,"),
        (["run"], "a file is needed: mpisim run FILE.toml"),
    ],
)
def test_mistakes_without_a_file(words, said, capsys):
    assert main(words) == 2
    line = capsys.readouterr().err.rstrip("\n")
    assert said in line and "\n" not in line
