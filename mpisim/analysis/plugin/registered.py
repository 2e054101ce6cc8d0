"""What plugins register, with the tables that `mpisim check` tries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from mpisim.compressors.base import COMPRESSORS, Compressor
from mpisim.core.errors import InputError
from mpisim.core.imports import file_of, imports
from mpisim.core.registry import Names
from mpisim.core.schema import options
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.names import METHODS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.runs import plugins
from mpisim.runs.metrics import METRICS

KINDS: dict[str, Names[Any]] = {
    "compressor": COMPRESSORS,
    "estimator": ESTIMATORS,
    "optimizer": OPTIMIZERS,
    "problem": PROBLEMS,
    "metric": METRICS,
}
INNER = {"name": "randk", "k": 2}
# By type, for keys without a default.
TRIED = {bool: True, int: 2, float: 0.5, Compressor: INNER}
DATA = "data"  # this key without a default gets the sample


@dataclasses.dataclass(frozen=True)
class Subject:
    """One thing that a plugin registers, with one of its tables.

    kind : a key of `KINDS`; ``method`` for an estimator that has a method of its name
    """

    kind: str
    name: str
    table: Mapping[str, Any]

    def __str__(self) -> str:
        keys = ", ".join(f"{key} = {value}" for key, value in self.table.items() if key != DATA)
        return f"{self.kind} {self.name}" + (f" ({keys})" if keys else "")


def subjects(names: Sequence[str], sample: Path) -> Iterator[Subject]:
    """Everything that the loaded plugins ``names`` register, with each of its `examples`.

    ``sample``: a LibSVM file for problems that need data. `InputError` where a key has no default
    and its type does not say what may be tried.
    """
    own = _modules(names)
    for kind, registry in KINDS.items():
        for name, cls in registry.loaded().items():
            if cls.__module__ in own:
                said = "method" if kind == "estimator" and METHODS.here(name) else kind
                for table in _tables(said, name, cls, sample):
                    yield Subject(said, name, table)


def _modules(names: Sequence[str]) -> set[str]:
    """The modules of plugins, and those of the same folders or packages that they import."""
    found: set[str] = set()
    waiting = [Path(name).stem if name.endswith(".py") else name for name in names]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if name not in found and path is not None and name.partition(".")[0] != "mpisim":
            found.add(name)
            waiting += imports(name, path)
    return found


def _tables(kind: str, name: str, cls: Any, sample: Path) -> list[dict[str, Any]]:
    if not dataclasses.is_dataclass(cls):  # a metric, which has no keys
        return [{}]
    hints = get_type_hints(cls)
    needed = [
        field.name
        for field in dataclasses.fields(cls)
        if field.init
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    found = []
    for example in getattr(cls, "examples", ()) or [{}]:
        table = dict(example)
        for key in (key for key in needed if key.rstrip("_") not in table):
            table[key.rstrip("_")] = _guess(kind, name, key, hints[key], sample)
        found.append(table)
    return found


def _guess(kind: str, name: str, key: str, hint: Any, sample: Path) -> Any:
    if key == DATA:
        return str(sample)
    for option in options(hint):
        if option in TRIED:
            return TRIED[option]
    raise InputError(
        f"{kind} {name!r}: the key {key!r} has no default, so its class must say what to try:"
        f" examples = [{{{key!r}: ...}}]"
    )


def load(value: Sequence[str]) -> list[str]:
    """Import plugins; `InputError` unless they register something."""
    names = plugins.load(list(value))
    classes = [cls for registry in KINDS.values() for cls in registry.loaded().values()]
    for plugin in names:
        if not _modules([plugin]) & {cls.__module__ for cls in classes}:
            what = ", ".join(KINDS)
            raise InputError(f"{plugin}: registers nothing; expected: a {what} or method")
    return names
