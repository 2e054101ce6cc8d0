"""What a sweep has to do: names of the points, and what their logs already hold."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py

from mpisim.comm.partition import worker_ranks
from mpisim.core.errors import InputError
from mpisim.runs import checkpoint
from mpisim.runs.cache import problem_key
from mpisim.runs.experiment import Experiment, parse
from mpisim.runs.log import reader as figures_read
from mpisim.runs.log.isolated import DAMAGE, Crashed, apart
from mpisim.runs.log.writer import rows_before
from mpisim.runs.sweep.points import COMPLETE, Point, Tables, differences, read_summary


def plan(folder: Path, grid: list[Tables], ranks: int) -> list[Point]:
    """The points of a grid, without repetitions, those with the same problem together.

    Complete logs in ``folder`` are found, and what cannot be an experiment is skipped already. The
    first such mistake is an `InputError` if there is no other point.
    """
    points: dict[str, Point] = {}
    groups: dict[Any, int] = {}
    order: dict[str, int] = {}
    refused: InputError | None = None
    for tables, settings in zip(grid, differences(grid), strict=True):
        try:
            experiment = _with_workers(tables, ranks)
        except InputError as error:
            point = Point(_label(tables), "", settings, "")
            point.end("skipped", str(error))
            refused = refused or error
            key: Any = point.name + repr(settings)
            points.setdefault(key, point)
        else:
            config = experiment.to_toml()
            digest = hashlib.sha256(config.encode()).hexdigest()[:8]
            key = f"{_label(experiment.table)}-{digest}"
            points.setdefault(key, Point(key, str(folder / f"{key}.h5"), settings, config))
            order[key] = groups.setdefault(problem_key(experiment), len(groups))
    if refused is not None and not order:
        raise refused
    former = {point.name: point.seconds for point in _former(folder)}
    logs = [Path(point.log) for point in points.values() if point.log]
    found = dict(zip(map(str, logs), _attributes(logs), strict=True))
    for point in points.values():
        _look(point, found.get(point.log, {}), former)
    # What is skipped already comes first, what has the same problem stands together.
    return [points[key] for key in sorted(points, key=lambda k: order.get(k, -1))]


def _with_workers(tables: Tables, ranks: int) -> Experiment:
    """The experiment with the number of workers in it, which otherwise the ranks decide."""
    experiment = parse(tables)
    if getattr(experiment.problem, "workers", 0) is None:
        workers = worker_ranks(ranks, experiment.run.layout)
        experiment = parse(tables | {"problem": tables["problem"] | {"workers": workers}})
    return experiment


def _label(tables: Tables) -> str:
    """method-compressor-data, for a reader."""
    words = []
    for table, key, otherwise in (
        ("method", "name", "method"),
        ("compressor", "name", "identity"),
        ("problem", "data", ""),
    ):
        part = tables.get(table)
        part = part if isinstance(part, dict) else {}
        word = part.get(key) or otherwise or part.get("name", "problem")
        words.append(re.sub(r"[^\w.+-]+", "_", Path(str(word)).name) or table)
    return "-".join(words)


def _look(point: Point, attributes: dict[str, Any], former: dict[str, float | None]) -> None:
    """Note what is complete; skip where the log's name is taken by something else."""
    if not attributes:
        return
    if attributes.get("config") != point.config:
        point.end("skipped", f"{point.log}: is the log of another experiment; move it away")
    elif attributes.get("status") in COMPLETE:
        point.end(str(attributes["status"]), seconds=former.get(point.name))
        point.before = True


def _attributes(logs: Sequence[Path]) -> list[dict[str, Any]]:
    """Those of each log's root; none where there is no log or none that can be read."""
    if not any(log.exists() for log in logs):
        return [{} for _ in logs]
    try:
        return apart("logs", lambda: [_root(log) for log in logs])
    except Crashed:
        return [{}] if len(logs) == 1 else [_attributes([log])[0] for log in logs]


def _root(log: Path) -> dict[str, Any]:
    try:
        with h5py.File(log, "r", locking=False) as file:
            return dict(file.attrs)
    except DAMAGE:
        return {}


def resumable(log: Path, identity: dict[str, str], every: int) -> bool:
    """Whether the log has a checkpoint of the same experiment, and all rows before it."""
    try:
        content, _ = checkpoint.load(checkpoint.path_for(log), identity)
        rounds = figures_read.read(log).column("round")
        rows_before(rounds, int(checkpoint.state_of(content)["round"]), every)
    except (InputError, OSError):
        return False
    return True


def _former(folder: Path) -> list[Point]:
    try:
        return read_summary(folder)
    except InputError:
        return []
