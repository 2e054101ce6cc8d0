"""Where a figure on record comes from: settings, runs, seconds, machines, commits."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis.study.figure import Figure, Study
from mpisim.analysis.study.logs import swept_logs
from mpisim.analysis.study.source import Measurement
from mpisim.core.imports import PACKAGE
from mpisim.core.numerics import processor
from mpisim.methods.method_table import METHODS
from mpisim.runs.host import commit, is_committed, provenance
from mpisim.runs.labels import Tables, flatten

DIGITS = 12  # of a commit
# What neither a reader of results asks for, nor a value depends on.
LEFT_OUT = ("title", "plugin", "run.checkpoint_seconds", "run.layout", "run.ranks")
NAMED = ("method.estimator", "method.optimizer")  # a known method.name says them
MOST = 8  # numbers that are listed one by one


@dataclasses.dataclass(frozen=True)
class Settings:
    """{TABLE.KEY: values} of what varies, and {TABLE.KEY: value} of what is fixed.

    What only some runs have, such as a parameter of one method, is fixed if it has one value.
    """

    varied: dict[str, list[Any]]
    fixed: dict[str, Any]


def settings(configs: Iterable[Tables]) -> Settings:
    """The settings of runs from their resolved experiments."""
    flat = [settings_of(config) for config in configs]
    names = dict.fromkeys(name for one in flat for name in one)
    values = {name: _distinct([one[name] for one in flat if name in one]) for name in names}
    return Settings(
        {name: taken for name, taken in values.items() if len(taken) > 1},
        {name: taken[0] for name, taken in values.items() if len(taken) == 1},
    )


def settings_of(config: Tables) -> Tables:
    """{TABLE.KEY: value} of a run, without what no reader asks for."""
    flat = flatten(config)
    left_out = LEFT_OUT + (NAMED if METHODS.here(flat.get("method.name")) else ())
    return {key: _without_folder(value) for key, value in flat.items() if key not in left_out}


def _without_folder(value: Any) -> Any:
    """The name alone of a file outside of the current folder."""
    outside = isinstance(value, str) and Path(value).is_absolute()
    return Path(value).name if outside else value


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list({repr(value): value for value in values}.values())


def several(values: Sequence[Any]) -> str:
    """Values as text: numbers sorted, or as a range where they are many."""
    multiples = any(isinstance(value, dict) for value in values)
    by_unit: dict[str, list[float]] = {}
    for value in values:
        number, unit = _split({"theory": 1.0} if multiples and value == "theory" else value)
        by_unit.setdefault(unit, []).extend(number)
    return ", ".join(_numbers(listed, unit) if listed else unit for unit, listed in by_unit.items())


def _split(value: Any) -> tuple[list[float], str]:
    """A value as a number and its unit, or as text."""
    if isinstance(value, dict) and "theory" in value:
        under = f" ({value['condition']})" if "condition" in value else ""
        return [value["theory"]], f" × theory{under}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value], ""
    return [], str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(values: Sequence[float], unit: str) -> str:
    texts = [f"{value:.6g}" for value in sorted(values)]
    if len(texts) > MOST:
        return f"{texts[0]} to {texts[-1]}{unit} ({len(texts)} values)"
    return ", ".join(texts) + unit


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Of one figure at one scale.

    Attributes
    ----------
    study, study_title, figure, title, scale : what was drawn
    runs : {status: number of runs}; empty for a measurement
    seconds : the wall clocks of the runs, or of the measurement, added up
    settings : what varies over the runs, and what is the same in all of them
    machines : cores and processor of each machine class, without names of hosts
    run_commits : of the package that ran
    commit : of the package and the study that drew the figure
    """

    study: str
    study_title: str
    figure: str
    title: str
    scale: str
    runs: dict[str, int]
    seconds: float
    settings: Settings
    machines: list[str]
    run_commits: list[str]
    commit: str


def provenance_of(study: Study, figure: Figure, scale: str, seconds: float) -> Provenance:
    """The provenance of a figure whose runs are complete.

    seconds : that a measurement has taken; those of runs are in their logs
    """
    measured = isinstance(figure.source, Measurement)  # in files of its own, which are no logs
    folders = [] if measured else figure.source.folders(study.folder)
    swept = [swept_logs(folder) for folder in folders]
    logs = [log for there, _ in swept for log in there]
    missing = [path for _, gone in swept for path in gone]
    here = provenance() | processor.facts()
    package = commit(PACKAGE)
    changed = package.get("git_dirty") or not is_committed(study.folder)
    drawn_by = package | {"git_dirty": changed}
    runs = Counter(str(log.attrs.get("status")) for log in logs)
    if missing:
        runs["not run"] = len(missing)
    if logs:
        seconds, varied = sum(log.duration for log in logs), settings(log.config for log in logs)
    else:
        assert isinstance(figure.source, Measurement)
        varied = Settings({}, {"size": figure.source.scales[scale]})
    executed = [log.attrs for log in logs] or [here | drawn_by]
    return Provenance(
        study.folder.resolve().name,
        study.title,
        figure.name,
        figure.title,
        scale,
        dict(runs),
        round(seconds, 1),
        varied,
        _unique(machine(attributes) for attributes in executed),
        _unique(commit_text(attributes) for attributes in executed),
        commit_text(drawn_by),
    )


def machine(attributes: dict[str, Any]) -> str:
    cores = int(attributes.get("cores", 0))
    return f"{cores} core{'' if cores == 1 else 's'}, {attributes.get('cpu', 'unknown processor')}"


def commit_text(attributes: dict[str, Any]) -> str:
    if "git_commit" not in attributes:
        return "not known"
    changed = " with changes" if attributes.get("git_dirty") else ""
    return f"{attributes['git_commit'][:DIGITS]}{changed}"


def _unique(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))
