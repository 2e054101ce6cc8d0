"""The best step of a grid for each setting, from the logs alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis.curves import Axis
from mpisim.analysis.formatting import TABLES
from mpisim.analysis.labels import LEFT_OUT
from mpisim.analysis.run_groups import IGNORED, ON, groups_of, once, require_alike
from mpisim.core.errors import InputError
from mpisim.core.files import write_json
from mpisim.core.schema import check_type, choose
from mpisim.runs.labels import Tables, by_key, differences, flatten
from mpisim.runs.log.reader import Log, damaged, read_all
from mpisim.runs.stop import COMPLETE, DIVERGENCE, stop_of
from mpisim.runs.sweep.points import Point

SUMMARY = "tune.json"
# Keys that may differ between the runs that are compared.
FREE = {*LEFT_OUT, "method.stepsize", "run.seed"} - {"run.layout"}
LACKS = "is missing", "is not complete"
TINY = np.finfo(float).tiny  # replaces 0 under the logarithm
BURN_IN = 0.1  # share of the rows that a mean leaves out


class Criterion(NamedTuple):
    """The mean over the last rows, or the last row, of a column or its log10; smaller is better.

    A ``cost`` is that of reaching an accuracy of ``run.stop``. All other criteria compare what runs
    reach at equal costs.
    """

    rule: str
    column: str
    logarithm: bool = False
    mean: bool = False
    cost: bool = False


CRITERIA = {name: Criterion(**keys) for name, keys in TABLES["criteria"].items()}
DEFAULT = "mean"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One step of a setting, with all its seeds.

    step : the step size, or a multiple of the theory step: see `TunedSetting.theory`
    score : mean of the criterion over the seeds; None where the step is out
    out : why it is out: a seed diverged, or its run is not complete
    """

    step: float
    score: float | None
    out: str
    logs: list[str]

    @property
    def ran(self) -> bool:
        """Whether its runs say how good it is: none is missing, or one diverged."""
        return not _lacks(self.out)


@dataclasses.dataclass(frozen=True)
class TunedSetting:
    """The steps tried for one setting, and the best of them.

    name : method-compressor-data
    label : what sets it apart from the others: ``MARINA, RandK (K = 10)``; the name of a single one
    settings : {TABLE.KEY: value} of the keys that vary between the settings
    theory : whether steps are multiples of the theory step
    candidates : by ascending step
    best : None where every step is out
    edge : the best of several steps is the smallest or the largest that ran: try a wider grid
    """

    name: str
    label: str
    settings: dict[str, Any]
    theory: bool
    candidates: list[Candidate]
    best: Candidate | None
    edge: bool


def best(points: Iterable[Point | Path], criterion: str = DEFAULT) -> list[TunedSetting]:
    """The best step for each setting among runs that differ in step and seed.

    The default is the rule of the PermK paper's code: the smallest mean of log10 |grad f(x^k)|^2
    over the last 90% of the rows. A step is out if the run of one seed diverged, holds a number
    that is not finite, is not complete, or is missing although another step has that seed. Of
    equally good steps the smallest wins. Runs that ``run.stop`` ends at an accuracy are compared by
    their costs, and only these; one that did not reach it is out.

    points : of a sweep, or paths of logs
    criterion : a key of `CRITERIA`
    """
    logged = (p for p in points if not isinstance(p, Point) or p.status not in ("skipped", ""))
    paths = [Path(p.log if isinstance(p, Point) else p) for p in logged]
    return ranked(read_all(list(dict.fromkeys(paths))), criterion)


def ranked(logs: Iterable[Log], criterion: str, by_ranks: bool = False) -> list[TunedSetting]:
    """`best` of logs that are read already; with ``by_ranks`` for each number of them.

    Another network of the lab is another setting then, too, as in `group_runs`.
    """
    rule = choose(CRITERIA, criterion, "criterion")
    settings: dict[str, list[Log]] = {}
    for log in logs:
        with damaged(log.path):
            settings.setdefault(repr(_setting(log, by_ranks)), []).append(log)
    firsts = [runs[0] for runs in settings.values()]
    groups = groups_of(firsts, by_ranks, {*IGNORED, *FREE})
    labels = {log.path: group.label for group in groups for log in group.logs}
    tuned = []
    varied = differences([_setting(log, by_ranks) for log in firsts])
    for runs, keys in zip(settings.values(), varied, strict=True):
        with damaged(runs[0].path):
            require_fit(criterion, [runs[0].config])
            require_alike(runs, ignored=FREE)  # plugins and data
            tuned.append(_tune(runs, keys, rule, labels[runs[0].path]))
    return tuned


def report(points: list[Point], criterion: str, folder: Path) -> str:
    """Write FOLDER/tune.json; returns the table to print, with warnings."""
    choices = best(points, criterion)
    rule = CRITERIA[criterion].rule
    content = {"criterion": criterion, "rule": f"smallest {rule}, mean over the seeds"}
    write_json(folder / SUMMARY, content | {"choices": [dataclasses.asdict(c) for c in choices]})
    return table(choices, criterion)


