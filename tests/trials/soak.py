"""A million rounds: does anything grow?

The ranks' memory, and the size of the log against its rows, are taken once a second. Behind the
first tenth of the rows memory must be flat and the file linear, except for the moments in which the
log is in memory.
"""

import subprocess
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import psutil

from tests.comm.jobs import start
from tests.helpers import settings

MEMORY, SIZE = 0.02, 0.02  # by how much what should be constant may change


ROUNDS, RANKS = 1_000_000, 3


def choose(seed: int, number: int) -> int:
    """A seed of its own for each."""
    return 1000 * seed + number


def attempt(seed: int) -> tuple[str, bool]:
    """What changes more than it may; it always happens.

    The problem takes no time, so that all the rest does.
    """
    words = settings(
        "problem={ name = 'quadratic', workers = 6, dimension = 20, noise = 0.3 }",
        "method={ name = 'marina', p = 0.2, stepsize = 0.01 }",
        "compressor={ name = 'randk', k = 4 }",
        f"run={{ rounds = {ROUNDS}, checkpoint_seconds = 1.0, seed = {seed} }}",
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.h5"
        words += ["--out", str(log)]
        process = start(RANKS, "-m", "mpisim", "run", *words, **quiet)
        seen = watch(process, log)
    if process.returncode != 0:
        return f"the job ended with exit code {process.returncode}", True
    return "; ".join(judge(seen)), True


def watch(process: subprocess.Popen, log: Path) -> np.ndarray:
    """Rows and bytes of the log, bytes of memory: shape (seconds, 3)."""
    seen: list[tuple[int, int, int]] = []
    while process.poll() is None:
        time.sleep(1)
        try:
            with h5py.File(log, "r", locking=False) as file:
                rows = int(file["rounds/time_other"].size)
                size = sum(column.id.get_storage_size() for column in file["rounds"].values())
            family = psutil.Process(process.pid).children(recursive=True)
            memory = sum(p.memory_info().rss for p in family if "mpisim" in p.cmdline())
        except (OSError, KeyError, psutil.Error):
            continue
        seen.append((rows, size, memory))
    return np.array(seen)


def judge(seen: np.ndarray) -> list[str]:
    """What has changed more than it may."""
    rows, size, memory = seen[seen[:, 0] > seen[-1, 0] / 10].T
    slope, base = np.polyfit(rows, size, 1)
    bent = np.abs(size - base - slope * rows).max() / size.max()
    part = len(memory) // 10 + 1
    grown = np.median(memory[-part:]) / np.median(memory[:part])
    print(f"memory at the end: {grown:.4f} of that at the start, {memory.max() / 1e6:.1f} MB")
    print(f"{slope:.1f} bytes a row; the file is within {bent:.2%} of a straight line")
    wrong = ["memory grows"] if grown > 1 + MEMORY else []
    return wrong + (["the file's size is not linear"] if bent > SIZE else [])
