"""The logs of a folder come by what was run, whatever their files are called."""

import pytest

from mpisim.analysis.log_files import find
from mpisim.cli import main

STEPS = ("{ theory = 32.0 }", '"theory"', "{ theory = 128.0 }", "{ theory = 2.0 }")


@pytest.fixture
def folder(make_log):
    for step in STEPS:
        path = make_log(stepsize=step)
    make_log(stepsize='"theory"', seed=2), make_log(method="diana", stepsize=STEPS[-1])
    return path.parent


def test_a_folder_and_a_pattern(folder):
    named = ["log6.h5", "log2.h5", "log5.h5", "log4.h5", "log1.h5", "log3.h5"]
    assert [path.name for path in find(folder)] == named
    assert [path.name for path in find(f"{folder}/*.h5")] == named


def test_logs_that_are_named_one_by_one_stay(folder):
    one, two = folder / "log3.h5", folder / "log2.h5"
    assert find([one, two]) == [one, two]


def test_what_cannot_be_read_comes_last(folder, capsys):
    (folder / "a.h5").write_text("no log")
    assert find(folder)[-1].name == "a.h5"
    assert main(["show", str(folder), "--target", "grad_norm_sq=0.1"]) == 0
    assert "passed over: " in (error := capsys.readouterr().err) and "a.h5: not a log" in error
    assert main(["show", str(folder), "typo.h5", "--target", "grad_norm_sq=0.1"]) == 2
    assert capsys.readouterr().err == "mpisim: typo.h5: no such log\n"
    for command in ("show", "plot"):  # what is named alone
        flags = ["-o", str(folder / "a.png")] if command == "plot" else []
        assert main([command, str(folder / "a.h5"), *flags]) == 2


def test_a_table_has_the_steps_by_size(folder, capsys):
    assert main(["show", str(folder), "--target", "grad_norm_sq=0.1"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    steps = [row.partition("γ = ")[2].partition(")")[0] for row in rows[-4:]]
    assert steps == ["theory", "2 × theory", "32 × theory", "128 × theory"]
