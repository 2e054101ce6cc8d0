"""What a sweep has to do: the points of its grid, and which of them have a complete log."""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpisim.comm.side_channel import worker_ranks
from mpisim.core.errors import InputError
from mpisim.core.schema import parse_toml
from mpisim.runs import identity
from mpisim.runs.experiment import Experiment, Run, parse
from mpisim.runs.identity import config_digest, without_budget
from mpisim.runs.labels import Tables, differences
from mpisim.runs.log import reader
from mpisim.runs.log.untrusted import DAMAGE
from mpisim.runs.preview import ranks_of, too_few
from mpisim.runs.setup import problem_key
from mpisim.runs.signals import COMPLETE
from mpisim.runs.sweep.points import Point, read_summary


def plan(folder: Path, grid: list[Tables], ranks: int, accept: bool = False) -> list[Point]:
    """The points of a grid without repetitions, grouped by problem and number of ranks.

    Points that have a complete log in ``folder``, need more than the job's ``ranks`` or are not an
    experiment have ended already; the last come first. A log by other code is not complete, unless
    ``accept`` takes it. If no point is an experiment, the first mistake is raised as `InputError`.
    """
    points: dict[str, Point] = {}
    groups: dict[Any, int] = {}
    order: dict[str, int] = {}
    experiments: dict[str, Experiment] = {}
    refused: InputError | None = None
    for tables, settings in zip(grid, differences(grid), strict=True):
        try:
            experiment = _with_workers(tables, ranks)
        except InputError as error:
            point = Point(_label(tables), "", settings, "")
            point.end("skipped", str(error))
            refused = refused or error
            points.setdefault(point.name + repr(settings), point)
        else:
            config = experiment.to_toml()
            name = f"{_label(experiment.table)}-{config_digest(config)}"
            own, log = _ranks(tables, experiment, ranks), str(folder / f"{name}.h5")
            points.setdefault(name, Point(name, log, settings, config, ranks=own))
            experiments[name] = experiment
            order[name] = groups.setdefault((problem_key(experiment), own), len(groups))
    if refused is not None and not order:
        raise refused
    seconds: dict[str, float | None] = {}
    with suppress(InputError):  # no sweep has run there
        seconds = {point.name: point.seconds for point in read_summary(folder)}
    logs = [Path(point.log) for point in points.values() if point.log]
    found = dict(zip(map(str, logs), reader.attributes_of(logs), strict=True))
    for point in points.values():
        attributes = found.get(point.log, {})
        if accept or point.name not in experiments or _same(attributes, experiments[point.name]):
            _end_if_complete(point, attributes, seconds.get(point.name))
        if not point.status and (point.ranks or 0) > ranks:
            point.end("skipped", too_few(point.ranks or 0, ranks))
    _go_on(folder, [point for point in points.values() if not point.status], experiments)
    return [points[key] for key in sorted(points, key=lambda k: order.get(k, -1))]


def completed(point: Point, accept: bool) -> Point | None:
    """The point as another sweep has ended it since the plan; None if it is still to run."""
    if not os.path.lexists(point.log):
        return None
    point, [attributes] = dataclasses.replace(point), reader.attributes_of([Path(point.log)])
    if accept or _same(attributes, parse(tomllib.loads(point.config))):
        _end_if_complete(point, attributes, None)
    return point if point.status else None


def _go_on(folder: Path, waiting: list[Point], experiments: dict[str, Experiment]) -> None:
    """Note the log that each point without one goes on from, where there is such a log."""
    without = [point for point in waiting if not os.path.lexists(point.log)]
    labels = {point.name.rpartition("-")[0] for point in without}
    logs = [log for log in sorted(folder.glob("*.h5")) if log.stem.rpartition("-")[0] in labels]
    earlier = Earlier(dict(zip(logs, reader.attributes_of(logs), strict=True)))
    for point in without:
        point.earlier = str(earlier.of(experiments[point.name]) or "")


def _same(attributes: dict[str, Any], experiment: Experiment) -> bool:
    """Whether the code that wrote a log is what executes the experiment now."""
    return identity.of_log(attributes) == identity.executed_by(experiment)


def _with_workers(tables: Tables, ranks: int) -> Experiment:
    """The experiment, with the number of workers filled in where the ranks decide it."""
    experiment = parse(tables)
    if getattr(experiment.problem, "workers", 0) is None:
        workers = worker_ranks(ranks_of(experiment) or ranks, experiment.run.layout)
        experiment = parse(tables | {"problem": tables["problem"] | {"workers": workers}})
    return experiment


def _ranks(tables: Tables, experiment: Experiment, ranks: int) -> int | None:
    """The ranks that a point needs: all, where they decide the number of workers."""
    problem, own = experiment.problem, ranks_of(experiment)
    decide = hasattr(problem, "workers") and "workers" not in tables["problem"]
    return ranks if own is None and (decide or experiment.run.ranks == "all") else own


def _label(tables: Tables) -> str:
    """method-compressor-data, the readable part of a point's name."""
    words = []
    for table, key, otherwise in (
        ("method", "name", "method"),
        ("compressor", "name", "identity"),
        ("problem", "data", ""),
    ):
        part = given if isinstance(given := tables.get(table), dict) else {}
        word = part.get(key) or otherwise or part.get("name", "problem")
        words.append(re.sub(r"[^\w.+-]+", "_", Path(str(word)).name) or table)
    return "-".join(words)


def _end_if_complete(point: Point, attributes: dict[str, Any], seconds: float | None) -> None:
    """End a point whose log is complete, or whose log's name is taken."""
    try:
        reader.require_readable(Path(point.log), attributes.get("schema_version"))
    except InputError as error:
        point.end("skipped", str(error))
        return
    if attributes and attributes.get("config") != point.config:
        point.end("skipped", f"{point.log}: is the log of another experiment; move it away")
    elif attributes.get("status") in COMPLETE:
        point.end(str(attributes["status"]), seconds=seconds)
        point.before = True


class Earlier:
    """The logs in a folder, by their experiments without the budget.

    attributes : of the root of each log, by its path
    """

    def __init__(self, attributes: dict[Path, dict[str, Any]]):
        self._logs: dict[str, list[Path]] = {}
        for path, found in attributes.items():
            try:
                key = without_budget(parse_toml(found["config"], str(path)))
            except (InputError, *DAMAGE):
                continue
            self._logs.setdefault(key, []).append(path)

    def of(self, experiment: Experiment) -> Path | None:
        """The longest log that a run of the experiment may go on from; None if there is none.

        Logs by the code that executes the experiment now come first.
        """
        tables = parse_toml(experiment.to_toml(), "")
        logs = _readable(self._logs.get(without_budget(tables), []))
        fitting = [log for log in logs if _is_beginning(log, experiment.run)]
        code = identity.executed_by(experiment) if fitting else {}

        def worth(log: reader.Log) -> tuple[bool, int]:
            return identity.of_log(log.attrs) == code, int(log.columns["round"][-1])

        return max(fitting, key=worth).path if fitting else None


def _readable(paths: Sequence[Path]) -> list[reader.Log]:
    found = []
    for path in paths:
        try:
            found.append(reader.read(path))
        except InputError:
            continue
    return found


def _is_beginning(log: reader.Log, run: Run) -> bool:
    """Whether a run with this budget would have all rows of the log."""
    try:
        last, first = log.columns["round"][-1], run.stop.first_row(log.columns, log.n)
    except DAMAGE:
        return False
    return bool(last <= run.rounds) and first in (None, log.rows - 1)
