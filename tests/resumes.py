"""Runs in two parts against the same run in one: every method, and compressors with state.

Used in one process by test_resume, and by tests/comm/layouts on several ranks, where the second
part has other ranks and the other layout than the first.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpisim.methods.method_table import METHODS
from mpisim.testing import differences
from tests.helpers import table

__all__ = ["COMPRESSORS", "FIRST", "KEYS", "LAST", "differences", "experiments"]

RANDK, TOPK = {"name": "randk", "k": 4}, {"name": "topk", "k": 4}
SIGN, QSGD = {"name": "scaled-sign"}, {"name": "qsgd", "s": 3}
PERMK, NATURAL = {"name": "permk"}, {"name": "natural"}
SMOOTH = {"name": "smooth", "rank": 5, "inner": {"name": "quant-plus", "beta": 20.0}}
KEYS = {  # what a method needs besides its step
    "vr-marina": {"batch": 7},
    "vr-marina-online": {"batch": 7},
    "vr-diana": {"batch": 0.1},
    "pp-marina": {"participants": 2},
    "1bit-adam": {"warmup": 16},
    "fedavg": {"local_steps": 3, "batch": 0.2, "participants": 4},
    "fedprox": {"local_steps": 2, "mu": 0.1, "server_stepsize": 0.9},
    "scaffold": {"local_steps": 3, "batch": 0.2, "participants": 4},
    "scaffnew": {"p": 0.3, "batch": 0.2},
    "compressed-scaffnew": {"p": 0.3, "batch": 0.2},
    "locodl": {"p": 0.3, "mu": 0.05},
    "clag": {"zeta": 2.0},
    "lag": {"zeta": 2.0},
    "byz-dasha-page": {"batch": 7, "p": 0.2},
    "fednl-ls": {"hessian": {"name": "topk", "k": 30}, "regularisation": 0.1, "stepsize": 1.0},
    "fednl-pp": {"hessian": {"name": "topk", "k": 30}, "participants": 4, "stepsize": 1.0},
    "tamuna": {"p": 0.3, "batch": 0.2, "participants": 4},
    "ef21-p": {"down": TOPK},
    "marina-p": {"down": {"name": "permk"}, "p": 0.2},
    "ef21-sgdm": {"eta": 0.3, "batch": 0.2},
    "rand-diana": {"p": 0.3},
    "adiana": {"mu": 0.01, "p": 0.3},
    "canita": {"p": 0.3},
    "fednl": {"hessian": {"name": "topk", "k": 30}, "stepsize": 1.0},
    "asynchronous-sgd": {"batch": 7},
    "rennala": {"collected": 4, "batch": 7},
    "ringmaster": {"threshold": 3, "batch": 7},
    "fedbuff": {"buffer": 3, "local_steps": 2, "batch": 7},
    "shadowheart": {"noise": 20.0},
    "dasha-page": {"batch": 7, "p": 0.2},
    "dasha-mvr": {"batch": 7, "b": 0.1},
    "dasha-sync-mvr": {"batch": 7, "p": 0.2},
}
COMPRESSORS = {
    "gd": [{}],
    "ef": [SIGN],
    "lag": [{}],
    "ef21": [TOPK, {"name": "block-quant", "blocks": 3, "s": 400}],
    "ef21-2way": [TOPK],
    "ef21-sgdm": [TOPK],
    "scaffold": [NATURAL],  # RandK makes it diverge after some hundred rounds
    "scaffnew": [NATURAL],
    "ef-amsgrad": [TOPK],
    "cd-adam": [SIGN],
    "1bit-adam": [SIGN],
    "compressed-scaffnew": [PERMK | {"groups": 3}],
    "tamuna": [{"name": "pattern", "s": 2}],
    "diana": [QSGD, SMOOTH, {"name": "smooth", "inner": {"name": "rand-tau-plus"}}],
    "marina": [RANDK, PERMK, {"name": "compose", "outer": PERMK, "inner": NATURAL}],
}
FIRST, LAST = 13, 30  # rounds of the first part, and of the whole run


def experiments(rounds: int = LAST) -> Iterator[tuple[str, dict]]:
    """Name and tables of each run."""
    for method in METHODS:
        for compressor in COMPRESSORS.get(method, [RANDK]):
            keys = {"name": method, "stepsize": 0.1} | KEYS.get(method, {})
            keys |= {"p": 0.2} if "marina" in method or method == "vr-diana" else {}
            name = f"{method} {compressor.get('name', '')}"
            yield name, table(keys, compressor, problem={"name": "logistic"}, rounds=rounds)
    quadratic = {"name": "quadratic", "workers": 6, "dimension": 20, "noise": 0.3}
    for method, compressor in (
        ("marina", RANDK),
        ("ef21", {"name": "topk", "k": 1}),  # with bounds, which no checkpoint has
        ("dasha", RANDK),
    ):  # gradients are functions of x
        tables = table({"name": method, "stepsize": 0.1}, compressor, rounds=rounds)
        yield f"{method} quadratic", tables | {"problem": quadratic}
