"""What a log says of its run: the attributes at its root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpisim.runs.sysinfo import provenance

if TYPE_CHECKING:
    from mpisim.runs.engine import Engine


def attributes_of(engine: Engine, command: str, hosts: list[str]) -> dict[str, Any]:
    """The attributes of docs/log.md; ``hosts``: of each rank."""
    experiment, star, parameters = engine.experiment, engine.star, engine.estimator.parameters()
    return (
        provenance()
        | {f"method_{name}": value for name, value in parameters.items()}
        | {
            "title": experiment.title,
            "command": command,
            "config": experiment.to_toml(),
            "method": experiment.method.name,
            "compressor": experiment.compressor.name,
            "problem": engine.problem.identity,
            "seed": experiment.run.seed,
            "ranks": star.ranks,
            "workers": star.n,
            "dimension": engine.problem.d,
            "stepsize": engine.step.gamma,
            "stepsize_source": engine.step.source,
            "mpi_library": MPI.Get_library_version().splitlines()[0].strip("\x00"),
            "hosts": ", ".join(sorted(set(hosts))),
        }
    )
