"""Memory and cores of this machine, and what mpirun, srun and the like tell a process.

Linux grants memory that it does not have and later kills the process, without a word. So what
cannot fit is refused before anything is allocated.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from pathlib import Path

from mpisim.core.errors import InputError

MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
VECTORS = 4  # float64 arrays of its length that an iterate needs at least: x, g, a gradient, a sum


def require_memory(floats: int, where: str, value: object) -> None:
    """Raise `InputError` if ``floats`` float64 numbers exceed this machine's memory.

    where, value : the key that asks for them
    """
    there = inf  # where the system does not tell
    with suppress(ValueError, OSError):
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 8 * floats > there:
        raise InputError(
            f"{where}: {value!r} needs at least {gigabytes(8 * floats)}; allowed: what fits in the"
            f" memory of this machine, {gigabytes(there)}"
        )


def available_memory() -> float:
    """Bytes that programs can still take on this machine; infinity where the system does not tell.

    In a container, as many as its limit (cgroup v2) leaves, if they are fewer.
    """
    free = inf
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        free = 1024.0 * int(next(x for x in lines if x.startswith("MemAvailable:")).split()[1])
    with suppress(OSError, ValueError):  # "max", where there is no limit, is no integer
        limit, used = (int((CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, float(max(0, limit - used)))
    return free


@dataclasses.dataclass
class ReadingBudget:
    """What a command has left for what files of others make it do; it shrinks.

    seconds : of the processor; MPISIM_READ_SECONDS sets how many there are
    bytes : of content; MPISIM_READ_GIGABYTES sets how many there are, in 10^9
    """

    seconds: float = dataclasses.field(default_factory=lambda: _setting("MPISIM_READ_SECONDS", 60))
    bytes: float = dataclasses.field(
        default_factory=lambda: 1e9 * _setting("MPISIM_READ_GIGABYTES", 1)
    )

    def require(self, size: float, where: object) -> None:
        """Raise `InputError` if ``size`` bytes are more than what is left; ``where``: who asks."""
        if size > self.bytes:
            raise InputError(
                f"{where}: needs {gigabytes(size)} of memory, and this command has"
                f" {gigabytes(max(0.0, self.bytes))} left for what it reads;"
                " MPISIM_READ_GIGABYTES sets more"
            )


_BUDGET: ContextVar[ReadingBudget] = ContextVar("budget")


@contextmanager
def reading_budget() -> Iterator[ReadingBudget]:
    """The budget of the command that goes on, or a new one, for all that is inside."""
    budget = _BUDGET.get(None) or ReadingBudget()
    token = _BUDGET.set(budget)
    try:
        yield budget
    finally:
        _BUDGET.reset(token)


def _setting(name: str, default: float) -> float:
    """A number > 0 from the environment."""
    text = os.environ.get(name, "")
    try:
        value = float(text or default)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise InputError(f"{name}: {text!r} is not allowed; it must be a number > 0")
    return value


def gigabytes(size: float) -> str:
    """Bytes as text."""
    return f"{size / 1e9:.3g} GB"


def usable_cores() -> frozenset[int]:
    """The cores that this process may use; all of them where the system does not tell (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


# The rank in the job: Open MPI, PMIx, MPICH and others with PMI, MVAPICH, Slurm, PALS, Flux.
RANKS = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
)
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def launched() -> bool:
    """Whether a launcher has started this process."""
    # a batch script of Slurm, too, has SLURM_PROCID
    names = {*RANKS, *SIZES, "SLURM_STEP_NUM_TASKS"} - {"SLURM_PROCID"}
    return any(os.environ.get(name) for name in names)


def launched_rank() -> int:
    """The rank of this process; 0 without a launcher."""
    return next((int(os.environ[v]) for v in RANKS if os.environ.get(v, "").isdecimal()), 0)


def launched_ranks() -> int:
    """How many ranks the launcher has started; 1 where it does not say."""
    return next((int(os.environ[v]) for v in SIZES if os.environ.get(v, "").isdecimal()), 1)
