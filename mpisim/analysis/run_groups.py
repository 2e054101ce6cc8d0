"""Groups runs that differ only in the seed, and labels each group by what sets it apart.

Clocks and the machine do not set runs apart; their plugins and the content of their data do. So do
the modules of mpisim that runs executed, where logs come from anywhere. Studies and `mpisim tune`
read what a sweep has taken, which asks for the same code unless its user accepts another.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis.formatting import TABLES
from mpisim.analysis.labels import LEFT_OUT
from mpisim.core.errors import InputError
from mpisim.runs import identity, labels
from mpisim.runs.identity import config_digest
from mpisim.runs.labels import by_key, flatten, varying
from mpisim.runs.log.reader import Log
from mpisim.runs.stop import COMPLETE, Stop

# Keys that do not set runs apart: what they are called, and how long they are, unless the method
# depends on that. The ranks that a run had are an attribute of its log.
IGNORED = {*LEFT_OUT, "run.seed", "run.rounds"} - {"run.layout"}
IGNORED |= {f"run.stop.{field.name}" for field in dataclasses.fields(Stop)}
ON = ("ranks", "network")  # attributes that matter where seconds are shown
DATA = re.compile(r"sha256:(\w+)")  # in what a log says of its problem
FORMATS: dict[str, str] = TABLES["in_labels"]


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

    @property
    def name(self) -> str:
        """The label, or where there is nothing to tell apart what was run."""
        log = self.logs[0]
        return self.label or (name_of(log) if log.config else log.path.stem)


def name_of(log: Log) -> str:
    """Method and compressor."""
    names = labels.of_log(log.attrs)
    name = names.method(str(log.attrs["method"]))
    if log.config["compressor"]["name"] != "identity":
        name += " + " + names.compressor(log.config["compressor"])
    return name


def group_runs(logs: Iterable[Log], by_ranks: bool = False) -> list[RunGroup]:
    """Groups in the order of their first logs, labelled by exactly what differs between them.

    Each seed counts `once`. With ``by_ranks``, for figures that show time, runs on other numbers of
    ranks or on another network of the lab are groups of their own.
    """
    groups = groups_of(logs, by_ranks)
    return [dataclasses.replace(group, logs=once(group.logs)) for group in groups]


def groups_of(
    logs: Iterable[Log], by_ranks: bool = False, ignored: Collection[str] = IGNORED
) -> list[RunGroup]:
    """The groups of `group_runs` with all of their logs. The keys ``ignored`` set none apart."""
    by_keys: dict[str, RunGroup] = {}
    for log in logs:
        keys = _keys(log, by_ranks, ignored)
        same = json.dumps(keys, sort_keys=True, default=str)
        by_keys.setdefault(same, RunGroup([], keys)).logs.append(log)
    groups = list(by_keys.values())
    _label(groups)
    return groups


def one_setting(logs: Sequence[Log], by_ranks: bool = False) -> list[Log]:
    """The logs of runs that a sweep has taken and that differ in the seed alone, each seed `once`.

    `InputError` names a key in which others differ.
    """
    require_alike(logs, by_ranks)
    return once(logs)


def require_alike(
    logs: Sequence[Log], by_ranks: bool = False, ignored: Collection[str] = IGNORED
) -> None:
    """`InputError` with a key, none of ``ignored``, that sets one of the logs apart."""
    keys = [_keys(log, by_ranks, ignored).items() for log in logs]
    shown = [{name: str(v) for name, v in flat if not _is_package(name)} for flat in keys]
    for key in varying(shown):
        texts = [flat.get(key, "nothing") for flat in shown]
        other = next(i for i, text in enumerate(texts) if text != texts[0])
        both, values = f"{logs[0].path} and {logs[other].path}", f"{texts[0]} and {texts[other]}"
        rule = "runs of one setting may differ in the seed alone"
        raise InputError(f"{both}: differ in {key}: {values}; {rule}")


def _keys(log: Log, by_ranks: bool, ignored: Collection[str]) -> dict[str, Any]:
    """What sets a run apart: its experiment's keys, and digests of its data and modules."""
    flat = flatten(log.config)
    keys = {k: v for k, v in flat.items() if k not in ignored}
    starts = flat.get("method.schedule.at")
    lengths = [*(starts if isinstance(starts, list) else []), flat.get("method.warmup")]
    if any(isinstance(length, float) and 0 < length < 1 for length in lengths):  # shares of it
        keys["run.rounds"] = flat.get("run.rounds")
    if by_ranks:
        keys |= {key: log.attrs[key] for key in ON if key in log.attrs}
    if not log.config:
        keys["file"] = str(log.path)
    keys.setdefault("problem.workers", log.n)  # of the ranks, unless there is the key
    for place, content in enumerate(DATA.findall(str(log.attrs.get("problem", "")))):
        keys[f"data sha256{place or ''}"] = content
    executed = identity.of_log(log.attrs).items()
    return keys | {name: text for name, text in executed if name.startswith("module ")}


def _is_package(key: str) -> bool:
    """Whether it is the digest of a module of mpisim."""
    return key.partition(".")[0] == "module mpisim"


