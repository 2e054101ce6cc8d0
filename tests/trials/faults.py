"""Starts of one command line, each of which is disturbed, and what is left of them.

Whatever is left must be resumed by the next one, on other ranks, and by the last to the log of an
undisturbed run. What an exit code 0 has promised must be there, also after a power cut. Another
host that sees the files late, as on NFS, resumes too, or refuses with one line and resumes as soon
as it sees the files as they are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tomli_w

from mpisim.runs import checkpoint
from mpisim.runs.log import journal
from tests.helpers import columns
from tests.resumes import differences
from tests.trials import disk
from tests.trials import job as jobs
from tests.trials.entry import EVERYWHERE, GROUPS, NEVER, OUT, PLACES, Fault

ANYWHERE = ("kill", "kill mpirun", "raise", "terminate", "interrupt", "out of memory")
OUTPUT = ("limit", "fill", "unwritable", "use up inodes")
KILLS = ("kill", "kill", "kill mpirun")
OUTSIDE = {*KILLS, "cut power", "no locks"}  # what may come from outside, at a moment
OFTEN = {"gather": 300, "broadcast": 400, "row": 60, "checkpoint": 5}  # calls to choose from
OFTEN |= {"journal, rows": 8, "writing": 30, "log, whole": 5, "log, a column": 80}
OFTEN |= {"writing a whole file": 15, "replacing a file": 8, "naming a new file": 8}
FILES = ("log.h5", "log.h5.ckpt", "log.h5.ckpt.old", "log.h5.journal")
UNNAMED = (".log.h5.lock", ".log.h5.new", ".log.h5.ckpt.new", ".log.h5.journal.new")
STOPPED = "mpisim: stopped by SIGTERM"


class Start(NamedTuple):
    """One start: its ranks and layout, and where the fault is, or when.

    moment : seconds after the first file, when a process is killed or the power is cut from
        outside; None: the fault happens inside
    """

    ranks: int
    layout: str
    fault: Fault
    moment: float | None = None


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is run, and what happens.

    again : ranks that go on with it; 0: this process
    cut : which file is cut short afterwards ("": none), to which share of it
    delays : of what those ranks see of each file, in seconds; {}: they see them as they are
    """

    experiment: str
    log_every: int
    starts: tuple[Start, ...]
    again: int = 0
    cut: str = ""
    share: float = 0.5
    delays: dict[str, float] = dataclasses.field(default_factory=dict)
    rounds: int = 400

    def run(self) -> dict[str, int]:
        """What decides on the log in the table ``run``."""
        return {"log_every": self.log_every, "rounds": self.rounds}


def choose(seed: int, number: int) -> Trial:
    """One fault, or in one of ten trials a chain of kills; the same for the same seed."""
    rng = random.Random(f"{seed}/{number}")
    if rng.random() < 0.1:
        starts = tuple(_drawn(rng, KILLS, 0.3) for _ in range(rng.choice([2, 3, 4, 6])))
        return _trial(rng, starts)
    cut, share = rng.choice(["", "", "", "log", "checkpoint", "journal"]), rng.random()
    return _trial(rng, (_drawn(rng, ANYWHERE + OUTPUT, 0.7),), cut=cut, share=share)


def choose_cuts(seed: int, number: int) -> Trial:
    """A run that loses power once or several times."""
    rng = random.Random(f"power {seed}/{number}")
    cuts = (_drawn(rng, ("cut power",), 0.5) for _ in range(rng.choice([1, 1, 2, 3])))
    return _trial(rng, tuple(cuts))


def choose_late(seed: int, number: int) -> Trial:
    """A long run without locks that is killed, and another host that goes on with it."""
    rng = random.Random(f"share {seed}/{number}")
    delays = {name: rng.choice([0.0, rng.uniform(0, 0.3), rng.uniform(0, 2)]) for name in FILES}
    start = without_locks(rng.choice([1, 1, 2]), rng.uniform(0, 1.5))
    return _trial(rng, (start,), delays=delays, rounds=4000)


def without_locks(ranks: int, moment: float) -> Start:
    """It is killed at that moment."""
    return Start(ranks, "shared", Fault("no locks", "start", 1), moment)


