"""Where the numbers of a figure come from: the runs of a grid, or a measurement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpisim.analysis.study.logs import complete_logs
from mpisim.analysis.study.spec import Figure, Study
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.problems.data.find import here
from mpisim.problems.torch import samples
from mpisim.runs.log.reader import Log
from mpisim.runs.sweep.grid import read
from mpisim.runs.sweep.points import COMPLETE, Point, Tables

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs of a grid. Several figures may show the same: whichever is first runs them.

    Attributes
    ----------
    grid : str
        The file GRID.toml of the study, with a table ``[sweep]``. It says where the logs go.
    scales : dict
        {scale: settings over the grid, as for ``mpisim sweep --set``}.
    grids : dict
        {scale: another grid}, where a scale has one of its own.
    methods : collection of str
        The methods of the grid that are run; all if empty.
    instead : dict
        {data set: the one that takes its place where it is not on this machine}.
    """

    grid: str
    scales: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=lambda: {"quick": ()})
    grids: Mapping[str, str] = dataclasses.field(default_factory=dict)
    methods: Collection[str] = ()
    instead: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def folder(self, study: Study, figure: Figure) -> Path:
        """Where `mpisim sweep` puts the logs of the grid."""
        return self.whole(study, next(iter(self.scales)))[0]

    def whole(self, study: Study, scale: str) -> tuple[Path, list[Tables]]:
        """The folder of the logs, and the points of the grid whatever data is here."""
        settings = _of_scale(self.scales, scale)
        folder, grid = read(study.folder / f"{self.grids.get(scale, self.grid)}.toml", settings)
        own = [p for p in grid if not self.methods or p["method"]["name"] in self.methods]
        return folder, own

    def points(self, study: Study, scale: str, say: bool = True) -> tuple[Path, list[Tables]]:
        """The folder, and the points whose data is here; prints what is left out with ``say``.

        Raises `InputError` where no data is here.
        """
        folder, grid = self.whole(study, scale)
        for point in grid:
            if _data(point) in self.instead and not _here(point):
                point["problem"]["data"] = self.instead[_data(point)]
        gone = list(dict.fromkeys(_data(point) for point in grid if not _here(point)))
        for data in gone if say else ():
            print(f"{data}: left out, it is not here; `mpisim data fetch {data}` downloads it")
        grid = [point for point in grid if _data(point) not in gone]
        if not grid:
            raise InputError("none of the data is here; MPISIM_DATA names folders with data sets")
        return folder, grid

    def read(self, folder: Path) -> tuple[list[Log], list[str]]:
        """The complete logs, and a line for each run that is not drawn."""
        return complete_logs(folder)

    def complete(
        self, study: Study, figure: Figure, scale: str, comm: MPI.Intracomm, command: str
    ) -> Sequence[Point]:
        """Sweep the points whose data is here. Collective."""
        from mpisim.runs.sweep.runner import counts, sweep

        folder, grid = on_first(comm, lambda: self.points(study, scale))
        points = sweep(folder, grid, comm, command)
        if comm.rank == 0:
            print(f"{counts(points)}; logs in {folder}", flush=True)
        return points

    def state(self, study: Study, figure: Figure, scale: str, ranks: int) -> str:
        """How many of the points are done."""
        from mpisim.runs.sweep.plan import plan

        try:
            folder, grid = self.points(study, scale, say=False)
        except InputError as error:
            return str(error)
        points = plan(folder, grid, ranks) if folder.is_dir() else []
        done = sum(point.status in COMPLETE for point in points)
        return f"{done} of {len(points)} runs done" if done else "never run"

    def extras(self, study: Study, scale: str) -> list[str]:
        """``torch``, where networks are trained."""
        return ["torch"] * any(map(_trains, self.whole(study, scale)[1]))


@dataclasses.dataclass(frozen=True)
class Measured:
    """Numbers that a module of the study measures without runs.

    Attributes
    ----------
    module : str
        Its ``measure(folder, size)`` leaves them in a folder. Rank 0 alone calls it.
    scales : dict
        {scale: size}.
    load : callable
        From the folder to what is drawn; `InputError` where nothing was measured.
    """

    module: str
    scales: Mapping[str, Any]
    load: Callable[[Path], Any]

    def folder(self, study: Study, figure: Figure) -> Path:
        """``logs/STUDY-FIGURE``."""
        return Path("logs") / study.full_name(figure)

    def read(self, folder: Path) -> tuple[Any, list[str]]:
        """What was measured."""
        return self.load(folder), []

    def complete(
        self, study: Study, figure: Figure, scale: str, comm: MPI.Intracomm, command: str
    ) -> Sequence[Point]:
        """Measure anew on rank 0. Collective."""
        size, folder = _of_scale(self.scales, scale), self.folder(study, figure)
        on_first(
            comm, lambda: import_module(f"{study.package}.{self.module}").measure(folder, size)
        )
        return []

    def state(self, study: Study, figure: Figure, scale: str, ranks: int) -> str:
        """Whether anything was measured."""
        try:
            self.load(self.folder(study, figure))
        except InputError:
            return "never measured"
        return "measured"

    def extras(self, study: Study, scale: str) -> list[str]:
        """None."""
        return []


def _of_scale(scales: Mapping[str, Any], scale: str) -> Any:
    require(scale in scales, "--scale", scale, " or ".join(scales))
    return scales[scale]


def _data(point: Tables) -> str:
    return point["problem"].get("data", "")


def _trains(point: Tables) -> bool:
    return point["problem"].get("name") == "torch"


def _here(point: Tables) -> bool:
    data = _data(point)
    return samples.here(data) if _trains(point) else not data or here(data)
