"""What the runs of a sweep share, and the run of one point."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from mpisim.comm.job import together
from mpisim.core.errors import InputError
from mpisim.core.terminal import report
from mpisim.runs.cache import ProblemCache
from mpisim.runs.experiment import parse
from mpisim.runs.log.lock import locked
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.signals import StopSignals
from mpisim.runs.status import STOPPED
from mpisim.runs.sweep.claims import Outcome
from mpisim.runs.sweep.points import ALONE, Group, Point

if TYPE_CHECKING:
    from mpi4py import MPI

GO_ON = "the same command continues"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What the runs of a sweep share.

    folder : of the logs
    points : all of them, in the order of the plan
    signals : that end the sweep
    command, accept : as in `Output`
    group : of several sweeps, this one
    """

    folder: Path
    points: Sequence[Point]
    signals: StopSignals
    command: str
    accept: bool
    group: Group = ALONE

    def execute(
        self, point: Point, cache: ProblemCache, comm: MPI.Intracomm, **how: Any
    ) -> Outcome:
        """Run a point on all ranks of ``comm``; ``how``: more keys of `Output`. Collective."""
        earlier = Path(point.earlier) if point.earlier else None
        flags = {"force": True, "resume": True, "accept": self.accept} | how
        output = Output(Path(point.log), **flags, command=self.command, earlier=earlier)
        start, control = monotonic(), comm.Dup()
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(comm, output.log))
                config = tomllib.loads(point.config)
                setup = together(control, lambda: Setup(parse(config), comm, cache))
            except InputError as error:
                if not error.agreed:
                    raise
                status, reason = "skipped", str(error)
            else:
                end = run_rounds(setup, output, self.signals)
                status, reason = end.status, ""
                if status in STOPPED and comm.rank == 0:
                    report(self.signals.stopped(status, end.row.round, output.log))
        control.Free()
        return Outcome(status, reason, monotonic() - start)

    def waiting(self, with_ranks: bool) -> list[int]:
        """The numbers of the points without a status that ask for ranks, or do not."""
        return [
            number
            for number, point in enumerate(self.points)
            if not point.status and (point.ranks is not None) == with_ranks
        ]

    def stopped(self) -> str:
        """The status of a run that a signal has stopped; empty if there is none."""
        return next((point.status for point in self.points if point.status in STOPPED), "")

    def report_left(self) -> None:
        """Print how many points are left, if a signal has stopped runs."""
        if status := self.stopped():
            report(self.signals.ended(status, self.left()))

    def left(self) -> str:
        """How many points are left, and how to go on with them."""
        left = sum(not point.status or point.status in STOPPED for point in self.points)
        return f"{left} of {len(self.points)} points are left; {GO_ON}"
