"""The root attributes of a log, which describe its run."""

from __future__ import annotations

import json
from typing import Any

from mpisim.comm.communicators import OneProcess
from mpisim.core import processor
from mpisim.runs.code import packages_of
from mpisim.runs.declared_labels import declared
from mpisim.runs.durations import PENDING
from mpisim.runs.git import commit
from mpisim.runs.placement import Place, hosts, oversubscribed
from mpisim.runs.setup import Setup
from mpisim.runs.sysinfo import PACKAGE, blas, mpi_library, provenance, source


def attributes_of(setup: Setup, command: str, places: list[Place]) -> dict[str, Any]:
    """The attributes in docs/reference/log.md; ``places``: of the ranks."""
    experiment, star, parameters = setup.experiment, setup.star, setup.estimator.parameters()
    packages = "; ".join(packages_of(setup.execution))
    alone = isinstance(star.comm, OneProcess)
    return (
        provenance()
        | processor.facts()
        | commit(PACKAGE)
        | {"source": source(), "blas": blas(), "code": json.dumps(setup.execution)}
        | ({"plugin_packages": packages} if packages else {})
        | {f"method_{name}": value for name, value in parameters.items()}
        | {
            "title": experiment.title,
            "command": command,
            "config": experiment.to_toml(),
            "labels": json.dumps(declared(experiment), ensure_ascii=False),
            "method": experiment.method.name,
            "compressor": experiment.compressor.name,
            "problem": setup.problem.identity,
            "seed": experiment.run.seed,
            "ranks": star.ranks,
            "workers": star.n,
            "dimension": setup.problem.d,
            "stepsize": setup.step.gamma,
            "stepsize_source": setup.step.source,
            "log_every": setup.run.log_every,
            "log_every_source": _log_every_source(setup),
            "mpi_library": OneProcess.library if alone else mpi_library(),
            "hosts": hosts(places),
            "oversubscribed": int(oversubscribed(places)),
            "stopped_by": "",
            **PENDING,
        }
    )


def _log_every_source(setup: Setup) -> str:
    """Where the number of rounds between two rows comes from."""
    epochs, every = setup.problem.epochs_between_rows, setup.experiment.run.log_every
    if every is not None:
        return "run.log_every, or its default"
    return f"{epochs} epochs" if setup.run.log_every != 1 else "every round"
