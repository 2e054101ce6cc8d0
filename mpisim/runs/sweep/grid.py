"""Expands the ``[sweep]`` table of an experiment file into the tables of every point."""

from __future__ import annotations

import copy
import itertools
from math import inf
from pathlib import Path
from typing import Any

from mpisim.core.errors import InputError
from mpisim.core.schema import require, require_plain
from mpisim.runs.experiment import TABLES, apply, read_toml
from mpisim.runs.labels import Tables

# What the sweep has for all points, and an alternative may have for its own.
OWN = {"steps": "numbers > 0", "multiples": "numbers > 0", "seeds": "integers >= 0"}


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
    for own in {s.partition("=")[0].strip() for s in of_grid} & {f"sweep.{key}" for key in OWN}:
        # --set wins over the file, so those of alternatives go
        for one in (one for table in sweep.values() if isinstance(table, list) for one in table):
            if isinstance(one, dict):
                one.pop(own.removeprefix("sweep."), None)
    folder = sweep.pop("folder", folder)
    require(isinstance(folder, str) and folder != "", "sweep.folder", folder, "a string, not empty")
    found = expand(tables, sweep)
    for point in found:
        for setting in of_points:
            apply(point, setting)
        _canonical_step(point)
    return Path(folder), found


def expand(base: Tables, sweep: Tables) -> list[Tables]:
    """The tables of every point: ``base`` with one change of each dimension merged over it."""
    named = [key for key in OWN if _are_tables(sweep.get(key))]  # dimensions with such a name
    common = {key: [] if key in named else _own("sweep", sweep, key) for key in OWN}
    rest = {key: value for key, value in sweep.items() if key in named or key not in OWN}
    alternatives = [_alternatives(key, rest[key]) for key in rest if key not in TABLES]
    values = [d for key in rest if key in TABLES for d in _values((key,), rest[key])]
    points = []
    for changes in itertools.product(*alternatives, *values):
        point, own = copy.deepcopy(base), common
        for change in changes:
            point = _merged(point, {key: value for key, value in change.items() if key in TABLES})
            own = own | {key: change[key] for key in OWN if key in change}
        points += [
            one
            for seeded in _at_seeds(point, own["seeds"])
            for stepped in _at_steps(seeded, own["steps"])
            for one in _at_multiples(stepped, own["multiples"])
        ]
    return points


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
    allowed = ", ".join((*TABLES, *OWN))
    if not _are_tables(node):
        raise InputError(
            f"sweep.{key}: unknown key; allowed: folder, {', '.join(OWN)}, TABLE.KEY ="
            f" [values], and"
            f" [[sweep.{key}]] with tables among {allowed}"
        )
    for number, one in enumerate(node, 1):
        where = f"sweep.{key}, number {number}"
        for name in OWN:
            _own(where, one, name)
        for name, table in one.items():
            if name not in OWN and (name not in TABLES or not isinstance(table, dict)):
                given = f"{name} = {table!r} is not allowed"
                raise InputError(f"{where}: {given}; it must be a table among {allowed}")
    return node


def _are_tables(node: Any) -> bool:
    return isinstance(node, list) and node != [] and all(isinstance(one, dict) for one in node)


def _own(where: str, table: Tables, key: str) -> list[Any]:
    """The list ``key`` of the sweep or of an alternative; empty without one."""
    values, right = table.get(key, []), _is_seed if key == "seeds" else _is_positive
    given = isinstance(values, list) and all(map(right, values))
    given = given and (values != [] or key not in table)
    require(given, f"{where}.{key}", values, f"a list of {OWN[key]}")
    return values


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _at_seeds(point: Tables, seeds: list[int]) -> list[Tables]:
    """The point with each seed; as it is without any."""
    return [_merged(point, {"run": {"seed": seed}}) for seed in seeds] or [point]


def _at_steps(point: Tables, steps: list[float]) -> list[Tables]:
    """The point with each step; as it is without any."""
    return [_merged(point, {"method": {"stepsize": float(s)}}) for s in steps] or [point]


def _at_multiples(point: Tables, multiples: list[float]) -> list[Tables]:
    """The point at each multiple of the theory step; once where its step is a number."""
    method = point.get("method", {})
    step = method.get("stepsize", "theory") if isinstance(method, dict) else None
    if not multiples or not (step == "theory" or isinstance(step, dict)):
        return [point]
    return [_merged(point, {"method": {"stepsize": {"theory": float(m)}}}) for m in multiples]


def _canonical_step(point: Tables) -> None:
    """Write equal steps in one way, so that equal experiments have equal names."""
    method = point.get("method")
    if not isinstance(method, dict):
        return
    step = method.get("stepsize")
    number = step.get("theory") if isinstance(step, dict) else step
    if not isinstance(number, int | float) or isinstance(number, bool):
        return
    method["stepsize"] = float(number)
    if isinstance(step, dict):
        own = {key: v for key, v in step.items() if (key, v) != ("condition", "nonconvex")}
        own["theory"] = float(number)
        method["stepsize"] = "theory" if own == {"theory": 1.0} else own


def _merged(tables: Tables, change: Tables) -> Tables:
    """A copy of ``tables`` with ``change`` over it, key by key, also inside nested tables."""
    merged = copy.deepcopy(tables)
    for key, value in change.items():
        nested = isinstance(value, dict) and isinstance(tables.get(key), dict)
        merged[key] = _merged(tables[key], value) if nested else copy.deepcopy(value)
    return merged
