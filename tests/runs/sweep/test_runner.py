"""What is run, resumed, skipped and recorded."""

import json
import os
import signal
from pathlib import Path

import h5py
import numpy as np
import pytest

from mpisim.cli import main
from mpisim.core.errors import InputError
from mpisim.runs import checkpoint
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.sweep.points import read_summary
from tests.helpers import columns, cut_rows, without_rehearsal
from tests.runs.sweep.support import BASE, count_runs, run, write

TWO_METHODS = """
[[sweep.methods]]
method = { name = "marina" }
[[sweep.methods]]
method = { name = "diana" }
"""


def names(points):
    return {point.name for point in points}


def test_adding_seeds_and_methods_repeats_nothing(tmp_path, monkeypatch):
    ran = count_runs(monkeypatch)
    logs = tmp_path / "logs"
    first = run(write(tmp_path, "run.seed = [1, 2]"), logs)
    assert [p.status for p in first] == ["done", "done"] and len(ran) == 2
    content = {p.name: columns(logs / f"{p.name}.h5") for p in first}
    more = run(write(tmp_path, "run.seed = [2, 3, 1]\n" + TWO_METHODS), logs)
    assert names(first) < names(more) and len(more) == 6
    assert len(ran) == 6 and len(set(ran)) == 6
    assert {p.name for p in more if p.before} == names(first)
    for name, before in content.items():
        after = columns(logs / f"{name}.h5")
        assert all(np.array_equal(before[c], after[c]) for c in before)
    seconds = {p.name: p.seconds for p in first}
    assert all(p.seconds == seconds[p.name] for p in more if p.before)


class Killed(Exception):
    pass


def killed_at(patch, k):
    """The process dies at row k."""
    original = Evaluator.row

    def row(self, number, *arguments):
        if number == k:
            raise Killed
        return original(self, number, *arguments)

    patch.setattr(Evaluator, "row", row)


HARMS = {  # and the row from which the run goes on
    "": 7,
    "no checkpoint": 6,
    "bad checkpoint": 6,
    "bad checkpoints": 0,
    "short log": None,  # not the log that was written: it stays as it is
    "bad log": None,
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_killed_run_is_gone_on_with(harm, tmp_path, monkeypatch):
    file = write(tmp_path, "run.checkpoint_seconds = [1e-9]")
    [reference] = run(file, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_at(patch, 8)
        run(file, tmp_path / "parts")
    log = tmp_path / "parts" / f"{reference.name}.h5"
    with h5py.File(log, "r+") as opened:
        assert opened["rounds/round"].size == 8
        opened.attrs["status"] = "running"  # as kill -9 leaves it
        if harm == "short log":
            cut_rows(opened, 3)
    if harm == "no checkpoint":
        checkpoint.path_for(log).unlink()
    elif harm.startswith("bad checkpoint"):
        checkpoint.path_for(log).write_bytes(b"rubbish")
        if harm == "bad checkpoints":
            checkpoint.former(checkpoint.path_for(log)).write_bytes(b"rubbish")
    elif harm == "bad log":
        log.write_bytes(b"rubbish")
    rows, content = [], log.read_bytes()
    original = Evaluator.row
    without_rehearsal(monkeypatch)
    monkeypatch.setattr(Evaluator, "row", lambda s, k, *a: rows.append(k) or original(s, k, *a))
    [point] = run(file, tmp_path / "parts")
    if HARMS[harm] is None:
        assert point.status == "skipped" and f"{log}: " in point.reason and rows == []
        assert point.reason.endswith("; move it away") and log.read_bytes() == content
        return
    assert point.status == "done" and rows == list(range(HARMS[harm], 13))
    one, two = columns(tmp_path / "whole" / f"{reference.name}.h5"), columns(log)
    for name in one:
        assert name.startswith("time_") or np.array_equal(one[name], two[name]), name


def test_a_complete_log_whose_rows_were_edited_is_not_complete(tmp_path):
    file = write(tmp_path, "run.seed = [1]")
    [point] = run(file, tmp_path / "logs")
    with h5py.File(point.log, "r+") as log:
        log["rounds/loss"][3] = 0.0
    content = Path(point.log).read_bytes()
    [point] = run(file, tmp_path / "logs")
    assert point.status == "skipped" and point.reason.endswith("(rows_sha256); move it away")
    assert Path(point.log).read_bytes() == content


DEEP = "[" * 100_000
POINT = {"name": "a", "log": "a.h5", "settings": {}, "config": ""}
SUMMARIES = ["[]", "{", DEEP, f'{{"points": {DEEP}', '{"points": 3}', '{"points": [[3]]}']
SUMMARIES += [
    json.dumps({"points": [POINT | bad]}) for bad in ({"name": []}, {"status": 3}, {"x": 1})
]


@pytest.mark.parametrize("text", SUMMARIES, ids=range(len(SUMMARIES)))
def test_a_damaged_summary_is_one_line(text, tmp_path):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match="not the summary of a sweep; run"):
        read_summary(tmp_path)


def test_sigterm_stops_the_sweep_and_the_next_one_goes_on(tmp_path, monkeypatch, capfd):
    file, logs = write(tmp_path, "run.seed = [1, 2, 3]"), tmp_path / "logs"
    original = Evaluator.row

    def row(self, k, *arguments):
        if self.star.streams.seed == 2 and k == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, k, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "row", row)
        assert main(["sweep", str(file), "--out", str(logs)]) == 143
    assert [p.status for p in read_summary(logs)] == ["done", "terminated", ""]
    assert read_summary(logs)[1].exit_code == 143
    ran = count_runs(monkeypatch)
    assert main(["sweep", str(file), "--out", str(logs)]) == 0
    assert len(ran) == 2 and [p.status for p in read_summary(logs)] == ["done"] * 3
    assert "3 points: 3 done; 1 of them complete before" in capfd.readouterr().out


