"""The ranks that an experiment runs on: all of the job, or as many as `run.ranks` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mpisim.comm.communicators import on_subset
from mpisim.comm.side_channel import ranks_for
from mpisim.core.errors import InputError
from mpisim.runs.experiment import Experiment

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")


def ranks_of(experiment: Experiment) -> int | None:
    """How many ranks `run.ranks` asks for; None for all of the job.

    Where the ranks decide the number of workers, too, "workers" are all of them.
    """
    wanted = experiment.run.ranks
    if wanted == "all":
        return None
    if wanted == "workers":
        n = getattr(experiment.problem, "workers", None)
        return None if n is None else ranks_for(n, experiment.run.layout)
    return wanted


def too_few(needed: int, started: int) -> str:
    """The line about a job that has fewer ranks than a run needs."""
    have = f"this job has {started}"
    return f"run.ranks: the run needs {needed} ranks, {have}; start it with mpirun -n {needed}"


def on_own_ranks(
    experiment: Experiment, comm: MPI.Intracomm, work: Callable[[MPI.Intracomm], T]
) -> T:
    """`on_subset` with the experiment's number of ranks; `InputError` if there are fewer."""
    needed = ranks_of(experiment) or comm.size
    if needed > comm.size:
        raise InputError(too_few(needed, comm.size))
    return on_subset(comm, needed, work)
