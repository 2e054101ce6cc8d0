"""Figures from the runs of grids.

Running needs MPI and compiled kernels, so those modules are imported when something runs. Lists and
figures need neither.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpisim.analysis.study.figure import Job, Numbers, Source
from mpisim.analysis.study.tuning import complete_logs
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.schema import choose, require
from mpisim.runs.labels import Tables
from mpisim.runs.stop import COMPLETE
from mpisim.runs.sweep.points import Point, exit_code


@dataclasses.dataclass(frozen=True, eq=False)
class Grid(Source):
    """A grid of runs, which several figures may share.

    Attributes
    ----------
    file : the study's FILE.toml, whose table ``[sweep]`` also says where the logs go
    scales : {scale: settings over the grid, as for ``mpisim sweep --set``}
    files : {scale: another file}, where a scale has one of its own
    methods : those of the grid's methods that are run; all if empty
    instead : {data set: the one that takes its place where it is not on this machine}
    """

    file: str
    scales: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=lambda: {"quick": ()})
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    methods: Collection[str] = ()
    instead: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def parts(self) -> Sequence[Grid]:
        """Itself."""
        return (self,)

    def all_points(self, study: Path, scale: str) -> tuple[Path, list[Tables]]:
        """The folder of the logs, and all points of the grid."""
        from mpisim.runs.sweep.grid import read

        file = self.files.get(scale, self.file)
        folder, grid = read(study / f"{file}.toml", list(choose(self.scales, scale, "--scale")))
        kept = [p for p in grid if not self.methods or p["method"]["name"] in self.methods]
        return folder, kept

    def points(self, study: Path, scale: str) -> tuple[Path, list[Tables], list[str]]:
        """The folder, the points whose data is at hand, and the missing data sets.

        Raises `InputError` if all data is missing, or where figures would not look for the logs.
        """
        folder, grid = self.all_points(study, scale)
        where, shared = f"{study / self.file}, scale {scale}: sweep.folder", self.folder(study)
        require(folder == shared, where, str(folder), f"{str(shared)!r}, as at the first scale")
        for point in grid:
            if _data(point) in self.instead and not _here(point):
                point["problem"]["data"] = self.instead[_data(point)]
        gone = list(dict.fromkeys(_data(point) for point in grid if not _here(point)))
        grid = [point for point in grid if _data(point) not in gone]
        if not grid:
            how = f"`mpisim data fetch {gone[0]}`" if len(gone) == 1 else "`make data`"
            text = f"none of the data is here ({', '.join(gone)}); {how} downloads it"
            raise InputError(f"{text}, and MPISIM_DATA names folders with data sets")
        return folder, grid, gone

    def folder(self, study: Path) -> Path:
        """Where `mpisim sweep` puts the logs of the grid."""
        return self.all_points(study, next(iter(self.scales)))[0]

    def read(self, folder: Path) -> Numbers:
        """The complete logs."""
        return complete_logs(folder)

    def complete(self, job: Job) -> Sequence[Point]:
        """Sweep the points whose data is at hand. Collective."""
        from mpisim.runs.sweep.executor import sweep
        from mpisim.runs.sweep.points import counts

        folder, grid, gone = on_first(job.comm, lambda: self.points(job.study, job.scale))
        for data in gone if job.comm.rank == 0 else ():
            print(f"{data}: left out, it is not here; `mpisim data fetch {data}` downloads it")
        how = job.command, job.accept, job.spread, job.group
        points = sweep(folder, grid, job.comm, *how)
        if job.comm.rank == 0:
            print(f"{counts(points)}; logs in {folder}", flush=True)
        return points

    def state(self, study: Path, scale: str, ranks: int) -> str:
        """How many of the points are done."""
        from mpisim.runs.sweep.plan import plan

        try:
            folder, grid, _ = self.points(study, scale)
        except InputError as error:
            return str(error)
        points = plan(folder, grid, ranks) if folder.is_dir() else []
        done = sum(point.status in COMPLETE for point in points)
        return f"{done} of {len(points)} runs done" if done else "never run"

    def ranks(self, study: Path, scale: str) -> int | None:
        """The ranks of the largest point that says how many it needs; None if none does."""
        from mpisim.runs.experiment import parse
        from mpisim.runs.labels import ranks_of

        needed = []
        for point in self.points(study, scale)[1]:
            with suppress(InputError):  # the sweep says what is wrong with the point
                needed.append(ranks_of(parse(point)) or 0)
        return max(needed, default=0) or None

    def extras(self, study: Path, scale: str) -> str:
        """``torch`` where points train networks."""
        return "torch" if any(map(_trains, self.all_points(study, scale)[1])) else ""


@dataclasses.dataclass(frozen=True, eq=False)
class Grids(Source):
    """Several grids, completed in this order: what is timed comes last.

    The logs of each are in a folder of its file's name, below one that all share.
    """

    grids: Sequence[Grid]

    def folder(self, study: Path) -> Path:
        """The folder that all share; `InputError` where a grid has its logs elsewhere."""
        shared = self.grids[0].folder(study).parent
        for grid in self.grids:
            where = f"{study / grid.file}.toml: sweep.folder"
            place, allowed = grid.folder(study), shared / grid.file
            require(place == allowed, where, str(place), str(allowed))
        return shared

    def parts(self) -> Sequence[Grid]:
        """The grids."""
        return self.grids

    def read(self, folder: Path) -> Numbers:
        """The complete logs of all grids that have any; of the folder itself if it has no such."""
        folders = [folder / grid.file for grid in self.grids]
        logs: list[Any] = []
        left: list[str] = []
        for place in [path for path in folders if path.is_dir()] or [folder]:
            try:
                more, lines = complete_logs(place)
                logs, left = logs + more, left + lines
            except InputError as error:
                left.append(str(error))
        if not logs:
            raise InputError(f"{folder}: no complete log of a run there")
        return logs, left

    def complete(self, job: Job) -> Sequence[Point]:
        """Complete one grid after the other, until a signal stops one. Collective."""
        points: list[Point] = []
        on_first(job.comm, lambda: self.folder(job.study))
        for i, grid in enumerate(self.grids):
            group = f"group {i + 1} of {len(self.grids)} ({grid.file})"
            if job.comm.rank == 0:
                print(group, flush=True)
            points += grid.complete(job._replace(group=group))
            if exit_code(points):
                break
        return points

    def state(self, study: Path, scale: str, ranks: int) -> str:
        """How many points of each grid are done."""
        states = (f"{grid.file}: {grid.state(study, scale, ranks)}" for grid in self.grids)
        return ", ".join(states)


def _problem(point: Tables) -> Tables:
    """Its ``[problem]``; empty if it has none, which the sweep then reports."""
    table = point.get("problem")
    return table if isinstance(table, dict) else {}


def _data(point: Tables) -> str:
    return str(_problem(point).get("data", ""))


def _trains(point: Tables) -> bool:
    return _problem(point).get("name") == "torch"


def _here(point: Tables) -> bool:
    from mpisim.problems.data.find import available
    from mpisim.problems.torch import samples

    data = _data(point)
    return samples.available(data) if _trains(point) else not data or available(data)
