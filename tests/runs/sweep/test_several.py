"""Several sweeps of one folder at the same time, and shards of a sweep."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mpisim.cli import main
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


def test_two_sweeps_run_each_point_once(tmp_path, alone):
    file, logs = write(tmp_path, SEEDS, LONG), tmp_path / "logs"
    jobs = [start(file, logs, *more) for more in (("--jobs", "2"), ())]
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