def _trial(rng: random.Random, starts: tuple[Start, ...], **more: object) -> Trial:
    experiment, every = rng.choice(list(jobs.EXPERIMENTS)), rng.choice([1, 1, 7])
    return Trial(experiment, every, starts, rng.choice([0, 0, 0, 1, 2, 3]), **more)


def _drawn(rng: random.Random, actions: tuple[str, ...], outside: float) -> Start:
    """With one of the actions, and that chance from outside where it can come from there."""
    ranks, layout = rng.choice([1, 2, 3]), rng.choice(["shared", "dedicated"])
    action = rng.choice(actions)
    anywhere = action in ANYWHERE and rng.random() < 0.6
    place = rng.choice(list(EVERYWHERE if anywhere else PLACES))
    flags = [disk.WITH_JOURNAL, disk.WITHOUT_JOURNAL]
    spare = rng.choice(flags if action == "cut power" else [0, 1, 4, 100, 5000])
    moment = rng.uniform(0, 1) if action in OUTSIDE and rng.random() < outside else None
    call = rng.randint(1, OFTEN.get(place, 1)) if moment is None else NEVER
    fault = Fault(action, place, call, rng.randrange(ranks) if anywhere else 0, spare)
    return Start(ranks, layout, fault, moment)


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong with the way it ends and is gone on with; whether each fault ended a job."""
    happened = []
    with tempfile.TemporaryDirectory() as name, _place(Path(name), trial) as (place, power_up):
        parent, log = Path(name), place / OUT / "log.h5"
        tables = jobs.tables_of(trial.experiment, **trial.run(), checkpoint_seconds=0.02)
        (parent / "job.toml").write_text(tomli_w.dumps(tables))
        seen = disk.Seen(log.parent, FILES)
        for number, start in enumerate(trial.starts):
            fault = start.fault._replace(folder=str(place), mark=str(parent / "mark"))
            start = start._replace(fault=fault)
            with seen if trial.delays else contextlib.nullcontext():
                code, problems = _run(start, parent, log, ["--resume"] if number else [])
            power_up()
            happened.append(code != 0)
            # also in a folder that is gone: a fault that comes when all is done goes unnoticed
            moved = Path(f"{log.parent}.gone") / log.name
            last = moved if moved.exists() else log
            if code == 0 and not jobs.is_right(last, trial.experiment, **trial.run()):
                problems.append("exit code 0, but the log is not that of an undisturbed run")
            problems += _left(place, (*FILES, *UNNAMED))  # of a process that was killed
            if log.exists():
                problems += unreadable(log, jobs.reference(trial.experiment, **trial.run()))
            if problems:
                return f"start {number + 1}: {'; '.join(problems)}", all(happened)
        problems = _go_on(trial, parent, log, tables, seen)
        allowed = (*FILES, *UNNAMED) if trial.delays else FILES  # resumed elsewhere
        return "; ".join(problems + _left(place, allowed)), all(happened)


@contextlib.contextmanager
def _place(parent: Path, trial: Trial) -> Iterator[tuple[Path, Callable[[], None]]]:
    """The file system on which the job writes, and what mounts it again."""
    action = trial.starts[-1].fault.action
    if action == "cut power":
        with disk.Disk(parent, random.Random(repr(trial))) as powered:
            yield powered.folder, powered.power_up
    else:
        with disk.small(parent, action) as folder:
            yield folder, lambda: None


def _run(start: Start, parent: Path, log: Path, flags: list[str]) -> tuple[int | None, list[str]]:
    """Run the job until the fault has ended it: exit code, and what is wrong with its end."""
    words = [str(parent / "job.toml"), "--set", f"run.layout={start.layout}", "--out", str(log)]
    fault, mark, before = start.fault, Path(start.fault.mark), _written(log)
    mark.unlink(missing_ok=True)
    job = jobs.start_with(fault, start.ranks, parent, *words, *flags)
    if start.moment is not None:
        begin = None
        while job.poll() is None and (begin is None or time.monotonic() < begin + start.moment):
            begin = begin or (time.monotonic() if _written(log) != before else None)
            time.sleep(disk.EVERY)
        if job.poll() is None and fault.action == "cut power":
            fault.happen()
        elif job.poll() is None:
            mark.touch()
            jobs.kill(job, fault)

    # an output that fails shows when there is something to write
    if not jobs.wait_for(job, parent, None if fault.action in OUTPUT else mark):
        return job.returncode, ["still running long after the fault"]
    for group in GROUPS.glob("mpisim-trial-*"):
        with contextlib.suppress(OSError):  # of another trial, which has not ended
            group.rmdir()
    output, problems = (parent / "stderr").read_text(), []
    if not mark.exists() and job.returncode != 0:
        problems.append(f"exit code {job.returncode} without a fault: {output[-500:]}")
    if mark.exists() and fault.action == "raise" and output.count("RuntimeError: one bad day") != 1:
        problems.append(f"the error is not there once: {output[-1000:]}")
    # mpirun ends the ranks that are left, and rank 0 says so if it has not begun the rounds
    lines, killed = jobs.errors(output), fault.action in ("kill", "no locks")
    if job.returncode != 0 and killed and lines not in ([], [STOPPED]):
        problems.append(f"{lines}")
    if fault.action == "cut power":
        if job.returncode != 0 and len(lines) != 1:
            problems.append(f"exit code {job.returncode} with {len(lines)} lines: {output}")
        if not mark.exists():  # at the end, at the latest
            fault.happen()
    return job.returncode, problems + jobs.what_is_left(parent, output)


def _written(log: Path) -> list[tuple[str, int]]:
    """What tells that a run has begun to write."""
    try:
        return sorted((path.name, path.stat().st_ino) for path in log.parent.iterdir())
    except OSError:
        return []


def _left(place: Path, allowed: tuple[str, ...]) -> list[str]:
    """Files that nobody needs; makes the folder writable again."""
    out = place / OUT
    if out.is_file():
        out.unlink()
        Path(f"{out}.gone").rename(out)
    (place / "ballast").unlink(missing_ok=True)
    shutil.rmtree(place / "inodes", ignore_errors=True)
    extra = {path.name for path in out.glob("*")} - {*allowed}
    return [f"files left: {sorted(extra)}"] if extra else []


def unreadable(log: Path, reference: Path) -> list[str]:
    """What is wrong with a log as plain h5py sees it: its rows are the reference's first ones."""
    expected = columns(reference)
    try:
        result = columns(log)
    except (OSError, KeyError) as error:
        return [f"log: {error}"]
    rows = result["round"].size
    if result.keys() != expected.keys() or any(v.size != rows for v in result.values()):
        return ["log: columns are not as they should be"]
    if result["round"].tolist()[-1:] != expected["round"][:rows].tolist()[-1:]:
        rows -= 1  # an extra row, where a signal ended the run
    return [
        f"log: {name} differs"
        for name in result
        if not name.startswith("time_")
        and not np.array_equal(result[name][:rows], expected[name][:rows], equal_nan=True)
    ]


