"""The root attributes of a log: what the run is, where it ran, and where its time went."""

from __future__ import annotations

import json
from math import nan
from typing import Any

from mpisim.comm.clock import EVALUATE, PHASES, Clock, SlowestPath
from mpisim.comm.communicators import OneProcess
from mpisim.core.numerics import processor
from mpisim.runs import host
from mpisim.runs.identity import packages_of
from mpisim.runs.labels import declared
from mpisim.runs.log.schema import AT_SERVER, AT_WORKERS, NOT_REPLACED, REPLACED
from mpisim.runs.setup import Setup


def attributes_of(setup: Setup, command: str, places: list[host.Place]) -> dict[str, Any]:
    """The attributes in docs/reference/log.md; ``places``: of the ranks."""
    experiment, star, parameters = setup.experiment, setup.star, setup.estimator.parameters()
    packages = "; ".join(packages_of(setup.execution))
    epochs, given = setup.problem.epochs_between_rows, experiment.run.log_every is not None
    by_problem = f"{epochs} epochs" if setup.run.log_every != 1 else "every round"
    alone = isinstance(star.comm, OneProcess)
    clients_drawn = REPLACED if setup.estimator.replaced else NOT_REPLACED
    return (
        host.provenance()
        | processor.facts()
        | host.commit(host.PACKAGE)
        | {"source": host.source(), "blas": host.blas(), "code": json.dumps(setup.execution)}
        | ({"plugin_packages": packages} if packages else {})
        | ({"clients_drawn": clients_drawn} if "participants" in parameters else {})
        | {f"method_{name}": value for name, value in parameters.items()}
        | {
            "title": experiment.title,
            "command": command,
            "config": experiment.to_toml(),
            "labels": json.dumps(declared(experiment), ensure_ascii=False),
            "method": experiment.method.name,
            "compressor": experiment.compressor.name,
            "problem": setup.problem.identity,
            "evaluated_at": AT_SERVER if setup.estimator.server_point else AT_WORKERS,
            "seed": experiment.run.seed,
            "ranks": star.ranks,
            "workers": star.n,
            "dimension": setup.problem.d,
            "stepsize": setup.step.gamma,
            "stepsize_source": setup.step.source,
            "log_every": setup.run.log_every,
            "log_every_source": "run.log_every, or its default" if given else by_problem,
            "mpi_library": OneProcess.library if alone else host.mpi_library(),
            "hosts": host.hosts(places),
            "oversubscribed": int(host.oversubscribed(places)),
            "stopped_by": "",
            **PENDING,
        }
    )


# Attributes of the log, of the last start of the run; not a number until it has ended.
PARTS = ("elapsed", "setup", "rehearsal", "evaluation", "waiting", "before")
PENDING = {f"seconds_{part}": nan for part in PARTS}


class Durations:
    """Where the time of one start of a run goes, by rank 0's clock; made when its set-up ends.

    clock : rank 0's, which began with the set-up
    path : the method's seconds
    """

    def __init__(self, clock: Clock, path: SlowestPath):
        self.clock, self.path = clock, path
        self._set_up = self._now()
        self._setup = self._rehearsed = self._before = nan

    def rehearsed(self, resumed: bool) -> None:
        """The log is open and the rounds are rehearsed: the next one is the run's first.

        The set-up's exchange was charged in the first start, so all of the set-up is left out when
        a run is resumed.
        """
        total, uncharged = self._set_up
        self._setup = total if resumed else uncharged
        self._rehearsed, self._before = self._now()[1], sum(self.path.seconds)

    def attributes(self) -> dict[str, float]:
        """The values of `PENDING`, in seconds."""
        total, uncharged = self._now()
        return {
            "seconds_elapsed": total,
            "seconds_setup": self._setup,
            "seconds_rehearsal": self._rehearsed - self._set_up[1],
            "seconds_evaluation": uncharged - self._rehearsed,
            "seconds_waiting": self.path.waited,
            "seconds_before": self._before,
        }

    def _now(self) -> tuple[float, float]:
        """All seconds so far, and those that no method is charged for."""
        self.clock.to(EVALUATE)
        return sum(self.clock.seconds), sum(self.clock.seconds[len(PHASES) :])
