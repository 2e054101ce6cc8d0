"""What a sweep has to do: the points of its grid, and which of them have a complete log."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpisim.comm.communicators import worker_ranks
from mpisim.core.errors import InputError
from mpisim.runs import identity
from mpisim.runs.ensemble import key_of
from mpisim.runs.experiment import Experiment, Run, parse
from mpisim.runs.labels import Tables, by_key, differences, dimension, ranks_of, too_few
from mpisim.runs.log import reader
from mpisim.runs.log.schema import DIGEST
from mpisim.runs.log.untrusted import DAMAGE
from mpisim.runs.setup import problem_key
from mpisim.runs.stop import COMPLETE
from mpisim.runs.sweep.points import Outcome, Point, digests_of, read_summary, sha256_of, stamp_of

ROUND = 100_000  # numbers in whose time a round does what does not grow with n or d
RUN = "\n[run]\n"  # what comes before it in the TOML of an experiment is the same for many points
# that say whether a log is complete
ATTRIBUTES = ("schema_version", "config", "status", "code", "problem", DIGEST)


def plan(folder: Path, grid: list[Tables], ranks: int, accept: bool = False) -> list[Point]:
    """The points of a grid without repetitions, grouped by problem and number of ranks.

    Points that have a complete log in ``folder``, need more than the job's ``ranks`` or are not an
    experiment have ended already; the last come first. A log by other code is not complete, unless
    ``accept`` takes it. If no point is an experiment, the first mistake is raised as `InputError`.
    """
    refused: dict[str, Point] = {}
    points: dict[str, Point] = {}
    experiments, mistake = Experiments(ranks), None
    for tables, settings in zip(grid, differences(grid), strict=True):
        try:
            point = experiments.point(folder, tables, settings)
            points.setdefault(point.name, point)
        except InputError as error:
            point = Point(_label(tables), "", settings, "")
            point.end(Outcome("skipped", str(error)))
            mistake = mistake or error
            refused.setdefault(point.name + repr(settings), point)
    if mistake is not None and not points:
        raise mistake
    groups = by_key(points.values(), lambda point: (point.problem, point.ranks))
    planned = [point for group in groups.values() for point in group]
    before: dict[str, Point] = {}
    with suppress(InputError):  # no sweep has run there
        before = {point.name: point for point in read_summary(folder)}
    to_read = [p for p in planned if not experiments.unchanged(p, before.get(p.name), accept)]
    sums = [sha256_of(point.log) for point in to_read]
    logs = reader.attributes_of([Path(p.log) for p in to_read], ATTRIBUTES, compared=COMPLETE)
    for point, attributes, sha256 in zip(to_read, logs, sums, strict=True):
        if isinstance(attributes, InputError):
            point.end(Outcome("skipped", f"{attributes}; move it away"))
        elif attributes is not None and (
            ended := experiments.ended(point, attributes, accept, sha256)
        ):
            if ended.before and point.name in before:
                ended = ended._replace(seconds=before[point.name].seconds)
            point.end(ended)
        if not point.status and (point.ranks or 0) > ranks:
            point.end(Outcome("skipped", too_few(point.ranks or 0, ranks)))
    complete = {Path(point.log): point.config for point in planned if point.status in COMPLETE}
    to_begin = [p for p in planned if not (p.status or os.path.lexists(p.log))]
    _go_on(folder, to_begin, complete, experiments)
    planned = [*refused.values(), *planned]
    for number, point in enumerate(planned):
        point.number = number
    return planned


def completed(point: Point, accept: bool) -> Outcome | None:
    """How another sweep has ended the point since the plan; None if it is still to run.

    What is not its log, or has changed since it was written, is not to be replaced.
    """
    if not os.path.lexists(point.log):
        return None
    try:
        return Experiments(0).ended(point, reader.read(Path(point.log)).attrs, accept)
    except InputError as error:
        return Outcome("skipped", f"{error}; move it away")


class Experiments:
    """The experiments of a grid on ``ranks`` ranks; what many points share is read once."""

    def __init__(self, ranks: int):
        self.ranks = ranks
        # an experiment with the label of its points, and its TOML before RUN
        self._shared: dict[str, tuple[Experiment, str, str]] = {}
        self._code: dict[tuple[str, ...], dict[str, str]] = {}
        self._digests: dict[tuple[Any, ...], list[str]] = {}

    def point(self, folder: Path, tables: Tables, settings: dict[str, Any]) -> Point:
        """A point of the grid; `InputError` if its tables are not an experiment."""
        experiment, label, head = self._parsed(tables)
        run, d = experiment.run, dimension(experiment)
        itemsize = run.precision.arithmetic.itemsize
        config = f"{head}\n{run.to_toml()}"
        name = f"{label}-{identity.config_digest(config)}"
        n = experiment.problem.workers or 1
        needed = ranks_of(experiment)
        decide = "workers" not in tables["problem"]
        every = needed is None and (decide or run.ranks == "all")  # where they decide n, too
        return Point(
            name,
            str(folder / f"{name}.h5"),
            settings,
            config,
            ranks=self.ranks if every else needed,
            size=float(max(run.rounds, 1) * (ROUND + n * max(d, 1))),
            bytes=float(n * experiment.method.estimator.numbers(d)) * itemsize,
            problem=problem_key(experiment),
            alike=key_of(experiment),
        )

    def ended(
        self, point: Point, log: dict[str, Any], accept: bool, sha256: str = ""
    ) -> Outcome | None:
        """How a point ended whose log has these attributes: skipped if it is another's; None if it
        is to run.

        A log that other code wrote is not complete, unless ``accept`` takes it.

        sha256 : of the log, if it is known
        """
        if identity.anywhere(str(log.get("config"))) != identity.anywhere(point.config):
            why = "is the log of another experiment; move it away"
            return Outcome("skipped", f"{point.log}: {why}")
        status, code = str(log.get("status")), identity.of_log(log)
        if status in COMPLETE and self.is_of_other_data(point, log):
            why = "is of data that has changed since; move it away"
            return Outcome("skipped", f"{point.log}: {why}")
        if status in COMPLETE and (accept or code == self._executed(point)):
            return Outcome(status, before=True, stamp=stamp_of(sha256, code, digests_of(log)))
        return None

    def unchanged(self, point: Point, before: Point | None, accept: bool) -> bool:
        """End a point whose log was complete ``before``, and has been as it is since then."""
        if before is None or not before.stamp or before.config != point.config:
            return False
        sha256, *rest = before.stamp.split(" ")
        data = self._digests_of(point)
        _, code, of_data = stamp_of(sha256, self._executed(point), data).split(" ")
        same = [accept or rest[:1] == [code], not data or rest[1:] == [of_data]]
        if before.status in COMPLETE and all(same) and sha256 == sha256_of(point.log):
            point.end(Outcome(before.status, "", before.seconds, True, before.stamp))
        return bool(point.status)

    def is_of_other_data(self, point: Point, log: Mapping[str, Any]) -> bool:
        """Whether a log with these attributes was computed from another content of some file."""
        before, now = digests_of(log), self._digests_of(point)
        return bool(before and now) and before != now

    def _digests_of(self, point: Point) -> list[str]:
        """See `Problem.digests`; none where a file cannot be read, so that nothing can run."""
        if point.problem not in self._digests:
            self._digests[point.problem] = []
            with suppress(Exception):  # of a plugin's samples, whatever they raise
                problem = parse(tomllib.loads(point.config)).problem
                self._digests[point.problem] = problem.digests()
        return self._digests[point.problem]

    def _executed(self, point: Point) -> dict[str, str]:
        """The code that executes the point now."""
        shared, _, run = point.config.partition(RUN)
        key = shared, repr(tomllib.loads(run).get("columns"))
        if key not in self._code:
            self._code[key] = identity.executed_by(parse(tomllib.loads(point.config)))
        return self._code[key]

    def _parsed(self, tables: Tables) -> tuple[Experiment, str, str]:
        """The experiment, with the number of workers filled in where the ranks decide it."""
        run = tables.get("run", {})
        if not isinstance(run, dict):
            parse(tables)  # says so
        shared = {key: table for key, table in tables.items() if key != "run"}
        key = repr((shared, run.get("ranks"), run.get("layout")))
        if key not in self._shared:
            experiment = parse(tables)
            if experiment.problem.has_workers() and experiment.problem.workers is None:
                ranks = ranks_of(experiment) or self.ranks
                workers = {"workers": worker_ranks(ranks, experiment.run.layout)}
                experiment = parse(tables | {"problem": tables["problem"] | workers})
            text = experiment.to_toml().partition(RUN)[0]
            self._shared[key] = experiment, _label(experiment.table), text
        experiment, label, text = self._shared[key]
        return experiment.with_run(run), label, text


def _label(tables: Tables) -> str:
    """method-compressor-data, the readable part of a point's name."""
    parts = {"method": "method", "compressor": "identity", "problem": "problem"}
    words = []
    for table, otherwise in parts.items():
        part = given if isinstance(given := tables.get(table), dict) else {}
        word = part.get("data") or part.get("name") or otherwise
        words.append(re.sub(r"[^\w.+-]+", "_", Path(str(word)).name) or table)
    return "-".join(words)


