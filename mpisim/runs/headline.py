"""What a run is, in one line, before its data is loaded."""

from __future__ import annotations

from pathlib import Path

from mpisim.comm.side_channel import worker_ranks
from mpisim.problems.data.registry import lookup
from mpisim.runs.declared_labels import declared
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import Labels
from mpisim.runs.ranks import ranks_of


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
