"""Starts of one command line, each with a fault, and what is left of them.

Whatever is left must be resumed by the next one, on other ranks, and by the last to the log of an
undisturbed run.
"""

import contextlib
import dataclasses
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import tomli_w

from mpisim.runs import checkpoint
from mpisim.runs.log import journal
from tests.resumes import differences
from tests.trials import job as jobs
from tests.trials.entry import EVERYWHERE, GROUPS, ON_RANK_0, Fault

ANYWHERE = ("kill", "kill mpirun", "raise", "terminate", "interrupt", "out of memory")
OUTPUT = ("limit", "fill", "unwritable", "use up inodes")
OFTEN = {"gather": 300, "broadcast": 400, "row": 50, "checkpoint": 4}  # calls to choose from
OFTEN |= {"journal, rows": 6, "writing": 20, "log, whole": 4, "log, a column": 60}
OFTEN |= {"writing a whole file": 10, "replacing a file": 5, "naming a new file": 6}
UNNAMED = (".log.h5.new", ".log.h5.ckpt.new", ".log.h5.journal.new")
NEVER = 10**9
STOPPED = "mpisim: stopped by SIGTERM"


@dataclasses.dataclass(frozen=True)
class Start:
    """One start: its ranks and layout, and where the fault is, or after how many seconds.

    moment : when a process is killed from outside; None: the fault happens inside
    """

    ranks: int
    layout: str
    fault: Fault
    moment: float | None = None


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is run, and what happens.

    cut : which file is cut short afterwards ("": none), to which share of it
    again : ranks that go on with it; 0: this process
    """

    experiment: str
    log_every: int
    starts: tuple[Start, ...]
    again: int = 0
    cut: str = ""
    share: float = 0.5

    def tables(self) -> dict:
        """The experiment."""
        every = self.log_every
        return jobs.tables_of(self.experiment, log_every=every, checkpoint_seconds=0.02)


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed. One in ten is a chain of kills."""
    rng = random.Random(f"{seed}/{number}")
    several = rng.choice([2, 3, 4, 6]) if rng.random() < 0.1 else 1
    starts = tuple(_start(rng, several > 1) for _ in range(several))
    experiment, log_every = rng.choice(list(jobs.EXPERIMENTS)), rng.choice([1, 1, 7])
    again = rng.choice([0, 0, 0, 1, 2, 3])
    cut, share = rng.choice(["", "", "", "log", "checkpoint", "journal"]), rng.random()
    return Trial(experiment, log_every, starts, again, cut if several == 1 else "", share)


