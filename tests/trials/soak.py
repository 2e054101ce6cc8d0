"""A million rounds: does anything grow or slow down?

The ranks' memory, the rows in the journal, and the size of the log against its rows, are taken once
a second. Behind the first tenth memory must be flat and the file linear, except for the moments in
which the log is in memory; the median rate of the last tenth must be within 5% of the second one's.
"""

import dataclasses
import subprocess
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import psutil

from mpisim.runs.log import journal
from mpisim.runs.log.schema import columns, row_type
from tests.comm.jobs import start

RATE, MEMORY, SIZE = 0.05, 0.02, 0.02  # by how much what should be constant may change
WINDOWS = 100
EVERY = 10.0  # seconds between lines of progress


@dataclasses.dataclass(frozen=True)
class Trial:
    """So many rounds of a problem that takes no time, so that all the rest does."""

    seed: int
    rounds: int = 1_000_000
    ranks: int = 3


def choose(seed: int, number: int) -> Trial:
    """Each with a seed of its own."""
    return Trial(1000 * seed + number)


def attempt(trial: Trial) -> tuple[str, bool]:
    """What changes more than it may; it always happens."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.h5"
        process = job(trial, log)
        seen = watch(process, log, trial.rounds)
    if process.returncode != 0:
        return f"the job ended with exit code {process.returncode}", True
    return "; ".join(judge(seen)), True


def job(trial: Trial, log: Path) -> subprocess.Popen:
    """Start it."""
    settings = [
        "problem={ name = 'quadratic', workers = 6, dimension = 20, noise = 0.3 }",
        "method={ name = 'marina', p = 0.2, stepsize = 0.01 }",
        "compressor={ name = 'randk', k = 4 }",
        f"run={{ rounds = {trial.rounds}, checkpoint_seconds = 1.0, seed = {trial.seed} }}",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return start(trial.ranks, "-m", "mpisim", "run", *words, "--out", str(log), **quiet)


def watch(process: subprocess.Popen, log: Path, rounds: int) -> np.ndarray:
    """Rows and bytes of the log, bytes of memory, when, and rows so far: shape (seconds, 5)."""
    seen: list[tuple[int, int, int, float, int]] = []
    row_bytes = row_type(columns(False)).itemsize
    message = start = time.monotonic()
    while process.poll() is None:
        time.sleep(1)
        try:
            with h5py.File(log, "r", locking=False) as file:
                logged = int(file["rounds/time_other"].size)
                size = sum(column.id.get_storage_size() for column in file["rounds"].values())
            rows = journal.path_for(log).stat().st_size // row_bytes
            family = psutil.Process(process.pid).children(recursive=True)
            memory = sum(p.memory_info().rss for p in family if "mpisim" in p.cmdline())
        except (OSError, KeyError, psutil.Error):
            continue
        seen.append((logged, size, memory, time.monotonic(), rows))
        if time.monotonic() - message > EVERY:
            message = time.monotonic()
            rate = rows / (message - start)
            left = (rounds - rows) / max(rate, 1)
            text = f"{rows:,} of {rounds:,} rounds, {rate:,.0f} a second, {left:.0f} s left"
            print(f"{text}, {memory / 1e6:.1f} MB", flush=True)
    return np.array(seen)


def rates(seen: np.ndarray) -> np.ndarray:
    """Rounds a second on the wall, logging and all, in windows of equally many rounds."""
    rows, when = seen[:, 4], seen[:, 3]
    ends = np.linspace(rows[0], rows[-1], WINDOWS + 1)
    return np.diff(ends) / np.diff(np.interp(ends, rows, when))


def judge(seen: np.ndarray) -> list[str]:
    """What has changed more than it may."""
    rate = rates(seen)
    rows, size, memory, *_ = seen[seen[:, 4] > seen[-1, 4] / 10].T
    slope, base = np.polyfit(rows, size, 1)
    bent = np.abs(size - base - slope * rows).max() / size.max()
    part, tenth = len(memory) // 10 + 1, WINDOWS // 10
    grown = np.median(memory[-part:]) / np.median(memory[:part])
    slower = np.median(rate[-tenth:]) / np.median(rate[tenth : 2 * tenth])
    print(f"memory at the end: {grown:.4f} of that at the start, {memory.max() / 1e6:.1f} MB")
    print(f"{slope:.1f} bytes a row; the file is within {bent:.2%} of a straight line")
    print(f"rate at the end: {slower:.4f} of that at the start, {np.median(rate):,.0f} a second")
    wrong = []
    if grown > 1 + MEMORY:
        wrong.append("memory grows")
    if bent > SIZE:
        wrong.append("the file's size is not linear")
    if abs(slower - 1) > RATE:
        wrong.append("the rate changes")
    return wrong