def _is_digest(key: str) -> bool:
    return " " in key  # no key of an experiment has one


def once(logs: Iterable[Log]) -> list[Log]:
    """Of a group the longest log of each seed, whatever files there are.

    `InputError` names two complete ones whose rows differ, except for clocks, where both have one.
    """
    return [_longest(same) for same in by_key(logs, _seed).values()]


def common_title(groups: list[RunGroup]) -> str:
    """What all runs share: the experiments' title, or method, compressor, problem and workers."""
    logs = [log for group in groups for log in group.logs]
    titles = {str(log.attrs.get("title", "")) for log in logs}
    if len(titles) == 1 and "" not in titles:
        return titles.pop()
    named = [(labels.of_log(log.attrs), log.config) for log in logs]
    methods = {names.method(str(c.get("method", {}).get("name", ""))) for names, c in named}
    compressors = {names.compressor(config.get("compressor", {})) for names, config in named}
    problems = {names.problem(config.get("problem", {})) for names, config in named}
    workers = {workers_text(log) for log in logs}
    lines = (
        ", ".join(text for texts in line if len(texts) == 1 for text in texts if text)
        for line in ((methods, compressors), (problems, workers))
    )
    return "\n".join(filter(None, lines))


def workers_text(log: Log) -> str:
    return f"{log.n} worker{'s' if log.n > 1 else ''}"


def _longest(same: list[Log]) -> Log:
    best = max(range(len(same)), key=lambda i: (_rounds(same[i])[-1:].tolist(), same[i].rows))
    for place, log in enumerate(same):
        pair = (log, same[best]) if place < best else (same[best], log)
        if place != best and all(one.attrs.get("status") in COMPLETE for one in pair):
            _require_equal(*pair)
    return same[best]


def _seed(log: Log) -> Any:
    return log.attrs.get("seed", log.config.get("run", {}).get("seed"))


def _rounds(log: Log) -> np.ndarray:
    return log.columns.get("round", np.empty(0))


def _require_equal(log: Log, other: Log) -> None:
    rounds, *rows = np.intersect1d(_rounds(log), _rounds(other), return_indices=True)
    for name in log.columns:
        if name.startswith("time_") or name not in other.columns:
            continue
        a, b = (one.columns[name][at] for one, at in zip((log, other), rows, strict=True))
        unequal = (a != b) & ~(np.isnan(a) & np.isnan(b))
        if unequal.any():
            raise InputError(
                f"{log.path} and {other.path}: both have seed {_seed(log)} of one experiment, but"
                f" {name} differs in round {rounds[unequal][0]}; leave out one"
            )


def _varying_with(groups: list[RunGroup], group: RunGroup, key: str) -> list[str]:
    """The keys that vary among the groups with the same value of ``key`` as ``group``."""
    return varying([g.keys for g in groups if g.keys.get(key) == group.keys.get(key)])


def _label(groups: list[RunGroup]) -> None:
    keys = varying([group.keys for group in groups])
    compressors = any(key.startswith("compressor.") for key in keys)
    others = [key for key in keys if key.partition(".")[0] not in ("method", "compressor")]
    others = [key for key in others if not _is_digest(key)]  # of other methods they differ anyway
    for group in groups:
        group.method = _method_text(group, groups, "method.name" in keys)
        parts = [_compressor_text(group, groups)] if compressors else []
        parts += [_other_text(group, key) for key in others if key in group.keys]
        group.variant = ", ".join(parts)
    _tell_code(groups)
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
    if key == "problem.data":
        return str(value)
    if key == "file":
        return Path(value).stem
    if key in FORMATS:
        return FORMATS[key].format(value)
    if key == "ranks":
        return f"{value} rank{'' if value == 1 else 's'}"
    return group.names.parameter(key.rpartition(".")[2], value)


def _make_unique(groups: list[RunGroup]) -> None:
    """Add every key that varies to the labels of groups that would share one."""
    for sharing in by_key(groups, lambda group: group.label).values():
        keys = varying([group.keys for group in sharing])  # none for a group alone
        for group in sharing:
            extra = [f"{k} = {group.keys.get(k, '-')}" for k in keys if not _is_digest(k)]
            group.variant = ", ".join(filter(None, [group.variant, *extra]))


def _tell_code(groups: list[RunGroup]) -> None:
    """Add digests to the labels of groups that have the same experiment, on whatever ranks."""

    def experiment(group: RunGroup) -> str:
        keys = {k: v for k, v in group.keys.items() if k not in ON and not _is_digest(k)}
        return repr(sorted(keys.items()))

    for sharing in by_key(groups, experiment).values():
        varied = varying([group.keys for group in sharing])
        code = sorted(filter(_is_digest, varied), key=_is_package)
        more = f" and {len(code) - 1} more" * (len(code) > 1)  # of several the first is named
        for group in sharing if code else ():
            values = [str(group.keys.get(key, "-")) for key in code]
            text = f"{code[0]}{more} = {config_digest(repr(values)) if more else values[0][:12]}"
            group.variant = ", ".join(filter(None, [group.variant, text]))
