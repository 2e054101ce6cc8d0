"""What a study consists of: figures, each with the source of its numbers, drawing and claims.

A study is loaded by importing a folder's figures.py, and a new one is made from the template.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from mpisim.analysis import style
from mpisim.analysis.claims import SUFFIX, Claim, counts, read, table, write
from mpisim.analysis.plot import SUFFIXES, save
from mpisim.comm.communicators import Comm
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError, import_failure
from mpisim.core.files import writing
from mpisim.core.schema import choose, filled_template, require
from mpisim.runs.sweep.points import ONE_RANK, Point, Spread

FILE = "figures.py"
CONTENT = ("README.md", FILE, "plugin.py", "fig1.toml", "CITATION.cff", "LICENSE")  # of a new one
STUDIES = Path("run")  # where `mpisim study --draw` and make look for studies
ROOT = Path(__file__).resolve().parents[3]  # the repository, where mpisim runs from one
PLACES = (Path(), STUDIES, ROOT / STUDIES)  # of studies, the first first
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


class Drawn(NamedTuple):
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
    with style.styled(style.PANELS):
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


class Job(NamedTuple):
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
    group: str = ""


class Source(ABC):
    """Numbers that figures are drawn from."""

    @abstractmethod
    def folder(self, study: Path) -> Path:
        """Where the numbers are kept."""

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


# from a folder


def load(folder: Path) -> Study:
    """The study in ``folder``; `InputError` with file and line where its figures.py is wrong.

    The folder is imported as a package under a name of its own, so that its modules may import
    each other (``from . import claims``) and two studies may both have a module ``claims``.
    """
    file = folder / FILE
    if not file.is_file():
        new = "`mpisim new study FOLDER` makes one"
        raise InputError(f"{folder}: not a study, it has no {FILE}; {new}")
    try:
        module = import_module(f"{_package(folder.resolve())}.{file.stem}")
    except Exception as error:
        raise InputError(f"{file}: cannot be loaded: {import_failure(error, __file__)}") from None
    figures = getattr(module, "FIGURES", None)
    if not isinstance(figures, list) or not all(isinstance(one, Figure) for one in figures):
        raise InputError(f"{file}: FIGURES: {figures!r}; it must be a list of Figure(...)")
    by_name = {figure.name: figure for figure in figures}
    if len(by_name) < len(figures):
        raise InputError(f"{file}: FIGURES: two figures have the same name")
    return Study(folder, (module.__doc__ or "").strip().partition("\n")[0], by_name)


def studies(folder: Path) -> list[Study]:
    """The studies that are folders of ``folder``, by name; `InputError` without any."""
    files = sorted(folder.glob(f"*/{FILE}"))
    if not files:
        raise InputError(f"{folder}: no study there (a folder with {FILE})")
    return [load(file.parent) for file in files]


def known_studies() -> set[str]:
    """The names of all studies that `find` looks at, which stay unread."""
    return {file.parent.name for place in PLACES for file in place.glob(f"*/{FILE}")}


def quotes(file: str) -> dict[str, Any]:
    """What a paper says, by name: ``quotes.toml`` beside a ``__file__`` of the study."""
    return tomllib.loads(Path(file).with_name("quotes.toml").read_text(encoding="utf-8"))


def find(name: str) -> tuple[Study, Figure]:
    """The figure ``STUDY-FIGURE`` of a study in the current folder, in its folder run/, or in the
    repository's, whichever has it first."""
    figures: dict[str, tuple[Study, Figure]] = {}
    for place in [place for place in PLACES if any(place.glob(f"*/{FILE}"))] or [STUDIES]:
        for one in studies(place):
            figures = {one.full_name(f): (one, f) for f in one.figures.values()} | figures
    if name not in figures:
        raise InputError(f"figure {name!r}: unknown; known: {', '.join(figures)}")
    return figures[name]


def _package(folder: Path) -> str:
    """A package whose modules are the files of ``folder``."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    name = re.sub(r"\W", "_", f"study_{folder.name}_{digest}")
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    invalidate_caches()
    return name


def create(folder: Path) -> list[Path]:
    """Write a study that runs as it is into a new or empty folder; returns its files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; name a new folder")
    written = []
    with writing(folder):
        words = {"STUDY": folder.resolve().name, "FOLDER": str(folder)}
        folder.mkdir(parents=True, exist_ok=True)
        for name in CONTENT:
            suffix = ".txt" if name.endswith(".py") else ""
            text = filled_template(__file__, name + suffix, words)
            written.append(folder / name)
            written[-1].write_text(text, encoding="utf-8")
    return written
