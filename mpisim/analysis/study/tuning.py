"""The logs that a figure shows, and the best step of each method.

The best step is the cheapest to the target that all methods of a panel reach.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpisim.analysis import claims
from mpisim.analysis.claims import Evidence, Targets, Verdict
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.analysis.tune import TunedSetting, ranked
from mpisim.core.errors import InputError
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log, read_all
from mpisim.runs.sweep.points import SUMMARY, read_summary

RISING = 1.5  # times the median of the tenth of the rows before: a run that ends so is rising
TENTH = 10
T = TypeVar("T")
K = TypeVar("K", str, tuple[str, str])


@dataclasses.dataclass(frozen=True)
class BestSteps:
    """The steps of a method with which all seeds went well, the best first.

    steps : {step: its runs, one for each seed}; multiples of the theory step where those were tried
    lowest : the step with the smallest final value; the best one where that is at an edge
    tried : all steps, also those that are out
    target : the common target that it was tuned to; None where finals decided
    edge : whose best step is at an edge of the grid, in words; empty where it is inside
    setting : what sets it apart from others, with a log, for messages
    """

    steps: dict[float, list[Log]]
    lowest: float
    tried: list[float]
    target: float | None
    edge: str
    setting: str = ""

    @property
    def step(self) -> float:
        """The best."""
        return next(iter(self.steps))

    @property
    def logs(self) -> list[Log]:
        """The runs with the best step."""
        return self.steps[self.step]


def _problem(log: Log) -> Hashable:
    return repr(log.config["problem"])


def best_steps(
    logs: Iterable[Log],
    x: Axis,
    y: Axis = GRADIENT,
    targets: Targets = claims.DECADES,
    panel: Callable[[Log], Hashable] = _problem,
) -> list[BestSteps]:
    """The best steps of each setting, by the rule of docs/how-to/studies.md.

    ``x`` is the cost and ``y`` what falls, as in `compare`. Settings with the same ``panel``, by
    default the same problem, have a common target. Settings without a step that went well are left
    out. Runs that diverged are found beside the logs: a step beyond the best one, with all of its
    seeds or one that diverged, shows that it is not at the edge. Nor is the step of a theorem that
    was run alone.
    """
    by_path = {str(log.path): log for log in logs}
    by_path |= {str(log.path): log for log in diverged(by_path.values())}
    panels: dict[Hashable, list[tuple[TunedSetting, dict[float, list[Log]]]]] = {}
    for setting in ranked(by_path.values(), "mean"):
        good = (one for one in setting.candidates if one.score is not None)
        runs = {one.step: [by_path[path] for path in one.logs] for one in good}
        well = {step: r for step, r in runs.items() if not any(rises(y.values(log)) for log in r)}
        if well:
            panels.setdefault(panel(next(iter(well.values()))[0]), []).append((setting, well))
    return [_best(*one, x, y, targets, many) for many in panels.values() for one in many]


def one_of_each(items: Iterable[tuple[K, BestSteps]]) -> dict[K, BestSteps]:
    """{key: best steps}; `InputError` where two settings have one key."""
    best: dict[K, BestSteps] = {}
    for key, steps in items:
        if (other := best.setdefault(key, steps)) is not steps:
            where = key if isinstance(key, str) else ", ".join(map(str, key))
            both = f"{other.setting} and {steps.setting}"
            raise InputError(f"{where}: has two settings, {both}; a line has one")
    return best


def rises(values: np.ndarray) -> bool:
    """Whether a run ends rising, or above its start: its last two tenths are compared."""
    tenth = max(1, len(values) // TENTH)
    before, last = np.median(values[-2 * tenth : -tenth]), np.median(values[-tenth:])
    return bool(last > RISING * before or values[-1] > values[0])


def _best(
    setting: TunedSetting,
    steps: dict[float, list[Log]],
    x: Axis,
    y: Axis,
    targets: Targets,
    panel: Sequence[tuple[TunedSetting, dict[float, list[Log]]]],
) -> BestSteps:
    reached = [min(_reached(logs, x, y, targets) for logs in well.values()) for _, well in panel]
    common = max((target for target in reached if target < 1), default=1.0)
    deepest = min(_reached(logs, x, y, targets) for logs in steps.values())
    target = common if deepest <= common < 1 else None
    finals = {step: _mean(float(y.values(log)[-1]) for log in logs) for step, logs in steps.items()}
    near = claims.CLEAR * min(finals.values())

    def level(log: Log) -> float:
        share, row = (claims.CLEAR, -1) if target is None else (target, 0)
        return share * float(y.values(log)[row])

    def cost(step: float) -> float:
        if target is None and finals[step] > near:
            return float("inf")
        return _mean(claims.needed(log, x, level(log), y) for log in steps[step])

    order = sorted(steps, key=lambda step: (cost(step), finals[step], step))
    tried = [candidate.step for candidate in setting.candidates]
    shown = [candidate.step for candidate in setting.candidates if candidate.ran]
    edge = edge_of(setting, order[0], shown)
    lowest = min(steps, key=lambda step: (finals[step], step))
    lowest = order[0] if edge_of(setting, lowest, shown) else lowest
    name = f"{setting.label} ({steps[order[0]][0].path})"
    return BestSteps({step: steps[step] for step in order}, lowest, tried, target, edge, name)


def edge_of(setting: TunedSetting, best: float, shown: Sequence[float]) -> str:
    """Where the best step is the smallest or the largest; empty where it is inside.

    shown : the steps whose runs say how good they are
    """
    theorem = setting.theory and [candidate.step for candidate in setting.candidates] == [1.0]
    if theorem or shown[0] < best < shown[-1]:
        return ""
    return f"{setting.label}: {best:g} is the {'smallest' if best == shown[0] else 'largest'} step"


def _reached(logs: Sequence[Log], x: Axis, y: Axis, targets: Targets) -> float:
    """The deepest target above rounding that all runs reached; 1 where there is none."""
    return max(_deepest(claims.Reach(log, x, y), targets) for log in logs)


def _deepest(run: claims.Reach, targets: Targets) -> float:
    least = max(float(np.nanmin(run.values)), run.rounding)
    return min((t for t in targets if t * run.values[0] >= least), default=1.0)


def _mean(values: Iterable[float]) -> float:
    """The geometric mean; infinite if one is."""
    listed = np.maximum(list(values), np.finfo(float).tiny)
    return float(np.exp(np.log(listed).mean()))


def diverged(logs: Iterable[Log]) -> list[Log]:
    """The runs of the sweeps of ``logs`` that diverged, which no figure shows."""
    swept = {log.path.parent for log in logs}
    summaries = [folder for folder in swept if (folder / SUMMARY).is_file()]
    points = [(folder, point) for folder in summaries for point in read_summary(folder)]
    paths = (folder / Path(p.log).name for folder, p in points if p.status == "diverged")
    return read_all([path for path in paths if path.is_file()])


def complete_logs(folder: Path) -> tuple[list[Log], list[str]]:
    """The complete logs of a folder, and a line for each run that is not drawn.

    They are those of the last sweep in the folder and in each folder below it, but for logs that it
    has skipped, or that it left of an older one, perhaps of other code, as it was stopped. Without
    the summary of a sweep they are all logs of the folder. `InputError` if there is none.
    """
    logs, left = swept_logs(folder)
    done = [log for log in logs if log.attrs.get("status") == "done"]
    if not done:
        raise InputError(f"{folder}: no complete log of a run there")
    others = [log for log in logs if log not in done]
    return done, [*(f"{log.path}: not drawn, {log.attrs.get('status')}" for log in others), *left]


def swept_logs(folder: Path) -> tuple[list[Log], list[str]]:
    """All logs of the sweeps that `complete_logs` reads, and a line for each that is left out."""
    swept = [summary.parent for summary in sorted(folder.glob(f"**/{SUMMARY}"))]
    points = [(one / Path(p.log).name, p) for one in swept for p in read_summary(one) if p.log]
    why = {path: p.reason.removeprefix(f"{p.log}: ") or "not run" for path, p in points}
    paths = [path for path, p in points if p.status not in ("skipped", "") and path.is_file()]
    left = [f"{path}: not drawn, {why[path]}" for path, _ in points if path not in set(paths)]
    return read_all(paths if swept else sorted(folder.glob("*.h5"))), left


def by_data(items: dict[tuple, T], order: Sequence[str]) -> dict[tuple, T]:
    """Sorted by keys that begin with a data set: those of ``order`` first, in that order."""
    place = {name: i for i, name in enumerate(order)}
    return dict(sorted(items.items(), key=lambda one: (place.get(one[0][0], len(place)), one[0])))


def data_sets(items: Iterable[tuple]) -> list[str]:
    """The data sets that the keys begin with, each once."""
    return list(dict.fromkeys(key[0] for key in items))


def grouped(
    logs: Iterable[Log], key: Callable[[Log], tuple], order: Sequence[str]
) -> dict[tuple, list[Log]]:
    """{key(log): logs}, sorted as `by_data` does."""
    return by_data(by_key(logs, key), order)


def compare_steps(
    where: str,
    less: BestSteps | None,
    more: BestSteps | None,
    x: Axis,
    y: Axis = GRADIENT,
    **how: Any,
) -> Evidence:
    """`compare` of the runs with the best steps, which it names; an edge decides nothing.

    The ratios of the steps with the smallest final values are on record beside theirs. ``how``: as
    for `compare`
    """
    if less is None or more is None:
        why = "one of them has no step that went well, or was not run"
        return Evidence(where, why, Verdict.UNDECIDED)
    one = claims.compare(where, less.logs, more.logs, x, y, **how)
    if (less.lowest, more.lowest) != (less.step, more.step):
        lowest = less.steps[less.lowest], more.steps[more.lowest]
        other = claims.compare(where, *lowest, x, y, **how)
        one = claims.with_costs(one, "finals", other)
    return with_steps(one, less, more)


def with_steps(evidence: Evidence, less: BestSteps, more: BestSteps) -> Evidence:
    """Evidence that names the best steps, and is not decided where one is at an edge."""
    text, steps = f"steps {less.step:g} and {more.step:g}", [less.step, more.step]
    noted = claims.with_note(evidence, text, steps=steps)
    return claims.undecided_at_edge(noted, [less.edge, more.edge])


def value_of(log: Log, key: str) -> Any:
    """The value of a dotted key in the configuration of a log; None if it has none."""
    table: Any = log.config
    for name in key.split("."):
        table = table.get(name) if isinstance(table, Mapping) else None
    return table