def _go_on(
    folder: Path, points: Sequence[Point], complete: dict[Path, str], experiments: Experiments
) -> None:
    """Note the log with a smaller budget that each of these points goes on from, if there is one.

    The longest of them is taken; those by the code that executes the experiment now come first.

    complete : the configurations of logs that are known
    """
    labels = {point.name.rpartition("-")[0] for point in points}
    logs = [log for log in sorted(folder.glob("*.h5")) if log.stem.rpartition("-")[0] in labels]
    shorter: dict[str, list[Path]] = {}
    others = [log for log in logs if log not in complete]
    attributes = zip(others, reader.attributes_of(others, ("config",)), strict=True)
    read = {path: one.get("config", "") for path, one in attributes if isinstance(one, dict)}
    for path, config in (complete | read).items() if points else ():
        with suppress(InputError, *DAMAGE):
            shorter.setdefault(identity.without_budget(config), []).append(path)
    for point in points if shorter else ():
        if not (paths := shorter.get(identity.without_budget(point.config))):
            continue
        experiment = parse(tomllib.loads(point.config))
        readable = [log for log in reader.read_each(paths) if isinstance(log, reader.Log)]
        readable = [log for log in readable if not experiments.is_of_other_data(point, log.attrs)]
        if fitting := [log for log in readable if _is_beginning(log, experiment.run)]:
            code = identity.executed_by(experiment)
            by_this_code = [log for log in fitting if identity.of_log(log.attrs) == code]
            longest = max(by_this_code or fitting, key=lambda log: log.columns["round"][-1])
            point.earlier = str(longest.path)


def _is_beginning(log: reader.Log, run: Run) -> bool:
    """Whether a run with this budget would have all rows of the log."""
    try:
        last, first = log.columns["round"][-1], run.stop.first_row(log.columns, log.n)
    except DAMAGE:
        return False
    return bool(last <= run.rounds) and first in (None, log.rows - 1)
