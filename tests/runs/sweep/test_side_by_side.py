"""Points that run side by side: what is known of them before, claims, progress, processes."""

from __future__ import annotations

import io
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

from mpisim.cli import main
from mpisim.core import machine
from mpisim.core.errors import InputError, OutputError
from mpisim.runs.sweep import grid
from mpisim.runs.sweep.claims import Claims, new_claims
from mpisim.runs.sweep.executor import _require_shared
from mpisim.runs.sweep.group import Watch
from mpisim.runs.sweep.order import ROUND, Work, say_what_fits, share, works_of
from mpisim.runs.sweep.plan import plan
from mpisim.runs.sweep.points import ALONE, Outcome, Point, read_summary
from mpisim.runs.sweep.progress import Board, PointLines
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


def test_jobs_are_a_number_or_auto_and_not_for_mpirun(tmp_path, capfd, monkeypatch):
    file = write(tmp_path)
    for jobs, said in (("0", "must be at least 1 or auto"), ("many", "invalid")):
        assert main(["sweep", str(file), "--jobs", jobs]) == 2
        assert said in capfd.readouterr().err
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert main(["sweep", str(file), "--jobs", "2"]) == 2
    assert "under mpirun the ranks run side by side" in capfd.readouterr().err


def test_more_ranks_a_run_than_there_are(tmp_path, capfd):
    file = write(tmp_path)
    assert main(["sweep", str(file), "--ranks-per-run", "2"]) == 2
    assert "--ranks-per-run: 2 is not allowed; it must be an integer from 1" in (
        capfd.readouterr().err
    )


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
    works = works_of(points, range(4))
    d = 123
    assert sorted((work.size, work.bytes) for work in works) == [
        (12 * (ROUND + 3 * d), 4 * 3 * d * 4),
        (12 * (ROUND + 6 * d), 4 * 6 * d * 8),
        (24 * (ROUND + 3 * d), 4 * 3 * d * 8),
        (12 * (ROUND + 1e7), 4 * 1e7 * 8),
    ]
    assert len({work.problem for work in works}) == 4


def test_points_that_ask_for_ranks_do_not_run_beside_others(tmp_path):
    sweep = 'run.ranks = ["workers", "all", 2]'
    assert [p.ranks for p in planned(tmp_path, sweep)] == [3, 4, 2]
    assert [p.ranks for p in planned(tmp_path, "")] == [None]
    free = BASE.replace("workers = 3\n", "")
    assert [p.ranks for p in planned(tmp_path, "", free)] == [4]  # the ranks are the workers
    assert [p.ranks for p in planned(tmp_path, sweep, free)] == [4, 4, 2]


def test_free_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert machine.available_memory() == float("inf")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   8 kB\n")
    assert machine.available_memory() == 8192
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.available_memory() == 8192
    (tmp_path / "memory.max").write_text("4000\n")
    assert machine.available_memory() == 3000
    assert share([("a", 8.0), ("a", 6.0), ("b", 4.0)]) == 9  # as if each group had 3


def test_a_line_says_when_fewer_run_side_by_side(capsys):
    works = [Work(0, 1, 9e9, "a"), Work(1, 1, 9e9, "a"), Work(2, 1, 1e9, "a")]
    say_what_fits(works, [float("inf")] * 2, 20e9)
    assert capsys.readouterr().out == ""
    say_what_fits(works, [float("inf"), 1e9], 10e9)
    line = "2 of 3 points need up to 9 GB each, 10 GB are free: 1 of them at a time, not 2\n"
    assert capsys.readouterr().out == line


@pytest.fixture
def claims(tmp_path):
    with new_claims(tmp_path) as found:
        yield found


def test_a_point_is_claimed_once(tmp_path):
    killed = tmp_path / ".side-by-side-0"
    killed.mkdir()
    (killed / "3.taken").touch()
    with new_claims(tmp_path) as claims:
        assert not killed.exists()
        other = Claims(claims.folder)
        assert other.seen() and not Claims(tmp_path / "another").seen()
        assert claims.taken() == set()
        assert claims.take(3) and not other.take(3) and other.take(12)
        assert claims.taken() == {3, 12}
        other.end(12, Outcome("skipped", "no data", 1.5))
        assert claims.ended(()) == {12: ("skipped", "no data", 1.5, False)}
        assert claims.ended({12}) == {} and claims.stopped() == 0
        other.stop("interrupted")
        assert claims.stopped() == signal.SIGINT
        with new_claims(tmp_path) as of_another_sweep:
            assert of_another_sweep.take(3) and claims.seen()
    assert not any(tmp_path.iterdir()) and not other.seen()
    with pytest.raises(OutputError, match=r"side-by-side-\w+: cannot be used: No such file"):
        claims.take(4)


