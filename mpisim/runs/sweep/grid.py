"""Expands the ``[sweep]`` table of an experiment file into the tables of every point."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any

from mpisim.core.errors import InputError
from mpisim.core.schema import require, require_plain
from mpisim.runs.experiment import TABLES, apply, read_toml
from mpisim.runs.labels import Tables

# What the sweep has for all points, and an alternative may have instead: what each value must be.
LISTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "steps": ("numbers > 0", lambda value: isinstance(value, int | float) and 0 < value < inf),
    "multiples": ("numbers > 0", lambda value: isinstance(value, int | float) and 0 < value < inf),
    "seeds": ("integers >= 0", lambda value: isinstance(value, int) and value >= 0),
}
MOST = 100_000  # points; each has a log in one folder, and takes some kilobytes of memory


def read(file: Path, settings: list[str]) -> tuple[Path, list[Tables]]:
    """`points` of the content of a file; the folder is logs/STEM unless the file says so."""
    return points(read_toml(file), settings, f"logs/{file.stem}")


def points(tables: Tables, settings: list[str], folder: str) -> tuple[Path, list[Tables]]:
    """The folder for the logs, and the tables of all points, in the order of the grid.

    ``tables``: an experiment and its grid; ``folder``: for logs, unless ``sweep.folder`` says so.
    ``settings`` are ``TABLE.KEY=VALUE`` and win over the file: those of ``sweep.`` change the grid,
    all others hold at each of its points. Raises `InputError` for mistakes in ``[sweep]``; those
    in an experiment appear when its point is parsed.
    """
    require_plain(tables)
    of_grid = [s for s in settings if s.strip().startswith("sweep.")]
    of_points = [s for s in settings if s not in of_grid]
    for setting in of_grid:
        apply(tables, setting)
    sweep = tables.pop("sweep", {})
    require(isinstance(sweep, dict), "sweep", sweep, "a table")
    names = {s.partition("=")[0].strip().removeprefix("sweep.") for s in of_grid} & {*LISTS}
    names |= {"multiples"} if "steps" in names else set()
    for name in names:
        # --set wins over the file, so those of alternatives go
        for one in (one for table in sweep.values() if isinstance(table, list) for one in table):
            if isinstance(one, dict):
                one.pop(name, None)
    folder = sweep.pop("folder", folder)
    require(isinstance(folder, str) and folder != "", "sweep.folder", folder, "a string, not empty")
    grid = expand(tables, sweep)
    for point in grid:
        for setting in of_points:
            apply(point, setting)
        _write_step_in_one_way(point)
    return Path(folder), grid


def expand(base: Tables, sweep: Tables) -> list[Tables]:
    """The tables of every point: ``base`` with one change of each dimension merged over it."""
    named = [key for key in LISTS if _are_tables(sweep.get(key))]  # dimensions with such a name
    lists = {key: [] if key in named else _list("sweep", sweep, key) for key in LISTS}
    rest = {key: value for key, value in sweep.items() if key in named or key not in LISTS}
    alternatives = [_alternatives(key, rest[key]) for key in rest if key not in TABLES]
    values = [d for key in rest if key in TABLES for d in _values((key,), rest[key])]
    combined = _combined(base, lists, itertools.product(*alternatives, *values))
    grid = list(itertools.islice(combined, MOST + 1))
    if len(grid) > MOST:
        raise InputError(f"sweep: has more than {MOST:,} points; a sweep has at most as many")
    return [copy.deepcopy(point) for point in grid]


def _combined(
    base: Tables, lists: dict[str, list[Any]], combinations: Iterator[tuple[Tables, ...]]
) -> Iterator[Tables]:
    """All points; they share tables with each other."""
    for changes in combinations:
        point, chosen = base, lists
        for change in changes:
            point = _merged(point, {key: change[key] for key in change if key in TABLES})
            given = {key: change[key] for key in LISTS if key in change}
            chosen = chosen | ({"steps": []} if "multiples" in given else {}) | given
        steps = [{"method": {"stepsize": float(step)}} for step in chosen["steps"]]
        multiples = [{"method": {"stepsize": {"theory": float(m)}}} for m in chosen["multiples"]]
        for seed in [{"run": {"seed": seed}} for seed in chosen["seeds"]] or [{}]:
            for step in steps or [{}]:
                stepped = _merged(_merged(point, seed), step)
                scaled = multiples if has_theory_step(stepped) else []
                yield from (_merged(stepped, multiple) for multiple in scaled or [{}])


def _values(path: tuple[str, ...], node: Any) -> list[list[Tables]]:
    """A dimension for each ``TABLE.KEY = [values]``; KEY may be nested, as in ``inner.k``."""
    if isinstance(node, dict) and (node or len(path) == 1):
        return [d for key, inner in node.items() for d in _values((*path, key), inner)]
    values = isinstance(node, list) and node != []
    require(values, ".".join(("sweep", *path)), node, "a list of values, not empty")
    for name in reversed(path):
        node = [{name: value} for value in node]
    return [node]


def _alternatives(key: str, node: Any) -> list[Tables]:
    """The dimension ``[[sweep.KEY]]``: whole tables, merged over those of the file."""
    allowed = ", ".join((*TABLES, *LISTS))
    if "." in key:
        raise InputError(f'sweep."{key}": a key with a dot has no quotes: {key} = [...]')
    if not _are_tables(node):
        raise InputError(
            f"sweep.{key}: unknown key; allowed: folder, {', '.join(LISTS)}, TABLE.KEY = [values],"
            f" and [[sweep.{key}]] with tables among {allowed}"
        )
    for number, one in enumerate(node, 1):
        where = f"sweep.{key}, number {number}"
        for name in LISTS:
            _list(where, one, name)
        for name, table in one.items():
            good = name in LISTS or (name in TABLES and isinstance(table, dict))
            require(good, f"{where}: {name}", table, f"a table among {allowed}")
    return node


def _are_tables(node: Any) -> bool:
    return isinstance(node, list) and node != [] and all(isinstance(one, dict) for one in node)


def _list(where: str, table: Tables, key: str) -> list[Any]:
    """The list ``key`` of the sweep or of an alternative; empty without one."""
    kind, fits = LISTS[key]
    values = table.get(key, [])
    allowed = isinstance(values, list) and (values != [] or key not in table)
    allowed = allowed and all(fits(value) and not isinstance(value, bool) for value in values)
    require(allowed, f"{where}.{key}", values, f"a list of {kind}")
    return values


def has_theory_step(point: Tables) -> bool:
    """Whether a multiple applies; a step that is a number has none."""
    method = point.get("method", {})
    step = method.get("stepsize", "theory") if isinstance(method, dict) else None
    return step == "theory" or isinstance(step, dict)


def _write_step_in_one_way(point: Tables) -> None:
    """Equal steps are written in one way, so that equal experiments have equal names."""
    method = point.get("method")
    if not isinstance(method, dict):
        return
    step = method.get("stepsize")
    number = step.get("theory") if isinstance(step, dict) else step
    if not isinstance(number, int | float) or isinstance(number, bool):
        return
    method["stepsize"] = float(number)
    if isinstance(step, dict):
        short = {key: v for key, v in step.items() if (key, v) != ("condition", "nonconvex")}
        short["theory"] = float(number)
        method["stepsize"] = "theory" if short == {"theory": 1.0} else short


def _merged(tables: Tables, change: Tables) -> Tables:
    """``tables`` with ``change`` over it, key by key, also inside nested tables.

    Neither changes; the result shares tables with both.
    """
    merged = dict(tables)
    for key, value in change.items():
        nested = isinstance(value, dict) and isinstance(tables.get(key), dict)
        merged[key] = _merged(tables[key], value) if nested else value
    return merged
