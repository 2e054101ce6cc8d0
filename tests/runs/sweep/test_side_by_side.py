"""Sweeps by several processes and ranks, and several sweeps of one folder."""

import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random

import psutil
import pytest

import mpisim
from mpisim.core.errors import MpisimError
from mpisim.core.schema import choose
from mpisim.runs.sweep.points import read_summary
from tests.comm import jobs
from tests.comm.jobs import HANG_SECONDS
from tests.helpers import attributes, before_row, some_of
from tests.resumes import differences
from tests.runs.sweep.support import BASE, count_runs, run, write

POINTS = "run.seed = [1, 2, 3]\ncompressor.k = [10, 1000]"


def start(file: Path, logs: Path, *words: str) -> subprocess.Popen:
    sweep = "-m", "mpisim", "sweep", str(file), "--out", str(logs)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return jobs.start(1, *sweep, *words, **pipes)


def require_complete(logs, alone, timed=True):
    """All points have the logs of ``alone``, and the summary says so; nothing else is left.

    ``timed``: a sweep saw each run end. One that is killed may leave a log that no sweep has timed.
    """
    result = read_summary(logs)
    for one, two in zip(alone, result, strict=True):
        assert (one.name, one.status, one.exit_code) == (two.name, two.status, two.exit_code)
        if one.status == "done":
            assert differences(Path(one.log), Path(two.log)) == []
            assert two.seconds is not None or (two.before and not timed)
    assert list(logs.glob(".*")) == []
    return result


def test_processes_write_the_same_logs(tmp_path):
    file = write(tmp_path, POINTS)
    alone = run(file, tmp_path / "alone")
    job = start(file, tmp_path / "jobs", "--jobs", "auto")
    output, errors = job.communicate(timeout=HANG_SECONDS)
    assert job.returncode == 0, errors
    assert all(" points done" in line for line in errors.splitlines())
    result = require_complete(tmp_path / "jobs", alone)
    assert Counter(p.status for p in result) == {"done": 3, "skipped": 3}
    log = next(point.log for point in result if point.status == "done")
    at_once = min(len(os.sched_getaffinity(0)), 6)
    assert attributes(log)["side_by_side"] == at_once
    assert output.startswith(f"6 points to run, {at_once} at a time\n")
    assert re.search(r"^\[1/6\] \S.* (k=|seed )\d+: done in ", output, re.MULTILINE)
    assert output.count("compressor.k: 1000 is not allowed") == 1
    assert "6 points: 3 done, 3 skipped; 0 of them complete before" in output


LONG = BASE.replace("rounds = 12", "rounds = 3000\ncheckpoint_seconds = 0.05\nlog_every = 50")
SEEDS = "run.seed = [1, 2, 3]"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The points of one sweep that has the folder to itself, and that nothing happens to."""
    folder = tmp_path_factory.mktemp("alone")
    return run(write(folder, SEEDS, LONG), folder)


STOPS = {"interrupted": (signal.SIGINT, 130), "killed": (signal.SIGKILL, -signal.SIGKILL)}
STOPS |= {"a child killed": (signal.SIGKILL, 1)}


@some_of(1, how=STOPS)
def test_processes_that_are_stopped_are_gone_on_with(how, tmp_path, alone, seed):
    number, code = STOPS[how]
    file, logs = write(tmp_path, SEEDS, LONG), tmp_path / "jobs"
    job = start(file, logs, "--jobs", "2")
    parent = psutil.Process(job.pid)
    while len(list(logs.glob("*.h5"))) < 2 and job.poll() is None:
        time.sleep(0.01)
    time.sleep(Random(seed).random() / 5)  # at any moment of their rounds
    children = parent.children()
    assert len(children) == 2
    (children[0] if how == "a child killed" else parent).send_signal(number)
    _, errors = job.communicate(timeout=HANG_SECONDS)
    assert job.returncode == code, errors
    assert not psutil.wait_procs(children, timeout=HANG_SECONDS)[1]
    assert errors.count("at round ") + errors.count("was killed by") >= 1
    if how == "interrupted":
        result = Counter(p.status for p in read_summary(logs))
        left = 3 - result["done"]  # one may end in the moment of the signal
        assert f"mpisim: stopped by Ctrl-C; {left} of 3 points are left; the same command" in errors
        assert result["interrupted"] >= 1
    run(file, logs)
    require_complete(logs, alone, timed=how != "killed")


@pytest.mark.parametrize("jobs", [-1, 2])
def test_processes_that_fail_or_that_cannot_be_are_one_line(jobs, tmp_path, monkeypatch, capfd):
    file = write(tmp_path, "run.seed = [1, 2]")
    before_row(monkeypatch, lambda k: choose({}, None, "a plugin"))
    with pytest.raises(MpisimError, match=r"a process of the sweep has failed|--jobs: -1") as error:
        mpisim.sweep(file, tmp_path / "logs", jobs=jobs)
    assert error.value.exit_code == 2
    assert (jobs > 0) == ("mpisim: a plugin: missing" in capfd.readouterr().err)


def test_two_sweeps_run_each_point_once(tmp_path, alone):
    file, logs = write(tmp_path, SEEDS, LONG), tmp_path / "logs"
    jobs = [start(file, logs, *more) for more in (("--jobs", "2"), ())]
    ended = [job.communicate(timeout=HANG_SECONDS) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], ended
    ran = Counter()
    for message, errors in ended:
        starts = r"(?=, about|$)" if "done: round" in errors else ": done in "
        ran.update(re.findall(rf"^\[(\d)/3\] .*?seed \d{starts}", message, re.MULTILINE))
        skipped = re.findall(r"^  skipped: .*: another run is writing it", message, re.MULTILINE)
        assert len(skipped) <= 2
    assert ran == {"1": 1, "2": 1, "3": 1}, ended
    require_complete(logs, alone)


def test_shards_are_the_sweep(tmp_path, monkeypatch, command):
    file, logs = write(tmp_path, POINTS), tmp_path / "logs"
    expected = [(point.name, point.status) for point in run(file, tmp_path / "alone")]
    status, ran, output = [""] * 6, count_runs(monkeypatch), ""
    for shard, numbers in (("2/4", (1, 5)), ("1/4", (0, 4)), ("4/4", (3,)), ("3/4", (2,))):
        ran.clear()
        output += command("sweep", file, "--out", logs, "--shard", shard)
        for number in numbers:
            status[number] = expected[number][1]
        assert [point.status for point in read_summary(logs)] == status
        assert [path.stem for path in ran] == [
            name for name, end in (expected[n] for n in numbers) if end == "done"
        ]
    assert [(point.name, point.status) for point in read_summary(logs)] == expected
    assert "6 points: 2 done, 4 not run; 0 of them" in output