def _start(rng: random.Random, kills: bool) -> Start:
    ranks, layout = rng.choice([1, 2, 3]), rng.choice(["shared", "dedicated"])
    action, moment, spare = rng.choice(ANYWHERE + OUTPUT), None, rng.choice([0, 1, 4, 100, 5000])
    if kills or rng.random() < 0.15:
        action = rng.choice(["kill", "kill", "kill mpirun"])
        moment = rng.uniform(0, 4) if not kills or rng.random() < 0.3 else None
    anywhere = action in ANYWHERE and rng.random() < 0.6
    place = rng.choice(list(EVERYWHERE if anywhere else ON_RANK_0 | EVERYWHERE))
    call = NEVER if moment is not None else rng.randint(1, OFTEN.get(place, 1))
    fault = Fault(action, place, call, rng.randrange(ranks) if anywhere else 0, spare, "", "")
    return Start(ranks, layout, fault, moment)


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong with the way it ends and is gone on with; whether each fault happened."""
    happened, last = [], trial.starts[-1].fault
    with tempfile.TemporaryDirectory() as name, _folder(Path(name), last) as folder:
        log, mark = folder / "log.h5", Path(name) / "mark"
        (Path(name) / "job.toml").write_text(tomli_w.dumps(trial.tables()))
        for number, start in enumerate(trial.starts):
            mark.unlink(missing_ok=True)
            fault = dataclasses.replace(start.fault, folder=str(folder), mark=str(mark))
            start = dataclasses.replace(start, fault=fault)
            problems = _run(trial, start, Path(name), log, ["--resume"] if number else [])
            problems += _left(folder, ".log.h5.lock", *UNNAMED)  # of a process that was killed
            if log.exists():
                problems += unreadable(log, trial.experiment, trial.log_every)
            happened.append(mark.exists())
            if problems:
                return f"start {number + 1}: {'; '.join(problems)}", all(happened)
        _cut(trial, log)
        return "; ".join(_go_on(trial, Path(name), log) + _left(folder)), all(happened)


@contextmanager
def _folder(parent: Path, fault: Fault) -> Iterator[Path]:
    """Where the job writes; a small file system of its own if that shall be filled."""
    folder = parent / "out"
    folder.mkdir()
    options = {"fill": "size=8m", "use up inodes": "nr_inodes=64"}.get(fault.action)
    mounted = options is not None and _mount(folder, options)
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _mount(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "mpisim-trial", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


def _run(trial: Trial, start: Start, parent: Path, log: Path, flags: list[str]) -> list[str]:
    """Run the job until the fault has ended it; what is wrong with its end."""
    words = [str(parent / "job.toml"), "--set", f"run.layout={start.layout}", "--out", str(log)]
    job = jobs.start_with(start.fault, start.ranks, parent, *words, *flags)
    mark, action = Path(start.fault.mark), start.fault.action
    if start.moment is not None:
        time.sleep(start.moment)
        jobs.kill(job, start.fault)
        mark.touch()

    # an output that fails shows when there is something to write
    if not jobs.wait_for(
        job, parent, (lambda: False) if action in OUTPUT else jobs.late_after(mark)
    ):
        return ["still running long after the fault"]
    for group in GROUPS.glob("mpisim-trial-*"):
        with contextlib.suppress(OSError):  # of another trial, which has not ended
            group.rmdir()
    output = (parent / "stderr").read_text()
    problems = []
    if mark.exists() and job.returncode == 0 and not _harmless(trial, log):
        problems.append("exit code 0")
    if not mark.exists() and job.returncode != 0:
        problems.append(f"exit code {job.returncode} without a fault: {output[-500:]}")
    if mark.exists() and action == "raise" and output.count("RuntimeError: one bad day") != 1:
        problems.append(f"the error is not there once: {output[-1000:]}")
    # mpirun ends the ranks that are left, and rank 0 says so if it has not begun the rounds
    lines = jobs.errors(output)
    if job.returncode != 0 and action == "kill" and lines not in ([], [STOPPED]):
        problems.append(f"{lines}")
    return problems + jobs.what_is_left(parent, output)


def _harmless(trial: Trial, log: Path) -> bool:
    """A fault that came when all had been done, and was not noticed."""
    moved = Path(f"{log.parent}.gone") / log.name
    log = moved if moved.exists() else log
    try:
        done = h5py.File(log).attrs["status"] == "done"
    except OSError:
        return False
    return done and not differences(
        jobs.reference(trial.experiment, log_every=trial.log_every), log
    )


def _left(folder: Path, *more: str) -> list[str]:
    """Files that nobody needs; makes the folder writable again."""
    if folder.is_file():
        folder.unlink()
        Path(f"{folder}.gone").rename(folder)
    (folder / "ballast").unlink(missing_ok=True)
    shutil.rmtree(folder / "inodes", ignore_errors=True)
    allowed = {"log.h5", "log.h5.ckpt", "log.h5.ckpt.old", "log.h5.journal", *more}
    extra = sorted({path.name for path in folder.iterdir()} - allowed)
    return [f"files left: {extra}"] if extra else []


def unreadable(log: Path, experiment: str, log_every: int) -> list[str]:
    """What is wrong with a log as plain h5py sees it: its rows are the reference's first ones."""
    with h5py.File(jobs.reference(experiment, log_every=log_every)) as file:
        expected = {name: data[:] for name, data in file["rounds"].items()}
    try:
        with h5py.File(log, "r") as file:
            result = {name: data[:] for name, data in file["rounds"].items()}
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


def _cut(trial: Trial, log: Path) -> None:
    files = {"log": log, "checkpoint": checkpoint.path_for(log), "journal": journal.path_for(log)}
    file = files.get(trial.cut)
    if file is not None and file.exists():
        os.truncate(file, int(trial.share * file.stat().st_size))


def _go_on(trial: Trial, parent: Path, log: Path) -> list[str]:
    """Resume; a file that is cut short may end in one line, anything else may not."""
    message = jobs.go_on(trial.again, parent, trial.tables(), log, "--resume")
    if message and trial.cut and ": " in message and "\n" not in message.strip():
        message = jobs.go_on(trial.again, parent, trial.tables(), log, "--force")
    if message:
        return [f"cannot be gone on with: {message}"]
    return [
        f"resumed, {name} differs"
        for name in differences(jobs.reference(trial.experiment, log_every=trial.log_every), log)
    ]
