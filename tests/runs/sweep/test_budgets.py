"""A point whose budget was raised goes on from the log of the smaller one."""

from pathlib import Path

import pytest

from mpisim.runs import checkpoint
from mpisim.runs.sweep.points import read_summary
from tests.resumes import differences
from tests.runs.sweep.support import BASE, run, write

MESSAGE = 10 * 32  # bits of RandK's message
DIANA = BASE.replace('"marina"', '"diana"')
SIGN = DIANA.replace('"randk"\nk = 10', '"scaled-sign"').replace('"theory"', "0.01")
WARMUP = SIGN.replace('"diana"', '"1bit-adam"\nwarmup = 0.5')
BITS = "run.stop.bits_up={}".format


def raised(tmp_path, first, then, base=DIANA):
    """A sweep with the settings ``first`` and then with ``then``; the last one's point."""
    file, logs = write(tmp_path, base=base), tmp_path / "logs"
    [one] = run(file, logs, *first)
    before = content(one.log)
    [two] = run(file, logs, *then)
    assert content(one.log) == before and two.status == "done"
    [whole] = run(file, tmp_path / "whole", *then)
    assert whole.name == two.name != one.name
    assert differences(Path(whole.log), Path(two.log)) == []
    return one, two


def content(log):
    """The bytes of a log and of its checkpoint."""
    return [Path(path).read_bytes() for path in (log, checkpoint.path_for(Path(log)))]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["run.rounds=12"], ["run.rounds=30"]),
        (["run.rounds=12", "method.name=marina"], ["run.rounds=30", "method.name=marina"]),
        (["run.rounds=12", "run.log_every=5"], ["run.rounds=31", "run.log_every=5"]),
        (["run.rounds=50", BITS(6 * MESSAGE)], ["run.rounds=50", BITS(9 * MESSAGE)]),
        (["run.rounds=50", BITS(6 * MESSAGE)], ["run.rounds=14"]),
        (["run.rounds=12"], ["run.rounds=40", BITS(15.5 * MESSAGE)]),
        (["run.rounds=12"], ["run.rounds=40", BITS(12 * MESSAGE)]),  # met where it ended
        (
            ["run.rounds=40", BITS(7 * MESSAGE), "run.log_every=3"],
            ["run.rounds=40", "run.stop.grad_norm_sq=1e-12", "run.log_every=3"],
        ),
    ],
)
def test_it_is_as_from_scratch(first, then, tmp_path, capfd):
    one, two = raised(tmp_path, first, then)
    assert two.earlier == one.log
    assert f"continuing from {one.log}, round " in capfd.readouterr().err
    [kept] = read_summary(tmp_path / "logs")
    assert kept.earlier == one.log


@pytest.mark.parametrize(
    ("base", "first", "then"),
    [
        (DIANA, ["run.rounds=12"], ["run.rounds=8"]),
        (DIANA, ["run.rounds=12"], ["run.rounds=40", BITS(6 * MESSAGE)]),
        (DIANA, ["run.rounds=12"], ["run.rounds=30", "run.seed=2"]),
        (DIANA, ["run.rounds=12"], ["run.rounds=30", "run.log_every=2"]),
    ],
)
def test_another_experiment_or_a_smaller_budget_starts_anew(base, first, then, tmp_path):
    _, two = raised(tmp_path, first, then, base)
    assert two.earlier == ""


@pytest.mark.parametrize(
    ("base", "why"),
    [
        (WARMUP, "has method.warmup = 6, this run has 15"),
        (DIANA.replace("[comp", "schedule = { at = [0.5] }\n[comp"), "has method.schedule.at = "),
    ],
)
def test_what_depends_on_the_rounds_starts_anew_with_a_line(base, why, tmp_path, capfd):
    raised(tmp_path, ["run.rounds=12"], ["run.rounds=30"], base)
    said = capfd.readouterr().err
    assert why in said and said.count("starting over") == 1
