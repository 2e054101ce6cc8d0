"""The tables of names and keys of experiment files, in Markdown.

Names, types and defaults are the classes'. A key's meaning is in its class's docstring, or in
`meanings`.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docstrings import described, escaped, markdown, summary, typeset, without
from meanings import MEANINGS

from mpisim.analysis.formatting import markdown as table
from mpisim.comm.byzantine import Attack, Server
from mpisim.comm.fleet import Fleet
from mpisim.compressors import COMPRESSORS
from mpisim.core.schema import describe
from mpisim.core.state import PLACES
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS, Method, Pair
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.problems.glm import Glm
from mpisim.runs.experiment import Run
from mpisim.runs.stop import Stop

NO_DEFAULT = dataclasses.MISSING
HEAD = ["key", "allowed", "default", "meaning"]


# the overview, on the page on experiment files


def problem_names() -> str:
    """Every problem with f, and the keys that `data_keys` does not have."""
    shared = {key for key, _ in fields(Glm)}
    rows = []
    for name, kind in ours(PROBLEMS):
        on_data = issubclass(kind, Glm)
        own = [field for field in fields(kind) if not on_data or field[0] not in shared]
        keys = brief(own, {}) or ("those below" if on_data else "")
        if on_data and own:
            keys = f"those below, {keys}"
        rows.append([link(name), summary(kind), keys])
    return table(["name", "function", "keys"], rows)


def data_keys() -> str:
    """The keys of all problems on LibSVM data."""
    return table(HEAD, rows_of(Glm, {}, ["problem"]))


def method_names() -> str:
    """Every method with its pair, and the keys of both halves."""
    rows = []
    for name, pair in methods_of_the_package():
        halves = f"{pair.estimator} + {pair.optimizer}"
        own = {key: field for kind in kinds_of(pair) for key, field in fields(kind)}
        keys = brief(own.items(), pair.defaults)
        rows.append([spelled(name, METHODS.aliases), halves, keys])
    return table(["name", "estimator + optimizer", "keys"], rows)


def method_keys() -> str:
    """The keys of any method."""
    keys = [field.name for field in dataclasses.fields(Method) if field.name != "name"]
    rows = [[f"`{key}`", typeset(MEANINGS["method"][key])] for key in keys]
    return table(["key", "meaning"], rows)


def compressor_names() -> str:
    rows = [
        [spelled(name, COMPRESSORS.aliases), summary(kind), brief(fields(kind), {})]
        for name, kind in ours(COMPRESSORS)
    ]
    return table(["name", "what it does", "keys"], rows)


def run_keys() -> str:
    return table(HEAD, rows_of(Run, {}, ["run"]))


def server_keys() -> str:
    return table(HEAD, rows_of(Server, {}, ["server"]))


def attack_keys() -> str:
    return table(HEAD, rows_of(Attack, {}, ["attack"]))


def fleet_keys() -> str:
    return table(HEAD, rows_of(Fleet, {}, ["fleet"]))


def stop_keys() -> str:
    return table(["key", "met if"], [[row[0], row[3]] for row in rows_of(Stop, {}, ["stop"])])


# one entry for each name, on the page of names


def problems() -> str:
    return "\n\n".join(entry(name, [kind], ["problem"]) for name, kind in ours(PROBLEMS))


def methods() -> str:
    """Every method, with the keys of its two halves."""
    parts = []
    for name, pair in methods_of_the_package():
        head = f"{pair.label}: estimator `{pair.estimator}`, optimizer `{pair.optimizer}`."
        wheres = [pair.optimizer, "method"]
        parts.append(entry(name, kinds_of(pair), wheres, head, pair.defaults))
    return "\n\n".join(parts)


def optimizers() -> str:
    return "\n\n".join(entry(name, [kind], ["method"]) for name, kind in ours(OPTIMIZERS))


def compressors() -> str:
    return "\n\n".join(entry(name, [kind], []) for name, kind in ours(COMPRESSORS))


def entry(
    name: str,
    kinds: Sequence[type],
    wheres: Sequence[str],
    head: str = "",
    defaults: Mapping[str, Any] | None = None,
) -> str:
    """A heading, the docstring of the first class without its keys, all keys, and the state.

    wheres : further names under which `MEANINGS` has keys
    """
    rows = {row[0]: row for kind in kinds for row in rows_of(kind, defaults or {}, [name, *wheres])}
    keys = table(HEAD, rows.values()) if rows else ""
    own = {key for kind in kinds for key, _ in fields(kind)}
    text = markdown(without(own, inspect.getdoc(kinds[0]) or ""))
    parts = [f"### `{name}`", head, text, keys, state_of(kinds)]
    return "\n\n".join(part for part in parts if part)


def state_of(kinds: Sequence[type]) -> str:
    """A table of what a method keeps between rounds; empty where that is nothing."""
    rows = [
        [f"`{name}`", PLACES[one.place], typeset(one.meaning)]
        for kind in kinds
        for name, one in getattr(kind, "declared", {}).items()
    ]
    return table(["kept between rounds", "by", "meaning"], rows) if rows else ""


# what a class says of its keys


def belongs(kind: type) -> bool:
    """Whether a class is the package's own: plugins may be registered, too."""
    return kind.__module__.partition(".")[0] == "mpisim"


