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
from tests.helpers import attributes, before_row
from tests.resumes import differences
from tests.runs.sweep.support import BASE, count_runs, run, write

POINTS = """
problem.split = ["contiguous", "shuffled"]
run.seed = [1, 2, 3]
compressor.k = [10, 1000]
"""


def start(file: Path, logs: Path, *words: str) -> subprocess.Popen:
    sweep = "-m", "mpisim", "sweep", str(file), "--out", str(logs)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return jobs.start(1, *sweep, *words, **pipes)


def require_complete(logs, alone, timed=True):
    """All points have the logs of ``alone``, and the summary says so; nothing else is left.

    ``timed``: a sweep saw each run end. One that is killed may leave a log that no sweep has timed.
    """
    result = read_summary(logs)
    assert [(p.name, p.status, p.exit_code) for p in result] == [
        (p.name, p.status, p.exit_code) for p in alone
    ]
    for one, two in zip(alone, result, strict=True):
        if one.status == "done":
            assert differences(Path(one.log), Path(two.log)) == []
            assert two.seconds is not None or (two.before and not timed)
    assert [p.name for p in logs.iterdir() if p.name.startswith(".")] == []
    return result


def test_processes_write_the_same_logs(tmp_path):
    file = write(tmp_path, POINTS)
    alone = run(file, tmp_path / "alone")
    job = start(file, tmp_path / "jobs", "--jobs", "auto")
    output, errors = job.communicate(timeout=HANG_SECONDS)
    assert job.returncode == 0, errors
    assert all(" points done" in line for line in errors.splitlines())
    result = require_complete(tmp_path / "jobs", alone)
    assert Counter(p.status for p in result) == {"done": 6, "skipped": 6}
    log = next(point.log for point in result if point.status == "done")
    at_once = min(len(os.sched_getaffinity(0)), 12)
    assert attributes(log)["side_by_side"] == at_once
    assert output.startswith(f"12 points to run, {at_once} at a time\n")
    assert re.search(r"^\[1/12\] \S.* (k=|seed )\d+: done in ", output, re.MULTILINE)
    assert output.count("compressor.k: 1000 is not allowed") == 1
    assert "12 points: 6 done, 6 skipped; 0 of them complete before" in output


LONG = BASE.replace("rounds = 12", "rounds = 4000\ncheckpoint_seconds = 0.05\nlog_every = 50")
SEEDS = "run.seed = [1, 2, 3]"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The points of one sweep that has the folder to itself, and that nothing happens to."""
    folder = tmp_path_factory.mktemp("alone")
    return run(write(folder, SEEDS, LONG), folder)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("number", "whom", "code"),
    [
        (signal.SIGINT, "parent", 130),
        (signal.SIGKILL, "parent", -signal.SIGKILL),
        (signal.SIGKILL, "child", 1),
    ],
)
def test_processes_that_are_stopped_are_gone_on_with(number, whom, code, tmp_path, alone, seed):
    file = write(tmp_path, SEEDS, LONG)
    logs = tmp_path / "jobs"
    job = start(file, logs, "--jobs", "2")
    parent = psutil.Process(job.pid)
    while len(list(logs.glob("*.h5"))) < 2 and job.poll() is None:
        time.sleep(0.01)
    time.sleep(Random(seed).random() / 5)  # at any moment of their rounds
    children = parent.children()
    assert len(children) == 2
    (children[0] if whom == "child" else parent).send_signal(number)
    _, errors = job.communicate(timeout=HANG_SECONDS)
    assert job.returncode == code, errors
    assert not psutil.wait_procs(children, timeout=HANG_SECONDS)[1]
    assert errors.count("at round ") + errors.count("was killed by") >= 1
    if number == signal.SIGINT:
        result = Counter(p.status for p in read_summary(logs))
        left = 3 - result["done"]  # one may end in the moment of the signal
        assert f"mpisim: stopped by Ctrl-C; {left} of 3 points are left; the same command" in errors
        assert result["interrupted"] >= 1
    run(file, logs)
    require_complete(logs, alone, timed=code != -signal.SIGKILL)


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
    sweep = "run.seed = [1, 2, 3]\ncompressor.k = [10, 1000]"
    file, logs = write(tmp_path, sweep), tmp_path / "logs"
    everything = run(file, tmp_path / "alone")
    ran, output = count_runs(monkeypatch), ""
    for shard, numbers in (("2/4", (1, 5)), ("1/4", (0, 4)), ("4/4", (3,)), ("3/4", (2,))):
        ran.clear()
        before = [point.status for point in read_summary(logs)] if logs.exists() else [""] * 6
        output += command("sweep", file, "--out", logs, "--shard", shard)
        expected = [everything[number] for number in numbers]
        done = [f"{point.name}.h5" for point in expected if point.status == "done"]
        assert [path.name for path in ran] == done
        after = [point.status for point in read_summary(logs)]
        for number, point in enumerate(everything):
            assert after[number] == (point.status if number in numbers else before[number])
    assert [(p.name, p.status) for p in read_summary(logs)] == [
        (p.name, p.status) for p in everything
    ]
    assert "6 points: 2 done, 4 not run; 0 of them" in output
