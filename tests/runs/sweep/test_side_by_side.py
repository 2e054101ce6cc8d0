"""Points that run side by side: what is known of them before, claims, progress, processes."""

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
