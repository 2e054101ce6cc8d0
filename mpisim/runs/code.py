"""The code that an experiment executes: its modules, those of its plugins, and their digests.

Two runs of the same experiment have the same bits if these are equal, too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mpisim.runs.experiment import Experiment
from mpisim.runs.metrics import METRICS
from mpisim.runs.sysinfo import PACKAGE

# The modules of this room that decide values. Others write, read, and report them.
ROUNDS = ("setup", "loop", "iteration", "evaluation", "snapshot", "metrics")
REGISTRIES = ("mpisim", "mpisim.problems", "mpisim.compressors", "mpisim.methods.estimators")
ELSEWHERE = ("mpisim.runs", "mpisim.analysis", "mpisim.cli")  # never followed
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w., ]+))",
    re.MULTILINE,
)
DIGITS = 12  # of a sha256


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
        path = _file(name)
        found[name] = _digest(path) if path else _unsaved(name, experiment)
        if path and name not in REGISTRIES:
            waiting += [other for other in _imports(name, path) if not _elsewhere(other)]
    return dict(sorted(found.items()))


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


def _file(name: str) -> Path | None:
    """The source of a module; None for one that was typed in, or is the script itself."""
    if name == "mpisim" or name.startswith("mpisim."):
        path = PACKAGE.parent.joinpath(*name.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    file = getattr(sys.modules.get(name), "__file__", None)
    return None if file is None or name == "__main__" else Path(file)


@cache
def _digest(path: Path) -> str:
    """Of a module's source as it is when a process first asks, which has loaded it by then."""
    return _short(path.read_bytes())


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _unsaved(name: str, experiment: Experiment) -> str:
    """The digest of an experiment's classes in a notebook or in the script that runs it."""
    own = [kind for kind in _classes(experiment) if kind.__module__ == name]
    try:
        text = "".join(inspect.getsource(kind) for kind in own)
    except (OSError, TypeError):
        return "unknown"
    return _short(text.encode())


@cache
def _imports(name: str, path: Path) -> tuple[str, ...]:
    """The modules of mpisim, or of a plugin's own folder, that a module imports."""
    found: list[str] = []
    for source, names, plain in IMPORT.findall(path.read_text(encoding="utf-8")):
        if plain:
            found += [word.split(" as ")[0].strip() for word in plain.split(",")]
        else:
            listed = re.sub(r"#.*", "", names).strip("() \t").replace("\n", " ").split(",")
            words = [word.split(" as ")[0].strip() for word in listed]
            found += [_home(source, word) for word in words if word]
    return tuple(other for other in found if _followed(other, name, path))


def _home(source: str, name: str) -> str:
    """The module that defines ``name``, which was imported from ``source``."""
    inner, path = f"{source}.{name}", _file(source)
    if path is None or path.name != "__init__.py":
        return source
    if inner in sys.modules or (path.parent / f"{name}.py").exists():
        return inner
    try:
        home = getattr(getattr(sys.modules.get(source), name, None), "__module__", None)
    except ImportError:  # an optional part of the package
        home = None
    return home if isinstance(home, str) and home.startswith(source) else source


def _followed(other: str, name: str, path: Path) -> bool:
    if other == "mpisim" or other.startswith("mpisim."):
        found = _file(other)
        return found is not None and found.exists()
    if name.startswith("mpisim."):
        return False
    neighbour = _file(other)
    return neighbour is not None and path.parent in neighbour.parents
