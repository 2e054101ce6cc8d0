"""A folder that two hosts share, without locks, in which changes are seen late, each file's by a
time of its own, as on NFS.

A job on one host is killed. The other host goes on with what it sees: each file as it was some
moments before, or not yet there, or still there. It must end with the log of an undisturbed run, or
refuse with one line, and succeed as soon as it sees the files as they are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import shutil
import tempfile
import threading
import time
from pathlib import Path

import tomli_w

from tests.trials import job as jobs
from tests.trials.entry import Fault

ROUNDS = 4000
EVERY = 0.01  # seconds between two looks at the folder
FILES = ("log.h5", "log.h5.ckpt", "log.h5.ckpt.old", "log.h5.journal")


@dataclasses.dataclass(frozen=True)
class Trial:
    """A job of some ranks that is killed so many seconds after its first checkpoint.

    delays : of what the other host sees of `FILES`, in seconds; again : its ranks, 0: this process
    """

    experiment: str
    ranks: int
    moment: float
    delays: tuple[float, ...]
    again: int

    def tables(self) -> dict:
        """The experiment."""
        return jobs.tables_of(self.experiment, rounds=ROUNDS, checkpoint_seconds=0.05)


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed."""
    rng = random.Random(f"share {seed}/{number}")
    delays = tuple(rng.choice([0.0, rng.uniform(0, 0.3), rng.uniform(0, 2)]) for _ in FILES)
    ranks, moment = rng.choice([1, 1, 2]), rng.uniform(0, 1.5)
    return Trial(
        rng.choice(list(jobs.EXPERIMENTS)), ranks, moment, delays, rng.choice([0, 0, 1, 2])
    )


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong, and whether the job was killed before it had ended."""
    with tempfile.TemporaryDirectory() as name:
        parent, here, there = Path(name), Path(name) / "here", Path(name) / "there"
        here.mkdir()
        there.mkdir()
        (parent / "job.toml").write_text(tomli_w.dumps(trial.tables()))
        with Seen(here) as seen:
            problems, killed = _killed(trial, parent, here / "log.h5")
        if problems:
            return "; ".join(problems), killed
        for path, content in seen.late(trial.delays).items():
            (there / path).write_bytes(content)
        log, tables = there / "log.h5", trial.tables()
        message = jobs.go_on(trial.again, parent, tables, log, "--resume").strip()
        if message and "\n" in message:
            return f"refused with several lines: {message}", killed
        if message:
            shutil.rmtree(there)
            shutil.copytree(here, there, ignore=shutil.ignore_patterns(".*"))
        name = trial.experiment
        return jobs.goes_on(trial.again, parent, name, tables, log, rounds=ROUNDS), killed


class Seen:
    """What the files of a folder were, and when, while in the ``with`` statement."""

    def __init__(self, folder: Path):
        self._folder, self._stop = folder, threading.Event()
        self._states: dict[str, list[tuple[float, bytes | None]]] = {name: [] for name in FILES}
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Seen:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def late(self, delays: tuple[float, ...]) -> dict[str, bytes]:
        """The content of those files that are there for one who sees them so much later."""
        end, out = time.monotonic(), {}
        for (name, states), delay in zip(self._states.items(), delays, strict=True):
            seen = [content for when, content in states if when <= end - delay or not delay]
            if seen and seen[-1] is not None:
                out[name] = seen[-1]
        return out

    def _look(self) -> None:
        while True:
            last = self._stop.is_set()
            for name, states in self._states.items():
                content = None
                with contextlib.suppress(OSError):
                    content = (self._folder / name).read_bytes()
                if not states or states[-1][1] != content:
                    states.append((time.monotonic(), content))
            if last:
                return
            self._stop.wait(EVERY)


def _killed(trial: Trial, parent: Path, log: Path) -> tuple[list[str], bool]:
    """Run the job until it is killed: what is wrong, and whether it was running then."""
    fault = Fault("no locks", "start", 1, 0, 0, "", str(parent / "mark"))
    job = jobs.start_with(fault, trial.ranks, parent, str(parent / "job.toml"), "--out", str(log))
    begin = time.monotonic()
    while job.poll() is None and not (log.parent / "log.h5.ckpt").exists():
        time.sleep(EVERY)
    end = time.monotonic() + trial.moment
    while job.poll() is None and time.monotonic() < end:
        time.sleep(EVERY)
    running = job.poll() is None
    if running:
        jobs.kill(job, dataclasses.replace(fault, action="kill"))
    in_time = jobs.wait_for(job, parent, lambda: time.monotonic() > max(end, begin) + jobs.PATIENCE)
    problems = jobs.what_is_left(parent, (parent / "stderr").read_text())
    return problems + ([] if in_time else ["still running after it was killed"]), running
