"""Started by test_jobs on 4 ranks: runs and sweeps on fewer ranks than the job has.

Every rank prints a line for each thing that is wrong and exits non-zero if there is one.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import tomllib
import traceback
from collections import Counter
from math import inf
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import mpisim
from mpisim.comm.communicators import on_subset
from mpisim.core.errors import Diverged, InputError
from mpisim.runs.host import guarded
from mpisim.runs.sweep import executor, grid
from mpisim.runs.sweep.points import Spread
from tests.helpers import attributes, columns, run_tables, table
from tests.resumes import differences

WORLD = MPI.COMM_WORLD
CORES = len(os.sched_getaffinity(0))
MARINA = {"name": "marina", "stepsize": "theory"}
RANDK = {"name": "randk", "k": 5}


def points_of(tables: dict, ways: dict) -> list:
    """The points of a sweep."""
    return grid.points(tables | {"sweep": ways}, [], "logs")[1]


def results_and_errors(folder: Path) -> None:
    """Of the ranks that work; those that sleep have rank 0's, and take no processor time."""
    for size in (4, 2, 1, 2):
        result = on_subset(WORLD, size, lambda part: (part.rank, part.size))
        assert result == ((WORLD.rank if WORLD.rank < size else 0), size), result

    def refuse(part):
        raise InputError(f"no, says rank {part.rank}")

    with pytest.raises(InputError, match=f"^no, says rank {WORLD.rank if WORLD.rank < 2 else 0}$"):
        on_subset(WORLD, 2, refuse)
    before = time.process_time()
    on_subset(WORLD, 2, lambda part: time.sleep(0.5))
    busy = time.process_time() - before
    assert WORLD.rank < 2 or busy < 0.2, f"a rank that sleeps takes {busy} s of 0.5 s"
    # one thread of a process watches its descriptors, however many jobs it starts
    threads = [guarded(lambda comm: 0) or threading.active_count() for _ in range(2)]
    assert threads[0] == threads[1], threads


def one_run(folder: Path) -> None:
    """A run on 2 of 4 ranks has the log of 1 rank; the log says 2."""
    two, one = folder / "two.h5", folder / "one.h5"
    run_tables(table(MARINA, RANDK, workers=5, ranks=2), two, WORLD)
    if WORLD.rank == 0:
        run_tables(table(MARINA, RANDK, workers=5), one)
        assert differences(one, two) == []
        log = attributes(two)
        assert log["ranks"] == 2 and "ranks = 2\n" in log["config"]
        assert log["oversubscribed"] == (CORES < 2)
    for layout, ranks in (("dedicated", 4), ("shared", 3)):  # with a server, and without
        tables = table(MARINA, RANDK, workers=3, ranks="workers", layout=layout)
        result = mpisim.run(mpisim.Experiment.from_dict(tables))
        assert result.attributes["ranks"] == ranks and result.rows["loss"].size == 21
        assert result.attributes["oversubscribed"] == (ranks > CORES)
        assert len({x.tobytes() for x in WORLD.allgather(result.x)}) == 1
    far = table({"name": "gd", "stepsize": 1e9}, problem={"name": "least-squares"}, rounds=60)
    far["run"]["ranks"] = 2
    with pytest.raises(Diverged):
        run_tables(far, folder / "far.h5", WORLD)
    many = table(MARINA, RANDK, workers=5, ranks="workers")
    with pytest.raises(InputError, match=r"^run\.ranks: the run needs 5 ranks, this job has 4"):
        run_tables(many, folder / "many.h5", WORLD)


def of(workers: int, ranks: int | str, layout: str) -> dict:
    """What a point of a sweep changes."""
    return {"problem": {"workers": workers}, "run": {"ranks": ranks, "layout": layout}}


SWEEP = [  # what a point changes, the ranks that it needs, and why it is skipped
    (of(2, "workers", "dedicated"), 3, ""),
    (of(2, 3, "shared"), 3, "at least"),
    (of(2, 3, "dedicated"), 3, ""),
    (of(3, "workers", "shared"), 3, ""),
    (of(3, "workers", "dedicated"), 4, ""),
    (of(5, "workers", "shared"), 5, "needs 5 ranks"),
    (of(5, "workers", "dedicated"), 6, "needs 6 ranks"),
]
# A problem comes back after another one on fewer ranks. Its theory step needs exchanges, which a
# rank must not skip because it slept meanwhile and so still has the constants.
BACK = [{}, {"run": {"ranks": 2}, "problem": {"split": "shuffled"}}, {"run": {"ranks": 4}}]


