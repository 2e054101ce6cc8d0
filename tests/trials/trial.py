"""One trial: a real job, a fault, and what is left of it."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import psutil
import tomli_w

from mpisim.core.errors import InputError
from mpisim.runs import checkpoint
from tests.comm.jobs import ROOT, environment
from tests.helpers import run_tables
from tests.resumes import differences, experiments
from tests.trials.entry import EVERYWHERE, ON_RANK_0, Fault

PATIENCE = 10.0  # seconds after a fault within which the job must have ended
STUCK = 120.0  # a job without a fault is not waited for longer
MARK = "MPISIM_TRIAL"  # in the environment of all processes of a job
EXPERIMENTS = dict(experiments(rounds=400))
ANYWHERE = ("kill", "kill mpirun", "raise", "terminate", "interrupt")
OUTPUT = ("limit", "fill", "unwritable")
OFTEN = {"gather": 300, "broadcast": 400, "row": 50, "checkpoint": 4}  # calls to choose from
OFTEN |= {"log, reserving": 5, "log, growing a column": 60, "writing a whole file": 4}
OFTEN |= {"keeping the checkpoint before": 2, "naming the checkpoint": 3}


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is run, and what happens.

    moment : seconds after which a process is killed from outside; None: the fault happens inside
    cut : which file is cut short afterwards ("", "log" or "checkpoint"), to which share of it
    again : ranks that go on with it; 0: this process
    """

    experiment: str
    log_every: int
    ranks: int
    layout: str
    fault: Fault
    moment: float | None = None
    cut: str = ""
    share: float = 0.5
    again: int = 0

    def tables(self) -> dict:
        """The experiment."""
        tables = EXPERIMENTS[self.experiment]
        run = {"log_every": self.log_every, "layout": self.layout, "checkpoint_seconds": 0.02}
        return tables | {"run": tables["run"] | run}

    def text(self) -> str:
        """In a line."""
        fault = self.fault
        where = f"rank {fault.rank}, {fault.place}, call {fault.call}"
        if self.moment is not None:
            where = f"after {self.moment:.2f} s"
        cut = f", {self.cut} cut to {self.share:.0%}" if self.cut else ""
        return f"{self.experiment} on {self.ranks} {self.layout}: {fault.action}, {where}{cut}"


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed."""
    rng = random.Random(f"{seed}/{number}")
    ranks = rng.choice([1, 2, 3])
    experiment, log_every = rng.choice(list(EXPERIMENTS)), rng.choice([1, 1, 7])
    layout = rng.choice(["shared", "dedicated"])
    again = rng.choice([0, 0, 0, 1, 2, 3])
    cut, share = rng.choice(["", "", "", "log", "checkpoint"]), rng.random()
    spare = rng.choice([0, 100, 5000, 100_000])
    if rng.random() < 0.15:
        action, place, moment = rng.choice(["kill", "kill mpirun"]), "start", rng.uniform(0, 4)
        call, rank = 10**9, rng.randrange(ranks)
    else:
        action, moment = rng.choice(ANYWHERE + OUTPUT), None
        anywhere = action in ANYWHERE and rng.random() < 0.6
        place = rng.choice(list(EVERYWHERE if anywhere else ON_RANK_0 | EVERYWHERE))
        rank = rng.randrange(ranks) if anywhere else 0
        call = rng.randint(1, OFTEN.get(place, 1))
    fault = Fault(action, place, call, rank, spare, "", "")
    return Trial(experiment, log_every, ranks, layout, fault, moment, cut, share, again)


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong with the way the job ends and is gone on with; whether the fault happened."""
    with tempfile.TemporaryDirectory() as name, _folder(Path(name), trial.fault) as folder:
        fault = dataclasses.replace(trial.fault, folder=str(folder), mark=f"{name}/mark")
        (Path(name) / "job.toml").write_text(tomli_w.dumps(trial.tables()))
        log = folder / "log.h5"
        problems = _run(dataclasses.replace(trial, fault=fault), Path(name), log)
        problems += _left(folder)
        if log.exists():
            problems += _unreadable(log, trial)
        _cut(trial, log)
        problems = problems or _go_on(trial, Path(name), log)
        return "; ".join(problems), Path(fault.mark).exists()


