"""Names of methods, compressors and parameters as figures and tables show them."""

from __future__ import annotations

from typing import Any

from mpisim.analysis.formatting import TABLES
from mpisim.runs.labels import Labels, compressor, method, number, of_log, parameter, problem

__all__ = ["Labels", "compressor", "method", "number", "of_log", "parameter", "problem", "training"]


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
