"""What a study consists of: figures, and for each its numbers, its drawing and its claims."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mpisim.analysis.claims import Claim
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.runs.sweep.points import Point

if TYPE_CHECKING:
    from mpi4py import MPI

NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


@runtime_checkable
class Source(Protocol):
    """Where the numbers of a figure come from.

    scales : {scale: settings}, the first the default
    """

    scales: Mapping[str, Any]

    def folder(self, study: Study, figure: Figure) -> Path:
        """Where the numbers are kept."""

    def read(self, folder: Path) -> tuple[Any, list[str]]:
        """What is drawn, and a line for each run that is not; `InputError` without numbers."""

    def complete(
        self, study: Study, figure: Figure, scale: str, comm: MPI.Intracomm, command: str
    ) -> Sequence[Point]:
        """Run what is missing; the points of the sweep, if it is one. Collective."""

    def state(self, study: Study, figure: Figure, scale: str, ranks: int) -> str:
        """In a few words, what has run."""

    def extras(self, study: Study, scale: str) -> list[str]:
        """The extras of the package (setup.cfg) that the runs need."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a study.

    Attributes
    ----------
    name : str
        Its name within the study: ``fig1``. ``STUDY-fig1`` names its picture and its make target.
    title : str
        One line for lists of figures.
    source : Source
        `Runs` of a grid, or numbers that are `Measured` without runs.
    draw : callable
        From what ``source.read`` finds to a matplotlib figure.
    claims : callable
        From the same to what the paper claims, and whether it holds.
    """

    name: str
    title: str
    source: Source
    draw: Callable[[Any], Any]
    claims: Callable[[Any], Iterable[Claim]]

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and NAME.fullmatch(self.name) is not None
        require(named, "a figure's name", self.name, "lower-case letters, digits, '.' and '-'")
        where = f"figure {self.name!r}: "
        require(isinstance(self.title, str), f"{where}title", self.title, "a string")
        sources = "Runs(...) or Measured(...)"
        require(isinstance(self.source, Source), f"{where}source", self.source, sources)
        for field in ("draw", "claims"):
            value = getattr(self, field)
            require(callable(value), where + field, value, "a function of what is drawn")


@dataclasses.dataclass(frozen=True)
class Study:
    """A loaded study.

    Attributes
    ----------
    folder : Path
    title : str
        The first line of its figures.py.
    package : str
        The name under which its modules are imported.
    figures : dict of Figure
        By name, in the order of figures.py.
    """

    folder: Path
    title: str
    package: str
    figures: dict[str, Figure]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.resolve().name

    def figure(self, name: str) -> Figure:
        """The figure called ``name``; `InputError` lists the figures."""
        if name not in self.figures:
            known = ", ".join(self.figures)
            raise InputError(f"{self.folder}: no figure {name!r}; known: {known}")
        return self.figures[name]

    def full_name(self, figure: Figure) -> str:
        """``STUDY-FIGURE``."""
        return f"{self.name}-{figure.name}"
