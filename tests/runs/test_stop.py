"""Runs end with the first logged row that meets a condition of `run.stop`."""

from unittest.mock import ANY

import h5py
import numpy as np
import pytest

from mpisim.analysis.tune import best
from mpisim.cli import main
from mpisim.core.errors import Diverged, InputError
from tests.helpers import columns, cut_rows, forged, run_tables, table
from tests.resumes import differences

RANDK = {"name": "randk", "k": 4}
DCGD, DIANA = ({"name": name, "stepsize": 0.05} for name in ("dcgd", "diana"))
MESSAGE = 4 * 32  # bits that a worker sends in each round


def randk(method=DCGD, rounds=60, **run):
    return table(method, RANDK, rounds=rounds, **run)


@pytest.mark.parametrize(
    ("stop", "every", "last", "by"),
    [
        ({"bits_up": 5 * MESSAGE}, 1, 5, "bits_up"),
        ({"bits_up": 5 * MESSAGE + 1}, 1, 6, "bits_up"),
        ({"bits_up": 5 * MESSAGE + 0.5}, 4, 8, "bits_up"),
        ({"bits_up": 60 * MESSAGE}, 7, 60, "bits_up"),
        ({"bits_up": 60 * MESSAGE + 1}, 7, 60, "rounds"),
        ({"paper_bits_up": 7 * MESSAGE}, 1, 7, "paper_bits_up"),
        ({"oracle_calls": 9}, 1, 9, "oracle_calls"),  # in samples of a worker
        ({"bits_up": 9 * MESSAGE, "oracle_calls": 3}, 1, 3, "oracle_calls"),
        ({"bits_up": 2 * MESSAGE, "oracle_calls": 3}, 1, 2, "bits_up"),
        ({"loss": 10.0}, 1, 0, "loss"),
        ({"grad_norm_sq": 0.0}, 1, 60, "rounds"),
    ],
)
def test_known_costs_give_the_exact_last_row(stop, every, last, by, tmp_path):
    log = tmp_path / "log.h5"
    if "oracle_calls" in stop:
        samples = run_tables(randk(rounds=1)).row["oracle_calls"] / 6
        stop = stop | {"oracle_calls": stop["oracle_calls"] * samples}
    end = run_tables(randk(log_every=every, stop=stop), log)
    assert (end.status, end.row["round"], end.stopped_by) == ("done", last, by)
    with h5py.File(log) as file:
        assert file.attrs["status"] == "done" and file.attrs["stopped_by"] == by
        assert file["rounds/round"][-1] == last
        assert np.array_equal(file["final/x"][:], end.x)
    whole = tmp_path / "whole.h5"
    run_tables(randk(rounds=last, log_every=every), whole)
    assert set(differences(whole, log)) <= {"stopped_by"}


# A step of 2.5 / L: |grad f(x^k)|^2 = 2.25^k |grad f(x^0)|^2, 1000 times the start at 8.52
GROWS = {"name": "gd", "stepsize": {"theory": 2.5}}


def growing(tmp_path, **run):
    (tmp_path / "line").write_text("2 1:2\n")
    problem = {"name": "least-squares", "data": str(tmp_path / "line")}
    return table(GROWS, workers=1, problem=problem, **run)


@pytest.mark.parametrize(("every", "last"), [(1, 9), (4, 12)])
def test_a_run_that_rises_too_far_is_stopped(every, last, tmp_path, capfd):
    log = tmp_path / "log.h5"
    tables = growing(tmp_path, rounds=60, log_every=every, stop={"divergence": 1000.0})
    end = run_tables(tables, log)
    assert (end.status, end.row["round"], end.stopped_by) == ("done", last, "divergence")
    assert verified(log, capfd) == (0, ANY)
    [choice] = best([log])
    assert [c.out for c in choice.candidates] == ["seed 1 diverged (run.stop.divergence)"]


DIVERGES = {  # the row, a step of GD, and the round of the last row
    "a gradient that is not finite": ("1 1:1e160", 1e-3, 0),  # f(0) = 1/2
    "a loss that has grown": ("2 1:2", 2500.25, 4),  # by 10^8 in each round, from 2
    "a loss that is not finite": ("2 1:2", 1e200, 1),
}


@pytest.mark.parametrize("why", DIVERGES)
def test_a_run_that_diverges_does_not_end_as_done(why, tmp_path, capfd):
    data, step, last = DIVERGES[why]
    (tmp_path / "line").write_text(f"{data}\n")
    problem = {"name": "least-squares", "data": str(tmp_path / "line")}
    tables = table({"name": "gd", "stepsize": step}, workers=1, problem=problem, rounds=last)
    log = tmp_path / "log.h5"
    with pytest.raises(
        Diverged, match=rf"^diverged: loss .*, \|grad f\|\^2 .* at round {last}; log "
    ):
        run_tables(tables, log)
    assert columns(log)["round"][-1] == last and verified(log, capfd) == (0, ANY)
    with forged(log) as file:
        file.attrs["status"] = "done"
    assert verified(log, capfd)[0] == 1
    if last > 1:  # the row before is large, but may come back
        assert run_tables(table(tables["method"], workers=1, problem=problem, rounds=last - 1))


def test_a_smaller_budget_is_refused(tmp_path):
    log = tmp_path / "log.h5"
    run_tables(randk(rounds=20), log)
    smaller = randk(stop={"bits_up": 9 * MESSAGE})
    with pytest.raises(InputError, match=r"run\.stop is met at round 9, before its checkpoint"):
        run_tables(smaller, log, resume=True)
    assert columns(log)["round"].size == 21
    assert run_tables(smaller, log, resume=True, force=True).row["round"] == 9


def verified(log, capfd):
    capfd.readouterr()
    code = main(["verify", str(log)])
    return code, capfd.readouterr().out


def cut(file):
    cut_rows(file, 6)


def reached_before(file):
    text = file.attrs["config"]
    assert f"bits_up = {9 * MESSAGE}" in text
    file.attrs["config"] = text.replace(f"bits_up = {9 * MESSAGE}", f"bits_up = {4 * MESSAGE}")


def said_rounds(file):
    file.attrs["stopped_by"] = "rounds"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: None, "nothing is wrong"),
        (cut, "done, but the last row is that of round 5 of 60"),
        (reached_before, "round 4 meets run.stop, but the last row is of 9"),
        (said_rounds, "stopped by rounds, but the last row says bits_up"),
    ],
)
def test_verify_knows_where_a_run_ends(change, said, tmp_path, capfd):
    log = tmp_path / "log.h5"
    run_tables(randk(stop={"bits_up": 9 * MESSAGE}), log)
    with forged(log) as file:
        change(file)
    code, found = verified(log, capfd)
    assert said in found and code == (said != "nothing is wrong")
