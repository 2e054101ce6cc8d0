"""Where the numbers of a figure come from, and the measurements that need no runs."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.schema import choose
from mpisim.runs.sweep.points import ALONE, ONE_RANK, Group, Point, Spread

if TYPE_CHECKING:
    from mpi4py import MPI

Numbers = tuple[Any, list[str]]  # what is drawn, and a line for each run that is not


@dataclasses.dataclass(frozen=True)
class Job:
    """How a source is completed: the arguments of `mpisim.runs.sweep.executor.sweep`, and where.

    study : the folder of the study
    scale : quick, paper, ...
    """

    study: Path
    scale: str
    comm: MPI.Intracomm
    command: str = ""
    accept: bool = False
    spread: Spread = ONE_RANK
    group: Group = ALONE


class Source(ABC):
    """Numbers that figures are drawn from."""

    @abstractmethod
    def folder(self, study: Path) -> Path:
        """Where the numbers are kept."""

    def folders(self, study: Path) -> list[Path]:
        """The folders with its own numbers, and nobody else's."""
        return [self.folder(study)]

    @abstractmethod
    def read(self, folder: Path) -> Numbers:
        """What is drawn, from such a folder; `InputError` where there is nothing."""

    @abstractmethod
    def complete(self, job: Job) -> Sequence[Point]:
        """Make the numbers that are missing; returns the points of sweeps. Collective."""

    @abstractmethod
    def state(self, study: Path, scale: str, ranks: int) -> str:
        """How much there is, in a few words."""

    def parts(self) -> Sequence[Any]:
        """Each `Grid` whose runs the numbers are of."""
        return ()

    def ranks(self, study: Path, scale: str) -> int | None:
        """How many ranks it asks for; None if any number will do."""
        return None

    def extras(self, study: Path, scale: str) -> str:
        """The extra of mpisim (setup.cfg) that it needs: ``torch``, or nothing."""
        return ""


@dataclasses.dataclass(frozen=True, eq=False)
class Measurement(Source):
    """Numbers that a module measures without runs.

    Attributes
    ----------
    module : its ``measure(folder, size)`` is called on rank 0; it is imported only then
    where : the folder
    scales : {scale: size}
    load : from the folder to what is drawn; `InputError` where nothing was measured
    """

    module: str
    where: str
    scales: Mapping[str, Any]
    load: Callable[[Path], Any]

    def folder(self, study: Path) -> Path:
        """Where the numbers are kept."""
        return Path(self.where)

    def read(self, folder: Path) -> Numbers:
        """What was measured."""
        return self.load(folder), []

    def complete(self, job: Job) -> Sequence[Point]:
        """Measure anew. Collective."""
        size, folder = choose(self.scales, job.scale, "--scale"), self.folder(job.study)
        if job.spread.jobs:
            raise InputError("--jobs: this figure needs no runs; one process measures")
        on_first(job.comm, lambda: import_module(self.module).measure(folder, size))
        return []

    def state(self, study: Path, scale: str, ranks: int) -> str:
        """Whether anything was measured."""
        return "measured" if self.folder(study).is_dir() else "never measured"

    def extras(self, study: Path, scale: str) -> str:
        """Nothing, at any of the scales."""
        choose(self.scales, scale, "--scale")
        return ""