def _go_on(trial: Trial, parent: Path, log: Path, tables: dict, seen: disk.Seen) -> list[str]:
    """Resume; a file that is cut short or seen late may end in one line, anything else may not."""
    files = {"log": log, "checkpoint": checkpoint.path_for(log), "journal": journal.path_for(log)}
    file = files.get(trial.cut)
    if file is not None and file.exists():
        os.truncate(file, int(trial.share * file.stat().st_size))
    if trial.delays:
        here, log = log.parent, log.parent.parent / "there" / log.name
        log.parent.mkdir()
        for name, content in seen.late(trial.delays).items():
            log.with_name(name).write_bytes(content)
    message = jobs.go_on(trial.again, parent, tables, log, "--resume")
    if message and ": " in message and "\n" not in message.strip():
        if trial.cut:
            message = jobs.go_on(trial.again, parent, tables, log, "--force")
        elif trial.delays:
            shutil.rmtree(log.parent)
            shutil.copytree(here, log.parent, ignore=shutil.ignore_patterns(".*"))
            message = jobs.go_on(trial.again, parent, tables, log, "--resume")
    if message:
        return [f"cannot be gone on with: {message}"]
    wrong = differences(jobs.reference(trial.experiment, **trial.run()), log)
    return [f"resumed, {name} differs" for name in wrong]
