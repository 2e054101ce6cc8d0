"""What a study consists of: figures, each with the source of its numbers, drawing and claims."""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mpisim.analysis import panels
from mpisim.analysis.claims import SUFFIX, Claim, counts, read, table, write
from mpisim.analysis.plot import SUFFIXES, save
from mpisim.comm.communicators import Comm
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.schema import choose, require
from mpisim.runs.sweep.points import ALONE, ONE_RANK, Group, Point, Spread

NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
Numbers = tuple[Any, list[str]]  # what is drawn, and a line for each run that is not


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a study.

    Attributes
    ----------
    name : within the study: ``fig1``; ``STUDY-fig1`` names its picture and its make target
    title : one line for lists of figures
    source : where its numbers come from
    draw, claims : from what ``source.read`` finds to a matplotlib figure, and to what is claimed,
        nothing unless given
    """

    name: str
    title: str
    source: Source
    draw: Callable[[Any], Any]
    claims: Callable[[Any], Iterable[Claim]] = lambda numbers: ()

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and NAME.fullmatch(self.name) is not None
        require(named, "a figure's name", self.name, "lower-case letters, digits, '.' and '-'")
        sourced = isinstance(self.source, Source)
        for field, right, allowed in (
            ("title", isinstance(self.title, str), "a string"),
            ("source", sourced, "Grid(...), Grids(...) or Measurement(...)"),
            ("draw", callable(self.draw), "a function of what is drawn"),
            ("claims", callable(self.claims), "a function of what is drawn"),
        ):
            require(right, f"figure {self.name}: {field}", getattr(self, field), allowed)


@dataclasses.dataclass(frozen=True)
class Study:
    """A folder, the first line of its figures.py, and its figures by name."""

    folder: Path
    title: str
    figures: dict[str, Figure]

    def figure(self, name: str) -> Figure:
        """The figure called ``name``; `InputError` lists the figures."""
        if name not in self.figures:
            names = ", ".join(self.figures)
            raise InputError(f"{self.folder}: no figure {name!r}; known: {names}")
        return self.figures[name]

    def full_name(self, figure: Figure) -> str:
        """``STUDY-FIGURE``."""
        return f"{self.folder.resolve().name}-{figure.name}"


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure of a study, drawn and judged.

    picture : a matplotlib figure; left : a line for each run that is not drawn
    """

    study: Study
    figure: Figure
    picture: Any
    claims: Sequence[Claim]
    left: Sequence[str]


def draw(study: Study, figure: Figure, logs: Path | None = None) -> Drawn:
    """Draw a figure and judge its claims.

    ``logs`` is the folder of the numbers, the figure's own if None. `InputError` where there are
    none.
    """
    numbers, left = figure.source.read(logs or figure.source.folder(study.folder))
    with panels.styled():
        picture = figure.draw(numbers)
    return Drawn(study, figure, picture, list(figure.claims(numbers)), left)


def write_drawn(drawn: Drawn, out: Path) -> str:
    """Write OUT/STUDY-FIGURE.png, .pdf and .claims.json; the claims as a table."""
    name = drawn.study.full_name(drawn.figure)
    pictures = [out / f"{name}{suffix}" for suffix in SUFFIXES]
    for path in pictures:
        save(drawn.picture, path)
    files = [*pictures, write(out / f"{name}{SUFFIX}", drawn.claims)]
    return "\n".join([*drawn.left, table(name, drawn.claims), "", ", ".join(map(str, files))])


def overview(study: Study, scale: str, out: Path, ranks: int) -> str:
    """The study's figures: what has run at this scale, and what is drawn in ``out``."""
    ran: dict[Any, str] = {}  # figures share their runs
    lines = [f"{study.folder}: {study.title}"]
    for figure in study.figures.values():
        source = figure.source
        if source not in ran:
            ran[source] = source.state(study.folder, scale, ranks)
        drawn = _drawn(out / f"{study.full_name(figure)}{SUFFIX}")
        lines += [f"  {figure.name:<12} {figure.title}", f"{'':15}{drawn}{ran[source]}"]
    return "\n".join(lines)


def _drawn(claims: Path) -> str:
    if not claims.is_file():
        return ""
    try:
        return f"drawn, {counts(read(claims))}; "
    except InputError:
        return "drawn by an older version, draw it again; "


@dataclasses.dataclass(frozen=True)
class Job:
    """How a source is completed: the arguments of `mpisim.runs.sweep.executor.sweep`, and where.

    study : the folder of the study
    scale : quick, paper, ...
    """

    study: Path
    scale: str
    comm: Comm
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
        """The most ranks that a grid asks for; None if any number will do."""
        return max((grid.ranks(study, scale) or 0 for grid in self.parts()), default=0) or None

    def extras(self, study: Path, scale: str) -> str:
        """The extra of mpisim (setup.cfg) that a grid needs: ``torch``, or nothing."""
        return max((grid.extras(study, scale) for grid in self.parts()), default="")


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
