"""Runs comparisons on record again, and compares the digests of their rows."""

from __future__ import annotations

import dataclasses
import tempfile
import tomllib
from collections.abc import Container
from pathlib import Path
from random import Random

from mpisim.analysis.results.files import of_study
from mpisim.analysis.study.figure import Study
from mpisim.comm.communicators import Comm
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.runs.labels import Tables
from mpisim.runs.log.reader import read

SECONDS = 60.0  # comparisons whose runs took longer together are left out


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A comparison on record.

    runs : {name of a log: the first digits of `Log.digest`}
    seconds : what its runs took, by the mean over the runs of its figure
    """

    name: str
    figure: str
    scale: str
    runs: dict[str, str]
    seconds: float


def recorded(study: Path) -> list[Comparison]:
    """The comparisons on record that name their runs, each once."""
    comparisons: dict[tuple[str, ...], Comparison] = {}
    for result in of_study(study):
        origin = result.provenance
        for claim in result.claims:
            for one in claim.evidence:
                runs = one.numbers.get("runs", {})
                name = f"{origin.study}-{origin.figure}, {origin.scale}, {one.where}"
                seconds = len(runs) * origin.seconds / max(sum(origin.runs.values()), 1)
                key = origin.scale, *sorted(runs)
                if runs:
                    new = Comparison(name, origin.figure, origin.scale, runs, seconds)
                    comparisons.setdefault(key, new)
    return list(comparisons.values())


def repeat(
    study: Study, number: int, seed: int, comm: Comm, seconds: float = SECONDS
) -> tuple[list[str], bool]:
    """Run ``number`` comparisons again that ``seed`` draws; lines, and whether all digits agree.

    Collective. Comparisons whose runs took more than ``seconds`` are not drawn.
    """
    several = on_first(comm, lambda: recorded(study.folder))
    short = [one for one in several if one.seconds <= seconds]
    chosen = Random(seed).sample(short, min(number, len(short)))
    lines = [
        f"{study.folder}: {len(chosen)} of {len(several)} comparisons drawn by seed {seed};"
        f" {len(several) - len(short)} have runs that take longer than {seconds:g} s"
    ]
    right = True
    for one in chosen:
        wrong = _differences(study, one, comm)
        right &= not wrong
        lines += [f"  {one.name}: {line}" for line in wrong] or [
            f"  {one.name}: {len(one.runs)} runs, every digit as on record"
        ]
    return lines, right


def _differences(study: Study, one: Comparison, comm: Comm) -> list[str]:
    """A line for each run that is not as on record. Collective."""
    from mpisim.runs.sweep.executor import sweep

    tables = on_first(comm, lambda: _tables(study, one, comm.size))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(on_first(comm, lambda: temporary))
        points = sweep(folder, list(tables.values()), comm) if tables else []
        made = {point.name for point in points}
        runs = [(folder, name, digest, made) for name, digest in one.runs.items()]
        return on_first(comm, lambda: [line for run in runs if (line := _difference(*run))])


def _difference(folder: Path, name: str, digest: str, made: Container[str]) -> str:
    if name not in made:
        return f"{name}: no such run in the figure's grid"
    try:
        log = read(folder / f"{name}.h5")
    except InputError as error:
        return f"{name}: {error}"
    return "" if log.digest.startswith(digest) else f"{name}: other rows than on record"


def _tables(study: Study, one: Comparison, ranks: int) -> dict[str, Tables]:
    """{name of a log: its experiment}, of the runs that the figure's grids still have."""
    from mpisim.runs.sweep.plan import plan

    planned = []
    for grid in study.figure(one.figure).source.parts():
        folder, points, _ = grid.points(study.folder, one.scale)
        planned += plan(folder, points, ranks, accept=True)
    return {p.name: tomllib.loads(p.config) for p in planned if p.name in one.runs}
