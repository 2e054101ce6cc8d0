"""What must agree between two parts of a run, or between a log and the run that would repeat it.

The experiment, as it is resolved, must agree in any case. What executes it (modules, libraries, the
processor) may differ if a user accepts the change, which is then recorded.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mpisim.core.errors import InputError
from mpisim.core.imports import digest, file_of, imports, short
from mpisim.core.numerics import processor
from mpisim.core.packages import package_of
from mpisim.core.schema import flat
from mpisim.runs.experiment import Experiment
from mpisim.runs.host import version
from mpisim.runs.metrics import METRICS

BUDGET = ("run.rounds", "run.stop")  # how long a run is, and nothing about what it does
# What may differ on resume, with the keys in such a table.
FREE = (*BUDGET, "run.checkpoint_seconds", "run.layout", "run.ranks", "title", "plugin")
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")  # their versions may change the last bits
SHOWN = 3  # differences in a message
ACCEPTABLE = ("module", "library", "processor")  # the first words of what executes an experiment


def resolved(
    table: dict[str, Any], parameters: dict[str, Any], gamma: float, problem: str, n: int
) -> dict[str, str]:
    """The experiment, by name.

    table : the experiment's; parameters, gamma : the resolved parameters of the method, and its
    step; problem : the identity of the data; n : workers.
    """
    found = {"problem identity": problem, "workers": str(n)}
    found |= must_agree(flat(table))
    found |= flat({"method": {name.rstrip("_"): value for name, value in parameters.items()}})
    return found | {"step size": repr(float(gamma))}


def must_agree(table: Mapping[str, str]) -> dict[str, str]:
    """A flat table without what may differ on resume."""
    tables = tuple(f"{name}." for name in FREE)
    return {n: v for n, v in table.items() if n not in FREE and not n.startswith(tables)}


def executed_by(experiment: Experiment) -> dict[str, str]:
    """What executes an experiment in this process, by name."""
    sources = modules(experiment)
    found = {f"module {name}": text for name, text in sources.items()}
    found |= {f"library {name}": version(name) for name in LIBRARIES}
    return found | {"processor": _processor(experiment, sources)}


def _processor(experiment: Experiment, modules: Iterable[str]) -> str:
    """The processor; only its kind where the bits are the same on all of that kind.

    Of a plugin nobody knows this.
    """
    parts: list[Any] = [experiment.problem, *experiment.compressors]
    ours = all(name.partition(".")[0] == "mpisim" for name in modules)
    if ours and all(part.portable for part in parts):
        return platform.machine()
    return "; ".join(processor.facts().values())


def require_same(
    where: object, theirs: Mapping[str, str], ours: Mapping[str, str], accept: bool = False
) -> str:
    """The accepted differences as one line of text, or `InputError` about what must agree.

    where : the file that holds ``theirs``; accept : whether its user accepts other code
    """
    unlike = _unlike(theirs, ours)
    for name in (name for name in unlike if not _acceptable(name)):
        raise InputError(f"{where}: has {name} = {unlike[name][0]}, this run has {unlike[name][1]}")
    if unlike and not accept:
        raise InputError(f"{where}: {other_code(theirs, ours)}; --accept-changes continues")
    return ", ".join(_told(unlike))


def other_code(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """How what executed a log differs from ``ours``, as text; empty where it does not."""
    told = _told(_unlike(theirs, ours))
    if told and not any(map(_acceptable, theirs)):
        return "does not say what code wrote it"
    more = f", and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return f"was written by other code: {', '.join(told[:SHOWN])}{more}" if told else ""


def _unlike(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = dict.fromkeys([*ours, *filter(_acceptable, theirs)])
    pairs = {name: (theirs.get(name, "nothing"), ours.get(name, "nothing")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _told(unlike: Mapping[str, tuple[str, str]]) -> list[str]:
    return [f"{name} ({before} -> {now})" for name, (before, now) in unlike.items()]


def of_log(attributes: Mapping[str, Any]) -> dict[str, str]:
    """`executed_by` as a log's attributes tell it; empty where they do not."""
    try:
        found = json.loads(attributes.get("code", "{}"))
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _acceptable(name: str) -> bool:
    return name.split(" ", 1)[0] in ACCEPTABLE


# The modules of this room that decide values. Others write, read, and report them.
ROUNDS = ("setup", "loop", "run_state", "evaluation", "stop", "metrics")
REGISTRIES = (
    "mpisim",
    "mpisim.problems",
    "mpisim.compressors",
    "mpisim.methods.estimators",
    "mpisim.wire.placed",
)
ELSEWHERE = ("mpisim.runs", "mpisim.analysis", "mpisim.cli")  # never followed


def modules(experiment: Experiment) -> dict[str, str]:
    """{module: digest} of all that the experiment executes, sorted by name.

    From the classes that it names, and from the rounds' own modules, imports are followed inside
    the package, and inside the folder of a plugin. `REGISTRIES` count, but are not followed: they
    import every class that an experiment could have named.
    """
    found: dict[str, str] = {}
    waiting = [*(f"mpisim.runs.{name}" for name in ROUNDS), *_named(experiment)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = file_of(name)
        found[name] = digest(path) if path else _unsaved(name, experiment)
        if path and name not in REGISTRIES:
            waiting += [other for other in imports(name, path) if not _elsewhere(other)]
    return dict(sorted(found.items()))


def packages_of(execution: Iterable[str]) -> list[str]:
    """Name and version of the packages of plugins among ``module NAME``, each once."""
    modules = (name.removeprefix("module ") for name in execution if name.startswith("module "))
    return list(dict.fromkeys(filter(None, map(package_of, modules))))


def _named(experiment: Experiment) -> Iterator[str]:
    """The modules of the classes and plugins that the experiment names."""
    for kind in _classes(experiment):
        yield kind.__module__
    for plugin in experiment.plugin:
        yield Path(plugin).stem if plugin.endswith(".py") else plugin


def _classes(experiment: Experiment) -> list[type]:
    method, columns = experiment.method, experiment.run.columns or ()
    parts = [experiment.problem, method.estimator, method.optimizer, method.schedule]
    return [
        *map(type, parts),
        *map(type, experiment.compressors),
        *(METRICS[name] for name in columns),
    ]


def _elsewhere(name: str) -> bool:
    return any(name == room or name.startswith(room + ".") for room in ELSEWHERE)


def _unsaved(name: str, experiment: Experiment) -> str:
    """The digest of an experiment's classes in a notebook or in the script that runs it."""
    own = [kind for kind in _classes(experiment) if kind.__module__ == name]
    try:
        text = "".join(inspect.getsource(kind) for kind in own)
    except (OSError, TypeError):
        return "unknown"
    return short(text.encode())


def without_budget(tables: dict[str, Any]) -> str:
    """The same text for resolved experiments that differ in `BUDGET` alone."""
    rest = copy.deepcopy(tables)
    for table, key in (name.split(".") for name in BUDGET):
        rest.get(table, {}).pop(key, None)
    return json.dumps(rest, sort_keys=True, default=str)


def config_digest(config: str) -> str:
    """Eight hexadecimal digits that identify a resolved experiment in the name of its log."""
    return hashlib.sha256(config.encode()).hexdigest()[:8]
