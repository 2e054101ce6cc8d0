"""Several sweeps of one folder at the same time, and shards of a sweep."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.core.files import FileLock
from mpisim.runs.sweep import runner
from mpisim.runs.sweep.points import read_summary
from tests.comm.jobs import HANG_SECONDS, environment
from tests.resumes import differences
from tests.runs.sweep.support import BASE, count_runs, run, write

SEEDS = "run.seed = [1, 2, 3, 4]"
LONG = BASE.replace("rounds = 12", "rounds = 3000\ncheckpoint_seconds = 0.05\nlog_every = 50")


def start(file: Path, logs: Path, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "mpisim", "sweep", str(file), "--out", str(logs), *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The points of one sweep that has the folder to itself."""
    folder = tmp_path_factory.mktemp("alone")
    return run(write(folder, SEEDS, LONG), folder)


def require_complete(logs, alone):
    """All points have the logs of ``alone``, and the summary says so; nothing else is left."""
    found = read_summary(logs)
    assert [(p.name, p.status, p.exit_code) for p in found] == [(p.name, "done", 0) for p in alone]
    for one, two in zip(alone, found, strict=True):
        assert differences(Path(one.log), Path(two.log)) == []
        assert two.seconds is not None
    assert [p.name for p in logs.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("words", [((), ()), (("--jobs", "2"), ())])
def test_two_sweeps_run_each_point_once(words, tmp_path, alone):
    file, logs = write(tmp_path, SEEDS, LONG), tmp_path / "logs"
    jobs = [start(file, logs, *more) for more in words]
    ended = [job.communicate(timeout=HANG_SECONDS) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], ended
    ran = Counter()
    for said, errors in ended:
        starts = r"(?=, about|$)" if "done: round" in errors else ": done in "
        ran.update(re.findall(rf"^\[(\d)/4\] .*?seed \d{starts}", said, re.MULTILINE))
        skipped = re.findall(r"^  skipped: .*: another run is writing it", said, re.MULTILINE)
        assert len(skipped) <= 2
    assert ran == {"1": 1, "2": 1, "3": 1, "4": 1}, ended
    require_complete(logs, alone)


def test_a_busy_point_comes_last(tmp_path, monkeypatch):
    """It runs if it is free by then; or is complete; else it is skipped."""
    file, ran = write(tmp_path, "run.seed = [1, 2, 3]"), count_runs(monkeypatch)
    [one, two, three] = run(file, tmp_path / "first")
    order = [Path(point.log).name for point in (two, three, one)]
    counted = runner.run_rounds
    for free in (True, False):
        ran.clear()
        logs = tmp_path / f"free {free}"
        logs.mkdir()
        lock = FileLock(logs / f".{one.name}.h5.lock")

        def release(setup, output, signals, lock=lock, free=free):
            if free and output.log.name == order[1]:
                lock.__exit__()
            return counted(setup, output, signals)

        monkeypatch.setattr(runner, "run_rounds", release)
        lock.__enter__()
        points = run(file, logs)
        assert [path.name for path in ran] == order[: 3 if free else 2]
        assert [p.status for p in points] == ["done" if free else "skipped", "done", "done"]
        if not free:
            assert "another run is writing it" in points[0].reason
            lock.__exit__()


def test_shards_are_the_sweep(tmp_path, monkeypatch, capfd):
    sweep = "run.seed = [1, 2, 3]\ncompressor.k = [10, 1000]"
    file, logs = write(tmp_path, sweep), tmp_path / "logs"
    everything = run(file, tmp_path / "alone")
    ran = count_runs(monkeypatch)
    for shard, numbers in (("2/4", (1, 5)), ("1/4", (0, 4)), ("4/4", (3,)), ("3/4", (2,))):
        ran.clear()
        before = [point.status for point in read_summary(logs)] if logs.exists() else [""] * 6
        assert main(["sweep", str(file), "--out", str(logs), "--shard", shard]) == 0
        expected = [everything[number] for number in numbers]
        done = [f"{point.name}.h5" for point in expected if point.status == "done"]
        assert [path.name for path in ran] == done
        after = [point.status for point in read_summary(logs)]
        for number, point in enumerate(everything):
            assert after[number] == (point.status if number in numbers else before[number])
    assert [(p.name, p.status) for p in read_summary(logs)] == [
        (p.name, p.status) for p in everything
    ]
    assert "6 points: 2 done, 4 not run; 0 of them" in capfd.readouterr().out


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "1/0", "-1/2", "a/b", "1/2/3", "1/2 "])
def test_a_shard_that_is_none(shard, tmp_path, capfd):
    assert main(["sweep", str(write(tmp_path)), f"--shard={shard}"]) == 2
    [line] = capfd.readouterr().err.splitlines()
    assert f"--shard: {shard!r} is not allowed; it must be I/N with integers 1 <= I <= N" in line
