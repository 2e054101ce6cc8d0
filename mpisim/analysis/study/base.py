"""What the sources of numbers have in common."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpisim.runs.sweep.points import ALONE, ONE_RANK, Group, Point, Spread

if TYPE_CHECKING:
    from mpi4py import MPI

Found = tuple[Any, list[str]]  # what is drawn, and a line for each run that is not


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
    def read(self, folder: Path) -> Found:
        """What is drawn, from such a folder; `InputError` where there is nothing."""

    @abstractmethod
    def complete(self, job: Job) -> Sequence[Point]:
        """Make the numbers that are missing; returns the points of sweeps. Collective."""

    @abstractmethod
    def state(self, study: Path, scale: str, ranks: int) -> str:
        """How much there is, in a few words."""

    def ranks(self, study: Path, scale: str) -> int | None:
        """How many ranks it asks for; None if any number will do."""
        return None

    def extras(self, study: Path, scale: str) -> str:
        """The extra of mpisim (setup.cfg) that it needs: ``torch``, or nothing."""
        return ""
