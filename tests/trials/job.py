"""The processes of a trial's jobs, and the logs that they should have written."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from mpisim.core.errors import InputError
from tests.comm.jobs import HANG_SECONDS, ROOT, environment, start
from tests.helpers import run_tables
from tests.resumes import differences, experiments
from tests.trials.entry import Fault

MARK = "MPISIM_TRIAL"  # in the environment of all processes of a job
EXPERIMENTS = dict(experiments(rounds=400))
# lines that are no errors
NOTES = ("nothing to", "starting at", "continuing from", "starting over")


def start_job(ranks: int, parent: Path, *arguments: str, name: str = "stderr") -> subprocess.Popen:
    """Start ``python ARGUMENTS`` on ranks; stderr goes to a file in ``parent``."""
    env = environment() | {MARK: str(parent), "TMPDIR": str(parent)}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    with (parent / name).open("wb") as errors:
        return start(ranks, *arguments, cwd=ROOT, env=env, stderr=errors, **quiet)


def start_with(
    fault: Fault, ranks: int, parent: Path, *words: str, name: str = "stderr"
) -> subprocess.Popen:
    """Start `mpisim run WORDS` with the fault."""
    text = json.dumps(fault._asdict())
    return start_job(ranks, parent, "-m", "tests.trials.entry", text, "run", *words, name=name)


def wait_for(job: subprocess.Popen, parent: Path, mark: Path | None = None) -> bool:
    """Whether it ends before it is stuck, or late after ``mark`` was made; else all is killed."""
    while job.poll() is None:
        late = mark and mark.exists() and time.time() - mark.stat().st_mtime > HANG_SECONDS
        if late or idle_seconds(parent) > HANG_SECONDS:
            for process in processes(parent):
                process.kill()
            return False
        time.sleep(0.02)
    return True


def idle_seconds(parent: Path) -> float:
    """Since the last change in a folder. What runs there, however slowly, writes each second."""
    times = [parent.stat().st_mtime]
    for folder, _, names in os.walk(parent):  # which passes over a folder that goes meanwhile
        for name in names:
            with contextlib.suppress(OSError):  # it may be gone by now
                times.append(os.stat(os.path.join(folder, name)).st_mtime)
    return time.time() - max(times)


def errors(message: str) -> list[str]:
    """mpisim's errors on stderr, without what it says of resuming."""
    lines = [line for line in message.splitlines() if line.startswith("mpisim: ")]
    return [line for line in lines if not any(note in line for note in NOTES)]


def what_is_left(parent: Path, message: str) -> list[str]:
    """Processes that have not ended, which are killed, and crashes."""
    problems = []
    _, alive = psutil.wait_procs(processes(parent), timeout=HANG_SECONDS)
    if alive:
        problems.append(f"processes left: {[p.pid for p in alive]}")
        for process in alive:
            process.kill()
    if "Segmentation" in message or "Fatal Python error" in message:
        problems.append(f"crashed: {message[-500:]}")
    return problems


def kill(job: subprocess.Popen, fault: Fault) -> None:
    """Kill a rank of the job, or mpirun."""
    try:
        children = psutil.Process(job.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    ranks = [p for p in children if "tests.trials.entry" in p.cmdline()]
    ranks.sort(key=lambda p: p.pid)
    if fault.action == "kill mpirun" or not ranks:
        os.kill(job.pid, signal.SIGKILL)
    else:
        ranks[fault.rank % len(ranks)].kill()


def processes(parent: Path) -> list[psutil.Process]:
    """All that belong to the job of this folder and still run."""
    result = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == str(parent):
                result.append(process)
    return [p for p in result if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def go_on(ranks: int, parent: Path, tables: dict, log: Path, flag: str) -> str:
    """Go on with a run on ranks (0: in this process); what is said of a failure.

    flag : "--resume" or "--force"; the experiment is in ``parent``, too
    """
    if ranks == 0:
        try:
            run_tables(tables, log, **{flag.removeprefix("--"): True})
        except InputError as error:
            return str(error)
        return ""
    words = ["-m", "mpisim", "run", str(parent / "job.toml"), "--out", str(log), flag]
    job = start_job(ranks, parent, *words)
    if not wait_for(job, parent):
        return f"still running, {HANG_SECONDS:.0f} s after its last write\n"
    output = (parent / "stderr").read_text()
    return "" if job.returncode == 0 else "\n".join(errors(output)) or output


def tables_of(experiment: str, **run: float | str) -> dict:
    """An experiment with these settings."""
    tables = EXPERIMENTS[experiment]
    return tables | {"run": tables["run"] | run}


@functools.cache
def reference(experiment: str, **run: int) -> Path:
    """The log of the run, with these settings, that nothing happened to."""
    folder = Path(_references().name)
    path = folder / f"{len(list(folder.iterdir()))}.h5"
    run_tables(tables_of(experiment, **run), path)
    return path


def is_right(log: Path, experiment: str, **run: int) -> bool:
    """Whether a log can be read, and is the one of `reference`."""
    try:
        return not differences(reference(experiment, **run), log)
    except (OSError, KeyError):
        return False


@functools.cache
def _references() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()
