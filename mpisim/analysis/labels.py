"""Names and settings of runs as figures and tables show them, and which settings vary."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis.formatting import TABLES
from mpisim.methods.method_table import METHODS
from mpisim.runs import labels
from mpisim.runs.labels import Labels, compressor, method, number, of_log, parameter, problem

__all__ = ["Labels", "compressor", "method", "number", "of_log", "parameter", "problem", "training"]

# What neither a reader of results asks for, nor a value depends on.
LEFT_OUT = ("title", "plugin", "run.checkpoint_seconds", "run.layout", "run.ranks", "run.debug")
NAMED_TABLES = ("method.", "compressor.", "problem.")
NAMED = ("method.estimator", "method.optimizer")  # a known method.name says them
Cell = str | int | float | None
MOST = 8  # numbers that are listed one by one


def training(config: dict[str, Any], n: int) -> str:
    """What n workers train: ``ResNet-18 on part of CIFAR-10 (1000 images), n = 8, batch 32``."""
    table = config["problem"]
    width, pool = float(table["width"]), int(table["pool"])
    name = TABLES["networks"].get(table["model"], str(table["model"]))
    data = TABLES["images"].get(table["data"], str(table["data"]))
    less = [] if width == 1 else [f"{width:g} times its channels"]
    less += [] if pool == 1 else [f"images averaged over {pool} x {pool} pixels"]
    less += [f"{table['samples']} images"] if table["samples"] else []
    small = f" ({', '.join(less)})" if less else ""
    batch = config["method"].get("batch")
    return f"{name} on {data}{small}, n = {n}, batch {batch}"


@dataclasses.dataclass(frozen=True)
class Settings:
    """{TABLE.KEY: values} of what varies, and {TABLE.KEY: value} of what is fixed.

    What only some runs have is fixed if it has one value, and all of its method, say, have it.
    """

    varied: dict[str, list[Any]]
    fixed: dict[str, Any]


def settings(configs: Iterable[labels.Tables]) -> Settings:
    """The settings of runs from their resolved experiments."""
    flat = [settings_of(config) for config in configs]
    names = dict.fromkeys(name for one in flat for name in one)
    taken = {name: [one[name] for one in flat if name in one] for name in names}
    values = {name: list({repr(v): v for v in several}.values()) for name, several in taken.items()}
    varied = {n: v for n, v in values.items() if len(v) > 1 or _only_some_have(n, flat)}
    return Settings(varied, {name: v[0] for name, v in values.items() if name not in varied})


def _only_some_have(name: str, flat: Sequence[labels.Tables]) -> bool:
    """Whether only some runs have a key; of a method, compressor or problem: some of its runs."""
    kind = f"{name.rpartition('.')[0]}.name"
    having, lacking = ({o.get(kind) for o in flat if (name in o) == has} for has in (True, False))
    return bool(having & lacking if name.startswith(NAMED_TABLES) else lacking)


def columns(configs: Sequence[labels.Tables], every: bool = False) -> dict[str, list[Cell]]:
    """{TABLE.KEY: a `cell` for each run, or None} of what varies, or of ``every`` setting."""
    kinds, flat = settings(configs), [settings_of(config) for config in configs]
    names = (*kinds.varied, *(kinds.fixed if every else ()))
    return {n: [cell(one[n]) if n in one else None for one in flat] for n in names}


def settings_of(config: labels.Tables) -> labels.Tables:
    """{TABLE.KEY: value} of a run, without what no reader asks for."""
    flat = labels.flatten(config)
    left_out = LEFT_OUT + (NAMED if METHODS.knows(flat.get("method.name")) else ())
    return {  # of files outside of the current folder the name alone
        key: Path(v).name if isinstance(v, str) and Path(v).is_absolute() else v
        for key, v in flat.items()
        if key not in left_out
    }


def several(values: Sequence[Any]) -> str:
    """Values as text: numbers sorted, or as a range where they are many."""
    multiples = any(isinstance(value, dict) for value in values)
    by_unit: dict[str, list[float]] = {}
    for value in values:
        number, unit = _split({"theory": 1.0} if multiples and value == "theory" else value)
        by_unit.setdefault(unit, []).extend(number)
    return ", ".join(_numbers(listed, unit) if listed else unit for unit, listed in by_unit.items())


def _split(value: Any) -> tuple[list[float], str]:
    """A value as a number and its unit, or as text."""
    if isinstance(value, dict) and "theory" in value:
        under = f" ({value['condition']})" if "condition" in value else ""
        return [value["theory"]], f" × theory{under}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value], ""
    return [], str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(values: Sequence[float], unit: str) -> str:
    texts = [f"{value:.6g}" for value in sorted(values)]
    if len(texts) > MOST:
        return f"{texts[0]} to {texts[-1]}{unit} ({len(texts)} values)"
    return ", ".join(texts) + unit


def cell(value: Any) -> str | int | float:
    """A setting in a table: a number, or text such as ``4 × theory``."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if plain else several([value])