def test_impossible_points_are_skipped_with_their_reason(tmp_path, capfd):
    sweep = """
    compressor.k = [5, 1000]
    problem.data = ["nowhere", "sample"]
    [[sweep.methods]]
    method = { name = "marina" }
    [[sweep.methods]]
    method = { name = "marina", alpha = 0.5 }
    [[sweep.methods]]
    method = { name = "ef" }
    """
    file, logs = write(tmp_path, sweep), tmp_path / "logs"
    assert main(["sweep", str(file), "--out", str(logs)]) == 0
    points = json.loads((logs / "sweep.json").read_text())["points"]
    assert len(points) == 12
    [done] = [p for p in points if p["status"] == "done"]
    assert done["settings"]["compressor.k"] == 5 and done["exit_code"] == 0
    reasons = {
        (p["settings"]["method.name"], p["settings"]["compressor.k"], p["settings"]["problem.data"])
        + (("alpha",) if "method.alpha" in p["settings"] else ()): p["reason"]
        for p in points
        if p["status"] == "skipped" and p["exit_code"] == 2
    }
    assert len(reasons) == 11
    assert "compressor.k: 1000 is not allowed" in reasons["marina", 1000, "sample"]
    assert "data 'nowhere': not found" in reasons["marina", 5, "nowhere"]
    assert "method.alpha: unknown key" in reasons["marina", 5, "sample", "alpha"]
    assert "no theorem for 'ef'" in reasons["ef", 5, "sample"]
    said = capfd.readouterr().out
    assert said.count("data 'nowhere'") == 1 and "for the same reason" in said
    assert "12 points: 11 skipped, 1 done" in said
    assert len(list(logs.glob("*.h5"))) == 1


def test_divergence_is_recorded_and_the_sweep_goes_on(tmp_path, monkeypatch):
    base = BASE.replace("nonconvex-loss", "least-squares").replace("rounds = 12", "rounds = 60")
    file = write(tmp_path, "method.stepsize = [1e9, 0.01]", base)
    points = run(file, tmp_path / "logs")
    assert [(p.status, p.exit_code) for p in points] == [("diverged", 3), ("done", 0)]
    assert points == read_summary(tmp_path / "logs")
    ran = count_runs(monkeypatch)
    again = run(file, tmp_path / "logs")
    assert not ran and [p.status for p in again] == ["diverged", "done"]


def test_problems_are_loaded_once_and_give_the_same_logs(tmp_path, monkeypatch):
    from mpisim.problems.glm import Glm
    from tests.helpers import run_tables

    loads = []
    original = Glm.load
    monkeypatch.setattr(Glm, "load", lambda self, *a: loads.append(a) or original(self, *a))
    sweep = "run.seed = [1, 2]\nproblem.split = ['contiguous', 'shuffled']\n" + TWO_METHODS
    points = run(write(tmp_path, sweep), tmp_path / "logs")
    assert len(points) == 8 and len(loads) == 3  # contiguous, and shuffled by each seed
    import tomllib

    for point in points:
        alone = tmp_path / "alone.h5"
        run_tables(tomllib.loads(point.config), alone, force=True)
        one, two = columns(alone), columns(tmp_path / "logs" / f"{point.name}.h5")
        for name in one:
            assert name.startswith("time_") or np.array_equal(one[name], two[name]), name


def test_a_log_of_another_experiment_is_left_alone(tmp_path):
    file, logs = write(tmp_path), tmp_path / "logs"
    [point] = run(file, logs)
    with h5py.File(point.log, "r+") as log:
        log.attrs["config"] = "something else"
    before = columns(logs / f"{point.name}.h5")
    [again] = run(file, logs)
    assert again.status == "skipped" and "another experiment" in again.reason
    assert np.array_equal(before["loss"], columns(logs / f"{point.name}.h5")["loss"])