@contextmanager
def _folder(parent: Path, fault: Fault) -> Iterator[Path]:
    """Where the job writes; a small file system of its own if that shall be filled."""
    folder = parent / "out"
    folder.mkdir()
    mounted = fault.action == "fill" and _mount(folder)
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _mount(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "mpisim-trial", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


def can_fill() -> bool:
    """Whether a file system of its own can be made here; else "limit" stands for "fill"."""
    with tempfile.TemporaryDirectory() as name, _folder(Path(name), _FILL) as folder:
        return os.path.ismount(folder)


_FILL = Fault("fill", "start", 1, 0, 0, "", "")


def _run(trial: Trial, parent: Path, log: Path) -> list[str]:
    """Run the job until the fault has ended it; what is wrong with its end."""
    words = ["run", str(parent / "job.toml"), "--out", str(log)]
    fault = json.dumps(dataclasses.asdict(trial.fault))
    job = _start(trial.ranks, parent, "-m", "tests.trials.entry", fault, *words)
    mark = Path(trial.fault.mark)
    if trial.moment is not None:
        time.sleep(trial.moment)
        _kill(job, trial.fault)
        mark.touch()
    start = time.monotonic()
    while job.poll() is None:
        after = time.time() - mark.stat().st_mtime if mark.exists() else 0.0
        noticed = trial.fault.action not in OUTPUT  # those show when there is something to write
        if (noticed and after > PATIENCE) or time.monotonic() - start > STUCK:
            for process in _processes(parent):
                process.kill()
            return [f"still running {after:.0f} s after the fault"]
        time.sleep(0.02)
    said = (parent / "stderr").read_text()
    problems = []
    if mark.exists() and job.returncode == 0 and not _harmless(trial, log):
        problems.append("exit code 0")
    if not mark.exists() and job.returncode != 0:
        problems.append(f"exit code {job.returncode} without a fault: {said[-500:]}")
    if (
        mark.exists()
        and trial.fault.action == "raise"
        and said.count("RuntimeError: one bad day") != 1
    ):
        problems.append(f"the error is not said once: {said[-1000:]}")
    _, alive = psutil.wait_procs(_processes(parent), timeout=PATIENCE)
    if alive:
        problems.append(f"processes left: {[p.pid for p in alive]}")
        for process in alive:
            process.kill()
    if "Segmentation" in said or "Fatal Python error" in said:
        problems.append(f"crashed: {said[-500:]}")
    return problems


def _start(ranks: int, parent: Path, *arguments: str) -> subprocess.Popen:
    launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    with (parent / "stderr").open("wb") as errors:
        return subprocess.Popen(
            [*launcher, sys.executable, *arguments],
            cwd=ROOT,
            env=environment() | {MARK: str(parent), "TMPDIR": str(parent)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def _kill(job: subprocess.Popen, fault: Fault) -> None:
    try:
        children = psutil.Process(job.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    ranks = sorted(
        (p for p in children if "tests.trials.entry" in p.cmdline()), key=lambda p: p.pid
    )
    if fault.action == "kill mpirun" or not ranks:
        os.kill(job.pid, signal.SIGKILL)
    else:
        ranks[fault.rank % len(ranks)].kill()


def _processes(parent: Path) -> list[psutil.Process]:
    """All that belong to the job of this folder and still run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(parent):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def _harmless(trial: Trial, log: Path) -> bool:
    """A fault that came when all had been done, and was not noticed."""
    try:
        done = h5py.File(log).attrs["status"] == "done"
    except OSError:
        return False
    return done and not differences(reference(trial.experiment, trial.log_every), log)


def _left(folder: Path) -> list[str]:
    """Files that nobody needs; makes the folder writable again."""
    if folder.is_file():
        folder.unlink()
        Path(f"{folder}.gone").rename(folder)
    (folder / "ballast").unlink(missing_ok=True)
    allowed = {"log.h5", "log.h5.ckpt", "log.h5.ckpt.old"}
    extra = sorted({path.name for path in folder.iterdir()} - allowed)
    return [f"files left: {extra}"] if extra else []


def _unreadable(log: Path, trial: Trial) -> list[str]:
    """What is wrong with a log as plain h5py sees it: its rows are the reference's first ones."""
    with h5py.File(reference(trial.experiment, trial.log_every)) as file:
        expected = {name: data[:] for name, data in file["rounds"].items()}
    try:
        with h5py.File(log, "r") as file:
            found = {name: data[:] for name, data in file["rounds"].items()}
    except (OSError, KeyError) as error:
        return [f"log: {error}"]
    rows = found["round"].size
    if found.keys() != expected.keys() or any(v.size != rows for v in found.values()):
        return ["log: columns are not as they should be"]
    if found["round"].tolist()[-1:] != expected["round"][:rows].tolist()[-1:]:
        rows -= 1  # an extra row, where a signal ended the run
    return [
        f"log: {name} differs"
        for name in found
        if not name.startswith("time_")
        and not np.array_equal(found[name][:rows], expected[name][:rows], equal_nan=True)
    ]


def _cut(trial: Trial, log: Path) -> None:
    file = {"log": log, "checkpoint": checkpoint.path_for(log)}.get(trial.cut)
    if file is not None and file.exists():
        os.truncate(file, int(trial.share * file.stat().st_size))


def _go_on(trial: Trial, parent: Path, log: Path) -> list[str]:
    """Resume; a file that is cut short may end in one line, anything else may not."""
    resume = (
        checkpoint.path_for(log).exists() or checkpoint.former(checkpoint.path_for(log)).exists()
    )
    said = _again(trial, parent, log, resume)
    if said and trial.cut and ": " in said and "\n" not in said.strip():
        said = _again(trial, parent, log, False)
    if said:
        return [f"cannot be gone on with: {said}"]
    return [
        f"resumed, {name} differs"
        for name in differences(reference(trial.experiment, trial.log_every), log)
    ]


def _again(trial: Trial, parent: Path, log: Path, resume: bool) -> str:
    """Go on with the run, or start it anew; what stderr says of a failure."""
    if trial.again == 0:
        try:
            run_tables(trial.tables(), log, resume=resume, force=not resume)
        except InputError as error:
            return str(error)
        return ""
    flag = "--resume" if resume else "--force"
    words = ["-m", "mpisim", "run", str(parent / "job.toml"), "--out", str(log), flag]
    job = _start(trial.again, parent, *words)
    try:
        code = job.wait(STUCK)
    except subprocess.TimeoutExpired:
        for process in _processes(parent):
            process.kill()
        return f"still running after {STUCK:.0f} s\n"
    if code != 0:
        said = (parent / "stderr").read_text()
        lines = "\n".join(line for line in said.splitlines() if line.startswith("mpisim: "))
        return lines or said
    return ""


@functools.cache
def reference(experiment: str, log_every: int) -> Path:
    """The log of the run that nothing happened to."""
    path = Path(_references().name) / f"{len(list(Path(_references().name).iterdir()))}.h5"
    tables = EXPERIMENTS[experiment]
    run_tables(tables | {"run": tables["run"] | {"log_every": log_every}}, path)
    return path


@functools.cache
def _references() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()
