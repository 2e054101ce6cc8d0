"""What a point of a sweep is called on the terminal: method, compressor, and what varies."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from mpisim.methods.names import UNCOMPRESSED
from mpisim.runs.labels import compressor_title, method, number
from mpisim.runs.sweep.points import Point

# Method and compressor come first; the others are no setting of the run.
ELSEWHERE = ("method.name", "compressor.name", "title", "plugin")
LAST = ("method.stepsize", "run.seed")


def name_of(point: Point) -> str:
    """``MARINA RandK k=10 seed 3``; the log of a point that is no experiment."""
    if not point.config:
        return Path(point.log).name or point.name
    config = tomllib.loads(point.config)
    words = [method(config["method"]["name"])]
    if config["method"]["name"] not in UNCOMPRESSED:
        words.append(compressor_title(config["compressor"]["name"]))
    varied = {key: v for key, v in point.settings.items() if key not in ELSEWHERE}
    words += [_word(key, varied[key]) for key in sorted(varied, key=_place)]
    return " ".join(words)


def _place(key: str) -> int:
    """Parameters first, in their order; then the step, and the seed."""
    return LAST.index(key) + 1 if key in LAST else 0


def _word(key: str, value: Any) -> str:
    """A setting that varies: ``k=10``, ``seed 3``, ``4 × theory``, ``mushrooms``."""
    if isinstance(value, dict) and "theory" in value:
        under = f" ({value['condition']})" if "condition" in value else ""
        return f"{number(value['theory'])} × theory{under}"
    if key == "method.stepsize":
        return "1 × theory" if value == "theory" else f"step {number(value)}"
    if key == "run.seed":
        return f"seed {value}"
    if key == "problem.data":
        return Path(str(value)).name
    return f"{key.partition('.')[2]}={number(value)}"
