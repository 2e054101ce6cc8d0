"""The nested tables of experiments: flatten, compare and name them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from typing import Any

Tables = dict[str, Any]

BUDGET = ("run.rounds", "run.stop")  # how long a run is, and nothing about what it does


def flatten(tables: Tables, prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; ``method.stepsize`` stays one value."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, dict) and prefix + key != "method.stepsize":
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def varying(many: Sequence[dict[str, Any]]) -> list[str]:
    """Keys whose values are not equal in all flat tables; a missing key differs from any value."""
    names = dict.fromkeys(name for one in many for name in one)
    return [n for n in names if len({repr(one[n]) if n in one else None for one in many}) > 1]


def differences(many: Sequence[Tables]) -> list[dict[str, Any]]:
    """For each of ``many`` its values of the keys that vary, by TABLE.KEY."""
    flat = [flatten(tables) for tables in many]
    varied = varying(flat)
    return [{n: one[n] for n in varied if n in one} for one in flat]


def without_budget(tables: Tables) -> str:
    """The same text for resolved experiments that differ in `BUDGET` alone."""
    rest = copy.deepcopy(tables)
    for table, key in (name.split(".") for name in BUDGET):
        rest.get(table, {}).pop(key, None)
    return json.dumps(rest, sort_keys=True, default=str)


def digest(config: str) -> str:
    """Eight hexadecimal digits that identify a resolved experiment in the name of its log."""
    return hashlib.sha256(config.encode()).hexdigest()[:8]
