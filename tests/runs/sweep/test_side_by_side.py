"""Points that run side by side: what is known of them before, claims, progress, processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import h5py
import psutil
import pytest

from mpisim.runs.sweep import grid
from mpisim.runs.sweep.plan import ROUND, plan
from mpisim.runs.sweep.points import read_summary
from tests.comm.jobs import HANG_SECONDS, environment
from tests.resumes import differences
from tests.runs.sweep.support import BASE, run, write

POINTS = """
problem.split = ["contiguous", "shuffled"]
run.seed = [1, 2, 3]
compressor.k = [10, 1000]
"""


def start(file: Path, logs: Path, jobs: str = "2") -> subprocess.Popen:
    words = ["sweep", str(file), "--out", str(logs), "--jobs", jobs]
    return subprocess.Popen(
        [sys.executable, "-m", "mpisim", *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_processes_write_the_same_logs(tmp_path):
    file = write(tmp_path, POINTS)
    alone = run(file, tmp_path / "alone")
    job = start(file, tmp_path / "jobs", "auto")
    said, errors = job.communicate(timeout=HANG_SECONDS)
    assert job.returncode == 0, errors
    assert all(" points done" in line for line in errors.splitlines())
    found = read_summary(tmp_path / "jobs")
    assert [(p.name, p.status) for p in found] == [(p.name, p.status) for p in alone]
    assert Counter(p.status for p in found) == {"done": 6, "skipped": 6}
    for one, two in zip(alone, found, strict=True):
        if one.status == "done":
            assert differences(Path(one.log), Path(two.log)) == []
            with h5py.File(two.log) as log:
                assert log.attrs["side_by_side"] == min(len(os.sched_getaffinity(0)), 12)
    assert re.search(r"^\[1/12\] \S.* (k=|seed )\d+: done in ", said, re.MULTILINE)
    assert said.count("compressor.k: 1000 is not allowed") == 1
    assert "12 points: 6 done, 6 skipped; 0 of them complete before" in said
    extra = [p for p in (tmp_path / "jobs").iterdir() if p.name.startswith(".")]
    assert extra == []


LONG = BASE.replace("rounds = 12", "rounds = 10_000\ncheckpoint_seconds = 0.05\nlog_every = 50")
SEEDS = "run.seed = [1, 2, 3]"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The points of the long runs, whom nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    return run(write(folder, SEEDS, LONG), folder)


@pytest.mark.parametrize(
    ("number", "whom", "code"),
    [
        (signal.SIGINT, "parent", 130),
        (signal.SIGKILL, "parent", -signal.SIGKILL),
        (signal.SIGKILL, "child", 1),
    ],
)
def test_processes_that_are_stopped_are_gone_on_with(number, whom, code, tmp_path, whole):
    file = write(tmp_path, SEEDS, LONG)
    logs = tmp_path / "jobs"
    job = start(file, logs)
    parent = psutil.Process(job.pid)
    while len(list(logs.glob("*.h5"))) < 2 and job.poll() is None:
        time.sleep(0.01)
    children = parent.children()
    assert len(children) == 2
    (children[0] if whom == "child" else parent).send_signal(number)
    _, errors = job.communicate(timeout=HANG_SECONDS)
    assert job.returncode == code, errors
    assert not psutil.wait_procs(children, timeout=HANG_SECONDS)[1]
    assert errors.count("at round ") + errors.count("was killed by") >= 1
    if number == signal.SIGINT:
        found = Counter(p.status for p in read_summary(logs))
        left = 3 - found["done"]  # one may end in the moment of the signal
        assert f"mpisim: stopped by Ctrl-C; {left} of 3 points are left; the same command" in errors
        assert found["interrupted"] >= 1
    points = run(file, logs)
    assert [p.status for p in points] == ["done"] * 3
    for one, two in zip(whole, points, strict=True):
        assert differences(Path(one.log), Path(two.log)) == []


def planned(tmp_path, sweep, base=BASE):
    _, tables = grid.read(write(tmp_path, sweep, base), [])
    return plan(tmp_path / "logs", tables, 4)


def test_sizes_and_bytes_of_points(tmp_path):
    sweep = """
    [[sweep.one]]
    run = { rounds = 24 }
    [[sweep.one]]
    problem = { workers = 6 }
    [[sweep.one]]
    run = { dtype = "float32" }
    """
    quadratic = """
    [problem]
    name = "quadratic"
    dimension = 1000
    workers = 10_000
    [method]
    name = "gd"
    stepsize = "theory"
    [run]
    rounds = 12
    """
    points = planned(tmp_path, sweep) + planned(tmp_path, "", quadratic)
    d = 123
    assert sorted((point.size, point.bytes) for point in points) == [
        (12 * (ROUND + 3 * d), 4 * 3 * d * 4),
        (12 * (ROUND + 6 * d), 4 * 6 * d * 8),
        (24 * (ROUND + 3 * d), 4 * 3 * d * 8),
        (12 * (ROUND + 1e7), 4 * 1e7 * 8),
    ]
    assert len({point.problem for point in points}) == 4


def test_points_that_ask_for_ranks_do_not_run_beside_others(tmp_path):
    sweep = 'run.ranks = ["workers", "all", 2]'
    assert [p.ranks for p in planned(tmp_path, sweep)] == [3, 4, 2]
    assert [p.ranks for p in planned(tmp_path, "")] == [None]
    free = BASE.replace("workers = 3\n", "")
    assert [p.ranks for p in planned(tmp_path, "", free)] == [4]  # the ranks are the workers
    assert [p.ranks for p in planned(tmp_path, sweep, free)] == [4, 4, 2]
