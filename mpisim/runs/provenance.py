"""The root attributes of a log, which describe its run."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from mpisim.runs.setup import Setup
from mpisim.runs.sysinfo import provenance


def attributes_of(setup: Setup, command: str, hosts: list[str]) -> dict[str, Any]:
    """The attributes in docs/log.md; ``hosts``: the host of each rank."""
    experiment, star, parameters = setup.experiment, setup.star, setup.estimator.parameters()
    return (
        provenance()
        | {f"method_{name}": value for name, value in parameters.items()}
        | {
            "title": experiment.title,
            "command": command,
            "config": experiment.to_toml(),
            "method": experiment.method.name,
            "compressor": experiment.compressor.name,
            "problem": setup.problem.identity,
            "seed": experiment.run.seed,
            "ranks": star.ranks,
            "workers": star.n,
            "dimension": setup.problem.d,
            "stepsize": setup.step.gamma,
            "stepsize_source": setup.step.source,
            "mpi_library": MPI.Get_library_version().splitlines()[0].strip("\x00"),
            "hosts": ", ".join(sorted(set(hosts))),
        }
    )
