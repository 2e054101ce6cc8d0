"""What is known of a run before its problem is loaded: its ranks, n and d, in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mpisim.comm.communicators import on_subset
from mpisim.comm.side_channel import ranks_for, worker_ranks
from mpisim.core.errors import InputError
from mpisim.problems.data.find import lookup
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import Labels, declared

if TYPE_CHECKING:
    from mpi4py import MPI


def headline(experiment: Experiment, started: int, log: Path) -> str:
    """Method, compressor, problem, n, d if it is known, rounds, ranks, and where the log goes.

    started : ranks of the job, of which the experiment may use fewer
    """
    names, table = Labels(declared(experiment)), experiment.table
    ranks, d = ranks_of(experiment) or started, dimension(experiment)
    workers = getattr(experiment.problem, "workers", None)
    n = worker_ranks(ranks, experiment.run.layout) if workers is None else workers
    parts = [
        names.method(experiment.method.name),
        names.compressor(table["compressor"]),
        names.problem(table["problem"]),
        f"n = {n}",
        f"d = {d}" if d else "",
        f"{experiment.run.rounds} rounds",
        f"{ranks} rank{'' if ranks == 1 else 's'}",
    ]
    return f"{', '.join(filter(None, parts))}; log {log}"


def dimension(experiment: Experiment) -> int:
    """d, as far as it is known before the problem is loaded; else 0."""
    problem = experiment.problem
    if hasattr(problem, "dimension"):
        return int(problem.dimension)
    data = lookup(str(getattr(problem, "data", "")))
    features = data.features if data is not None and data.kind == "libsvm" else 0
    if data is not None and hasattr(problem, "code_size"):
        return 2 * data.features * problem.code_size
    return features + bool(features and getattr(problem, "bias", False))


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


def on_its_ranks(
    experiment: Experiment, comm: MPI.Intracomm, work: Callable[[MPI.Intracomm], T]
) -> T:
    """`on_subset` with the experiment's number of ranks; `InputError` if there are fewer."""
    needed = ranks_of(experiment) or comm.size
    if needed > comm.size:
        raise InputError(too_few(needed, comm.size))
    return on_subset(comm, needed, work)