def sweep(folder: Path) -> None:
    """Points on 3 and 4 ranks; those that need more are skipped, whatever the others do."""
    tables = table(MARINA, RANDK, rounds=6)
    points = points_of(tables, {"way": [change for change, _, _ in SWEEP]})
    ended = executor.sweep(folder / "sweep", points, WORLD)
    assert len({repr([p.status for p in ps]) for ps in WORLD.allgather(ended)}) == 1
    losses: dict = {}
    for point, (_, ranks, why) in zip(ended, SWEEP, strict=True):
        assert point.ranks == ranks and why in point.reason
        assert point.status == ("skipped" if why else "done"), (point.settings, point.reason)
        if WORLD.rank == 0 and not why:
            assert attributes(point.log)["ranks"] == ranks
            loss = columns(Path(point.log))["loss"]
            assert np.array_equal(losses.setdefault(point.settings["problem.workers"], loss), loss)
    again = executor.sweep(folder / "sweep", points, WORLD)
    assert [p.before for p in again] == [p.status == "done" for p in ended]
    ended = executor.sweep(folder / "back", points_of(tables, {"way": BACK}), WORLD)
    assert [(p.ranks, p.status) for p in ended] == [(None, "done"), (2, "done"), (4, "done")]


def terminate(folder: Path, runs: int, processes: list[int]) -> None:
    """SIGTERM to them as soon as this one notes it and so many runs have logs in the folder."""
    while signal.getsignal(signal.SIGTERM) is ignored or len([*folder.glob("*.h5")]) < runs:
        time.sleep(0.01)
    for process in processes:
        os.kill(process, signal.SIGTERM)


def ignored(number: int, frame: object) -> None:
    """A SIGTERM before the sweep begins on this rank, or after its end, does nothing."""


def stopped(folder: Path) -> None:
    """SIGTERM reaches all ranks, also those that sleep; the sweep ends with the run."""
    tables = table(MARINA, RANDK, rounds=10**7, log_every=10**6, ranks=2)
    place, processes = folder / "stopped", WORLD.allgather(os.getpid())
    alarm = threading.Thread(target=terminate, args=(place, 1, processes))
    if WORLD.rank == 0:
        alarm.start()
    ended = executor.sweep(place, points_of(tables, {"run": {"seed": [1, 2]}}), WORLD)
    if WORLD.rank == 0:
        alarm.join()  # no signal comes in the next sweep
    assert [p.status for p in ended] == ["terminated", ""]


SHUFFLED = {"problem": {"split": "shuffled"}}
OTHERS = [{"run": {"ranks": 2}}, {"run": {"ranks": "all"}}, {"compressor": {"k": 1000}}]
OTHERS += [SHUFFLED, SHUFFLED | {"run": {"seed": 2}}, {"run": {"seed": 2}}, {}]


def side_by_side(folder: Path) -> None:
    """Points on groups of 1 and of 2 ranks, in little memory, and those that ask for ranks."""
    points = points_of(table(MARINA, RANDK, rounds=10), {"way": OTHERS})
    for size, free, at_once in ((1, inf, 4), (2, inf, 2), (1, 0.0, 4)):
        place = folder / f"{size} {free}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mpisim.runs.sweep.executor.available_memory", lambda free=free: free)
            ended = executor.sweep(place, points, WORLD, spread=Spread(size))
        assert len({repr(ps) for ps in WORLD.allgather(ended)}) == 1
        assert Counter(p.status for p in ended) == {"done": 6, "skipped": 1}
        for point in (p for p in ended if WORLD.rank == 0 and p.status == "done"):
            log = attributes(point.log)
            item = point.settings.get("run.ranks")
            expected = {2: (2, 1), "all": (4, 1), None: (size, at_once)}[item]
            assert (log["ranks"], log["side_by_side"]) == expected
            reference = folder / f"{point.name}.h5"
            if not reference.exists():
                tables = tomllib.loads(point.config)
                tables["run"].pop("ranks", None)
                run_tables(tables, reference)
            assert differences(reference, Path(point.log)) == []
    with pytest.raises(InputError, match="--ranks-per-run: 5 is not allowed"):
        executor.sweep(folder / "many", points, WORLD, spread=Spread(5))


def stopped_side_by_side(folder: Path) -> None:
    """SIGTERM reaches one rank, and stops the runs of all; points that ask for ranks do not run."""
    tables = table(MARINA, RANDK, rounds=10**7, log_every=10**6)
    ways = {"run": {"seed": [1, 2, 3, 4, 5, 6]}, "way": [{}, {"run": {"ranks": 1}}]}
    place = folder / "stopped side by side"
    if WORLD.rank == 2:
        threading.Thread(target=terminate, args=(place, 4, [os.getpid()])).start()
    ended = executor.sweep(place, points_of(tables, ways), WORLD)
    assert Counter(p.status for p in ended) == {"terminated": 4, "": 8}
    assert all(p.ranks is None for p in ended if p.status)


def main() -> int:
    """The number of checks that fail on this rank."""
    wrong = 0
    folder = tempfile.TemporaryDirectory() if WORLD.rank == 0 else None
    place = Path(WORLD.bcast(folder.name if folder else ""))
    signal.signal(signal.SIGTERM, ignored)
    checks = results_and_errors, one_run, sweep, stopped, side_by_side, stopped_side_by_side
    for check in checks:
        try:
            check(place)
        except Exception:
            wrong += 1
            print(f"rank {WORLD.rank}: {traceback.format_exc()}", flush=True)
        WORLD.Barrier()
    if folder:
        folder.cleanup()
        print(f"{WORLD.size} ranks checked", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
