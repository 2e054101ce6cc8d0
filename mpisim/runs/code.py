"""The code that an experiment executes: its modules, those of its plugins, and their digests.

Two runs of the same experiment have the same bits if these are equal, too.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mpisim.core.imports import digest, file_of, imports, short
from mpisim.core.packages import package_of
from mpisim.runs.experiment import Experiment
from mpisim.runs.metrics import METRICS

# The modules of this room that decide values. Others write, read, and report them.
ROUNDS = ("setup", "loop", "run_state", "evaluation", "stop", "metrics.base")
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
        *map(type, nested(experiment.compressor)),
        *(METRICS[name] for name in columns),
    ]


def nested(compressor: Any) -> Iterator[Any]:
    """A compressor and those inside it."""
    yield compressor
    for field in dataclasses.fields(compressor):
        inner = getattr(compressor, field.name)
        if dataclasses.is_dataclass(inner):
            yield from nested(inner)


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
