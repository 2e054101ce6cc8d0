"""Groups runs that differ only in the seed, and labels each group by what sets it apart."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from mpisim.analysis import labels
from mpisim.runs.log.reader import Log
from mpisim.runs.stop import Stop
from mpisim.runs.tables import flatten, varying, without_budget

# Keys that do not set runs apart: what they are called, how long they are, how often they log. The
# ranks that a run had are an attribute of its log.
IGNORED = {"title", "plugin", "run.seed", "run.rounds", "run.log_every", "run.checkpoint_seconds"}
IGNORED |= {"run.ranks", *(f"run.stop.{field.name}" for field in dataclasses.fields(Stop))}
FORMATS = {
    "problem.split": "{} split",
    "run.layout": "{} layout",
    "run.wire": "{} sent",
    "run.dtype": "{} arithmetic",
}


@dataclasses.dataclass
class RunGroup:
    """Logs whose experiments differ only in the seed.

    ``method`` and ``variant`` are the two halves of the label in a legend; either may be empty.
    """

    logs: list[Log]
    keys: dict[str, Any]
    method: str = ""
    variant: str = ""

    @property
    def names(self) -> labels.Labels:
        """What its methods and compressors are called."""
        return labels.of_log(self.logs[0].attrs)

    @property
    def label(self) -> str:
        return ", ".join(filter(None, (self.method, self.variant)))


def group_runs(
    logs: Iterable[Log], by_ranks: bool = False, ignored: Collection[str] = IGNORED
) -> list[RunGroup]:
    """Groups in the order of their first logs, labelled by exactly what differs between them.

    With ``by_ranks``, for figures that show time, runs on other numbers of ranks or on another
    network of the lab are groups of their own. The keys ``ignored`` set none apart.
    """
    found: dict[str, RunGroup] = {}
    for log in logs:
        keys = {k: v for k, v in flatten(log.config).items() if k not in ignored}
        if by_ranks:
            keys |= {key: log.attrs[key] for key in ("ranks", "network") if key in log.attrs}
        if not log.config:
            keys["file"] = log.path.stem
        identity = json.dumps(keys, sort_keys=True, default=str)
        found.setdefault(identity, RunGroup([], keys)).logs.append(log)
    groups = list(found.values())
    for group in groups:
        group.logs = _longest(group.logs)
    _label(groups)
    return groups


def common_title(groups: list[RunGroup]) -> str:
    """What all runs share: the experiments' title, or method, compressor, problem and workers."""
    logs = [log for group in groups for log in group.logs]
    titles = {str(log.attrs.get("title", "")) for log in logs}
    if len(titles) == 1 and "" not in titles:
        return titles.pop()
    named = [(labels.of_log(log.attrs), log.config) for log in logs]
    methods = {own.method(str(config.get("method", {}).get("name", ""))) for own, config in named}
    compressors = {own.compressor(config.get("compressor", {})) for own, config in named}
    problems = {own.problem(config.get("problem", {})) for own, config in named}
    workers = {f"{log.n} worker{'s' if log.n > 1 else ''}" for log in logs}
    lines = (
        ", ".join(text for texts in line if len(texts) == 1 for text in texts if text)
        for line in ((methods, compressors), (problems, workers))
    )
    return "\n".join(filter(None, lines))


def _longest(logs: list[Log]) -> list[Log]:
    """The logs without those that end where another one, with a larger budget, goes on."""
    same: dict[str, list[Log]] = {}
    for log in logs:
        same.setdefault(without_budget(log.config), []).append(log)
    return [
        log
        for log in logs
        if not any(_is_beginning(log, other) for other in same[without_budget(log.config)])
    ]


def _is_beginning(log: Log, other: Log) -> bool:
    """Whether ``other`` has all rows of the log but perhaps its last one, and later ones."""
    rows = log.rows - 1
    if rows < 0 or other.rows <= rows or other.columns["round"][-1] <= log.columns["round"][-1]:
        return False
    return np.array_equal(log.column("loss")[:rows], other.column("loss")[:rows], equal_nan=True)


def _varying_with(groups: list[RunGroup], group: RunGroup, key: str) -> list[str]:
    """The keys that vary among the groups with the same value of ``key`` as ``group``."""
    return varying([g.keys for g in groups if g.keys.get(key) == group.keys.get(key)])


def _label(groups: list[RunGroup]) -> None:
    keys = varying([group.keys for group in groups])
    compressors = any(key.startswith("compressor.") for key in keys)
    others = [key for key in keys if key.partition(".")[0] not in ("method", "compressor")]
    for group in groups:
        group.method = _method_text(group, groups, "method.name" in keys)
        parts = [_compressor_text(group, groups)] if compressors else []
        parts += [_other_text(group, key) for key in others if key in group.keys]
        group.variant = ", ".join(parts)
    _make_unique(groups)


def _method_text(group: RunGroup, groups: list[RunGroup], named: bool) -> str:
    """The method, if ``named``, and its parameters that vary among groups with this method."""
    parameters = ", ".join(
        group.names.parameter(key.partition(".")[2], group.keys[key])
        for key in _varying_with(groups, group, "method.name")
        if key.startswith("method.") and key in group.keys
    )
    if not named:
        return parameters
    name = group.names.method(str(group.keys.get("method.name", "")))
    return f"{name} ({parameters})" if parameters else name


def _compressor_text(group: RunGroup, groups: list[RunGroup]) -> str:
    keys = _varying_with(groups, group, "compressor.name")
    also = {key.rpartition(".")[2] for key in keys if key.startswith("compressor.")}
    return group.names.compressor(group.logs[0].config.get("compressor", {}), also)


def _other_text(group: RunGroup, key: str) -> str:
    """A key of the problem or the run."""
    value = group.keys[key]
    if key == "problem.name":
        return group.names.problem_name(str(value))
    if key in ("problem.data", "file"):
        return str(value)
    if key in FORMATS:
        return FORMATS[key].format(value)
    if key == "ranks":
        return f"{value} rank{'' if value == 1 else 's'}"
    return group.names.parameter(key.rpartition(".")[2], value)


def _make_unique(groups: list[RunGroup]) -> None:
    """Add every key that varies to the labels of groups that would share one."""
    by_label: dict[str, list[RunGroup]] = {}
    for group in groups:
        by_label.setdefault(group.label, []).append(group)
    for sharing in by_label.values():
        keys = varying([group.keys for group in sharing])  # none for a group alone
        for group in sharing:
            extra = [f"{key} = {group.keys.get(key, '-')}" for key in keys]
            group.variant = ", ".join(filter(None, [group.variant, *extra]))
