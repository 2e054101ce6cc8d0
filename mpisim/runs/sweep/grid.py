"""Expands the ``[sweep]`` table of an experiment file into the tables of every point."""

from __future__ import annotations

import copy
import itertools
from math import isfinite
from pathlib import Path
from typing import Any

from mpisim.core.errors import InputError
from mpisim.runs.experiment import TABLES, apply, read_toml
from mpisim.runs.tables import Tables


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
    of_grid = [s for s in settings if s.strip().startswith("sweep.")]
    of_points = [s for s in settings if s not in of_grid]
    for setting in of_grid:
        apply(tables, setting)
    sweep = tables.pop("sweep", {})
    if not isinstance(sweep, dict):
        raise InputError(f"sweep: {sweep!r} is not allowed; it must be a table")
    if any(s.partition("=")[0].strip() == "sweep.multiples" for s in of_grid):
        _drop_own_multiples(sweep)
    folder = sweep.pop("folder", folder)
    if not isinstance(folder, str) or not folder:
        raise InputError(f"sweep.folder: {folder!r} is not allowed; it must be a string, not empty")
    found = expand(tables, sweep)
    for point in found:
        for setting in of_points:
            apply(point, setting)
        _canonical_step(point)
    return Path(folder), found


def expand(base: Tables, sweep: Tables) -> list[Tables]:
    """The tables of every point: ``base`` with one change of each dimension merged over it."""
    multiples = _multiples("sweep", sweep)
    rest = {key: value for key, value in sweep.items() if key != "multiples"}
    alternatives = [_alternatives(key, rest[key]) for key in rest if key not in TABLES]
    values = [d for key in rest if key in TABLES for d in _values((key,), rest[key])]
    points = []
    for changes in itertools.product(*alternatives, *values):
        point = copy.deepcopy(base)
        own = multiples
        for change in changes:
            _merge(point, {key: value for key, value in change.items() if key in TABLES})
            own = change.get("multiples", own)
        points += _at_multiples(point, own)
    return points


def _values(path: tuple[str, ...], node: Any) -> list[list[Tables]]:
    """A dimension for each ``TABLE.KEY = [values]``; KEY may be nested, as in ``inner.k``."""
    if isinstance(node, dict) and (node or len(path) == 1):
        return [d for key, inner in node.items() for d in _values((*path, key), inner)]
    if not isinstance(node, list) or not node:
        where = ".".join(("sweep", *path))
        raise InputError(
            f"{where}: {node!r} is not allowed; it must be a list of values, not empty"
        )
    changes = []
    for value in node:
        for name in reversed(path):
            value = {name: value}
        changes.append(value)
    return [changes]


def _alternatives(key: str, node: Any) -> list[Tables]:
    """The dimension ``[[sweep.KEY]]``: whole tables, merged over those of the file."""
    allowed = f"{', '.join(TABLES)}, multiples"
    if not isinstance(node, list) or not node or not all(isinstance(one, dict) for one in node):
        raise InputError(
            f"sweep.{key}: unknown key; allowed: folder, multiples, TABLE.KEY = [values], and"
            f" [[sweep.{key}]] with tables among {allowed}"
        )
    for number, one in enumerate(node, 1):
        if "multiples" in one:
            _multiples(f"sweep.{key}, number {number}", one)
        for name, table in one.items():
            if name == "multiples":
                continue
            if name not in TABLES or not isinstance(table, dict):
                raise InputError(
                    f"sweep.{key}, number {number}: {name} = {table!r} is not allowed;"
                    f" it must be a table among {allowed}"
                )
    return node


def _drop_own_multiples(sweep: Tables) -> None:
    """Remove the alternatives' ``multiples``, because ``--set`` wins over the file."""
    for alternatives in sweep.values():
        for one in alternatives if isinstance(alternatives, list) else []:
            if isinstance(one, dict):
                one.pop("multiples", None)


def _multiples(where: str, table: Tables) -> list[float]:
    multiples = table.get("multiples", [])
    numbers = isinstance(multiples, list) and all(
        isinstance(m, int | float) and not isinstance(m, bool) and isfinite(m) and m > 0
        for m in multiples
    )
    if not numbers or ("multiples" in table and not multiples):
        raise InputError(
            f"{where}.multiples: {multiples!r} is not allowed; it must be a list of numbers > 0"
        )
    return [float(m) for m in multiples]


def _at_multiples(point: Tables, multiples: list[float]) -> list[Tables]:
    """The point at each multiple of the theory step; once where its step is a number."""
    method = point.get("method", {})
    if not multiples or not isinstance(method, dict):
        return [point]
    step = method.get("stepsize", "theory")
    if step != "theory" and not isinstance(step, dict):
        return [point]
    points = []
    for multiple in multiples:
        points.append(copy.deepcopy(point))
        given = step if isinstance(step, dict) else {}
        points[-1].setdefault("method", {})["stepsize"] = given | {"theory": multiple}
    return points


def _canonical_step(point: Tables) -> None:
    """Write equal steps in one way, so that equal experiments have equal names."""
    method = point.get("method")
    if not isinstance(method, dict):
        return
    step = method.get("stepsize")
    if isinstance(step, dict) and step.get("condition") == "nonconvex":
        step = {key: value for key, value in step.items() if key != "condition"}
    inner = step.get("theory") if isinstance(step, dict) else step
    if not isinstance(inner, int | float) or isinstance(inner, bool):
        return
    if isinstance(step, dict):
        plain = inner == 1 and len(step) == 1
        method["stepsize"] = "theory" if plain else step | {"theory": float(inner)}
    else:
        method["stepsize"] = float(inner)


def _merge(tables: Tables, change: Tables) -> None:
    """Merge ``change`` into ``tables``, key by key, also inside nested tables."""
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            _merge(tables[key], value)
        else:
            tables[key] = copy.deepcopy(value)