def test_claims_where_files_cannot_be_locked(tmp_path, monkeypatch):
    """Nothing tells there whether a sweep is running, so its claims stay."""

    def refuse(*_):
        raise OSError("no locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    with new_claims(tmp_path) as claims, new_claims(tmp_path):
        assert claims.seen()


def test_one_line_of_progress(tmp_path, capsys, claims):
    points = [Point(f"p{i}", f"{i}.h5", {}, "") for i in range(5)]
    points[4].end("skipped", "no")
    works = [Work(0, 8, 0, "a"), Work(1, 1, 0, "a"), Work(2, 1, 0, "a"), Work(3, 2, 0, "a")]
    clock, stream = iter([100.0, 101.0, 111.0]), io.StringIO()
    board = Board(
        *(tmp_path, works, claims, PointLines(points), ALONE, True, stream),
        clock=lambda: next(clock),
    )
    claims.take(0)
    claims.take(1)
    board.update()
    assert stream.getvalue() == "" == capsys.readouterr().out
    claims.end(0, Outcome("diverged", "", 4.0))
    claims.take(2)
    board.update()
    assert capsys.readouterr().out == "[1/5] 0.h5: diverged in 4.0 s\n"
    # 8 of 12 in 11 s
    line = "1 of 5 points done (1 diverged), 2 running, 1 failed, about 5.5 s left\n"
    assert stream.getvalue() == line
    assert [p.status for p in read_summary(tmp_path)] == ["diverged", "", "", "", "skipped"]


def test_the_time_is_told_before(tmp_path, capsys, claims):
    """From the rehearsals of the runs that begin: 100 and 300 s for 4 of 12, two at a time."""
    points = [Point(f"p{i}", f"{i}.h5", {}, "") for i in range(4)]
    works = [Work(0, 1, 0, "a"), Work(1, 3, 0, "a"), Work(2, 6, 0, "a"), Work(3, 2, 0, "a")]
    clock, stream = iter([0.0, 5.0, 9.0, 11.0, 75.0]), io.StringIO()
    board = Board(
        *(tmp_path, works, claims, PointLines(points), ALONE, True, stream),
        clock=lambda: next(clock),
    )
    for number in (0, 1):
        claims.take(number)
    claims.expect(0, 100.0)
    board.update()  # the other one has not rehearsed
    assert capsys.readouterr().out == ""
    claims.expect(1, 300.0)
    board.update()
    assert capsys.readouterr().out == "about 10 min 00 s for 4 runs, 2 at a time\n"
    board.update()
    board.update()
    assert capsys.readouterr().out == ""
    first, second = stream.getvalue().splitlines()
    assert first.endswith("2 running, 0 failed, about 9 min 49 s left")
    assert second.endswith("about 8 min 45 s left")


def test_short_sweeps_are_not_announced(tmp_path, capsys, claims):
    lines = PointLines([Point("p", "p.h5", {}, "")])
    board = Board(tmp_path, [Work(0, 1, 0, "a")], claims, lines, ALONE, True, io.StringIO())
    claims.take(0)
    claims.expect(0, 59.0)
    board.update()
    assert capsys.readouterr().out == ""


def test_a_folder_that_is_not_shared(tmp_path, claims):
    from mpi4py import MPI

    elsewhere = Claims(tmp_path / "another")
    _require_shared(MPI.COMM_SELF, claims, True)
    _require_shared(MPI.COMM_SELF, elsewhere, False)
    with pytest.raises(InputError, match=r"is not shared with .*--ranks-per-run 1 runs one after"):
        _require_shared(MPI.COMM_SELF, elsewhere, True)


@pytest.mark.parametrize(
    ("parent", "also", "stop", "number"),
    [
        (os.getppid(), 0, "", 0),
        (os.getppid(), signal.SIGINT, "", signal.SIGINT),
        (os.getppid(), 0, "interrupted", signal.SIGINT),
        (-1, 0, "", signal.SIGTERM),  # mpirun was killed; its ranks do not go on alone
    ],
)
def test_a_group_stops_with_the_others(parent, also, stop, number, claims):
    if stop:
        claims.stop(stop)
    assert Watch(claims, lambda: also, parent)() == number