def ours(kinds: Mapping[str, type]) -> list[tuple[str, type]]:
    return sorted((name, kind) for name, kind in kinds.items() if belongs(kind))


def methods_of_the_package() -> list[tuple[str, Pair]]:
    return [item for item in METHODS.items() if belongs(ESTIMATORS[item[1].estimator])]


def kinds_of(pair: Pair) -> list[type]:
    return [ESTIMATORS[pair.estimator], OPTIMIZERS[pair.optimizer]]


def fields(kind: type) -> list[tuple[str, dataclasses.Field]]:
    """The keys of a table and their fields."""
    found = dataclasses.fields(kind)  # type: ignore[arg-type]
    return [(field.name.rstrip("_"), field) for field in found if field.init]


def rows_of(kind: type, defaults: Mapping[str, Any], wheres: Sequence[str]) -> Iterator[list[str]]:
    """Key, allowed values, default and meaning of each key."""
    hints, meant = typing.get_type_hints(kind), meanings(kind, wheres)
    for key, field in fields(kind):
        allowed = describe(hints[field.name]).replace(" or absent", "").replace("'", '"')
        value = shown(defaults.get(key, default(field)))
        yield [f"`{key}`", escaped(allowed), value, typeset(meant[key])]


def meanings(kind: type, wheres: Sequence[str]) -> dict[str, str]:
    """What each key means; `MEANINGS` of the first of ``wheres`` that has it wins."""
    found = described(kind)
    for where in reversed(wheres):
        found |= MEANINGS.get(where, {})
    return found


def default(field: dataclasses.Field) -> Any:
    if field.default_factory is not NO_DEFAULT:
        return None  # a table in the table, which is empty
    return field.default


def shown(value: Any) -> str:
    """A default in a table; empty if the key may be absent."""
    if value is None:
        return ""
    return "required" if value is NO_DEFAULT else f"`{toml(value)}`"


def toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def brief(keys: Any, defaults: Mapping[str, Any]) -> str:
    """Keys with their defaults, in a line."""
    parts = []
    for key, field in keys:
        value = shown(defaults.get(key, default(field)))
        parts.append(f"`{key}`" + (f" ({value})" if value else ""))
    return ", ".join(parts)


def link(name: str) -> str:
    """A name that leads to its entry on the page of names."""
    return f"[`{name}`](names.md#{name})"


def spelled(name: str, aliases: Mapping[str, str]) -> str:
    other = [f"`{alias}`" for alias, own in aliases.items() if own == name]
    return link(name) + (f" (also {', '.join(other)})" if other else "")