def table(choices: Iterable[TunedSetting], criterion: str) -> str:
    """Steps and scores of each setting, with warnings."""
    lines = [f"best step by the smallest {CRITERIA[criterion].rule}, mean over the seeds:"]
    for choice in choices:
        unit = " x theory" if choice.theory else ""
        lines.append(choice.label)
        for candidate in choice.candidates:
            mark = "*" if candidate is choice.best else " "
            score = candidate.out if candidate.score is None else f"{candidate.score:.6g}"
            lines.append(f"  {mark} {f'{candidate.step:g}{unit}':>16}  {score}")
        if choice.best is None:
            lines.append("  warning: no step is left; try smaller ones")
        elif choice.edge:
            shown = [candidate for candidate in choice.candidates if candidate.ran]
            ends = {"smaller": shown[0], "larger": shown[-1]}
            sides = " and ".join(side for side, end in ends.items() if end is choice.best)
            lines.append(f"  warning: the best is at the edge of the grid; try {sides} ones")
    return "\n".join(lines)


def require_fit(criterion: str, configs: Iterable[Tables]) -> None:
    """`InputError` unless runs end at equal costs, or, for a criterion that is one, do not."""
    rule = choose(CRITERIA, criterion, "criterion")
    allowed = " or ".join(name for name, c in CRITERIA.items() if c.cost != rule.cost)
    for config in configs:
        run = check_type(config.get("run", {}), dict, "run")
        check_type(run.get("stop", {}), dict, "run.stop")
        accuracies = stop_of(config).accuracies
        if rule.cost != bool(accuracies):
            why = "run.stop has no accuracy to reach, such as grad_norm_sq"
            if accuracies:
                why = f"run.stop.{accuracies[0]} ends the runs at unequal costs"
            raise InputError(f"criterion: {why}; choose {allowed}")


def _setting(log: Log, by_ranks: bool) -> dict[str, Any]:
    """The keys that must agree for steps to be compared."""
    flat = {key: value for key, value in flatten(log.config).items() if key not in FREE}
    flat |= {key: log.attrs[key] for key in ON if by_ranks and key in log.attrs}
    step = log.config["method"]["stepsize"]
    if isinstance(step, dict) and "condition" in step:
        flat["condition"] = step["condition"]
    return flat | {"step is": "a multiple" if _step(log)[0] else "a number"}


def _step(log: Log) -> tuple[bool, float]:
    """Whether the step is a multiple of the theory step, and the multiple or the number."""
    step = log.config["method"]["stepsize"]
    if step == "theory":
        return True, 1.0
    return (True, float(step["theory"])) if isinstance(step, dict) else (False, float(step))


def _tune(logs: list[Log], settings: dict[str, Any], rule: Criterion, label: str) -> TunedSetting:
    seeds = {log.config["run"]["seed"] for log in logs}
    steps = by_key(logs, lambda log: _step(log)[1])
    candidates = [_candidate(step, once(steps[step]), seeds, rule) for step in sorted(steps)]
    scored = [c for c in candidates if c.score is not None]
    chosen = min(scored, key=lambda c: (c.score, c.step)) if scored else None
    shown = [candidate for candidate in candidates if candidate.ran]
    edge = len(candidates) > 1 and chosen in (*shown[:1], *shown[-1:])
    settings = {key: value for key, value in settings.items() if key != "step is"}
    name = logs[0].path.stem.rpartition("-")[0]
    label = ", ".join(filter(None, (label, settings.get("condition", "")))) or name
    return TunedSetting(name, label, settings, _step(logs[0])[0], candidates, chosen, edge)


def _candidate(step: float, logs: list[Log], seeds: set[int], rule: Criterion) -> Candidate:
    reasons = sorted(filter(None, (_out(log, rule) for log in logs)), key=_lacks)
    out = next(iter(reasons), "")
    missing = sorted(seeds - {log.config["run"]["seed"] for log in logs})
    if missing and not out:
        out = f"seed {missing[0]} is missing"
    score = None if out else float(np.mean([_score(log, rule) for log in logs]))
    return Candidate(step, score, out, [str(log.path) for log in logs])


def _lacks(out: str) -> bool:
    """Whether a step is out that may be a good one."""
    return out.endswith(LACKS)


def _score(log: Log, rule: Criterion) -> float:
    values = Axis(rule.column, log=False).values(log)  # a worker's share of bits
    values = values[int(BURN_IN * len(values)) :] if rule.mean else values[-1:]
    if rule.logarithm and values.min() < 0:
        why = f"{rule.column} falls to {values.min():.6g} and has no log10"
        raise InputError(f"criterion: {log.path}: {why}; it must stay >= 0, or choose loss")
    return float(np.mean(np.log10(np.maximum(values, TINY)) if rule.logarithm else values))


def _out(log: Log, rule: Criterion) -> str:
    seed = f"seed {log.config['run']['seed']}"
    if log.attrs.get("status") == "diverged":
        return f"{seed} diverged"
    if log.attrs.get("status") not in COMPLETE or log.rows == 0:
        return f"{seed} is not complete"
    if log.attrs.get("stopped_by") == DIVERGENCE:
        return f"{seed} diverged (run.stop.{DIVERGENCE})"
    if rule.cost and log.attrs.get("stopped_by") not in stop_of(log.config).accuracies:
        return f"{seed} was stopped by {log.attrs.get('stopped_by')}"
    finite = np.isfinite([log.column("grad_norm_sq"), log.column("loss")]).all()
    return "" if finite else f"{seed} is not finite"
