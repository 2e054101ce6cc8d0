"""Numbers of a figure that need no runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mpisim.analysis.study.base import Found, Job, Source
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.schema import choose
from mpisim.runs.sweep.points import Point


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

    def read(self, folder: Path) -> Found:
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
