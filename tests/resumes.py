"""Runs in two parts against the same run in one: every method, and compressors with state.

Used in one process by test_resume, and by tests/comm/layouts on several ranks, where the second
part has other ranks and the other layout than the first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from mpisim.methods.method_table import METHODS
from mpisim.testing import differences
from tests.helpers import table

__all__ = ["COMPRESSORS", "FIRST", "KEYS", "LAST", "SMOOTH", "differences", "experiments"]

TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KEYS, COMPRESSORS = TABLE["keys"], TABLE["compressors"]
RANDK, SMOOTH = {"name": "randk", "k": 4}, COMPRESSORS["diana"][1]
FLEET = {"links": "mlab:BR", "devices": "phones", "seconds": 1e-3}
LOSSY = FLEET | {"dropout": 0.3, "deadline": 60.0, "simulate": True}
CLOCKS = {  # methods whose clients may drop out, and one on an event clock
    "fedavg": {"local_steps": 2, "participants": 3},
    "pp-marina": {"p": 0.3, "participants": 3},
    "diana": {},
    "dasha": {},
    "ringmaster": {"threshold": 3},
}
FIRST, LAST = 13, 30  # rounds of the first part, and of the whole run


def experiments(rounds: int = LAST) -> Iterator[tuple[str, dict]]:
    """Name and tables of each run."""
    for method in METHODS:
        for compressor in COMPRESSORS.get(method, [RANDK]):
            keys = {"name": method, "stepsize": 0.1} | KEYS.get(method, {})
            name = f"{method} {compressor.get('name', '')}"
            yield name, table(keys, compressor, problem={"name": "logistic"}, rounds=rounds)
    for method, keys in CLOCKS.items():
        tables = table({"name": method, "stepsize": 0.1} | keys, RANDK, rounds=rounds)
        yield f"{method} simulated", tables | {"fleet": FLEET if "threshold" in keys else LOSSY}
    quadratic = {"name": "quadratic", "workers": 6, "dimension": 20, "noise": 0.3}
    for method, compressor in (
        ("marina", RANDK),
        ("ef21", {"name": "topk", "k": 1}),  # with bounds, which no checkpoint has
        ("dasha", RANDK),
    ):  # gradients are functions of x
        tables = table({"name": method, "stepsize": 0.1}, compressor, rounds=rounds)
        yield f"{method} quadratic", tables | {"problem": quadratic}
