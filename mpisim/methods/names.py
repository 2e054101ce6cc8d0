"""The papers' names for pairs of an estimator and an optimizer."""

from __future__ import annotations

from typing import Any, NamedTuple

from mpisim.core.registry import Names


class Pair(NamedTuple):
    """The halves that a method's name stands for.

    label : its name in figures and tables
    defaults : of its keys, if they differ from the estimator's
    """

    estimator: str
    optimizer: str
    label: str
    defaults: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it


BOTH = {"direction": "both"}
_OWN = {
    "gd": Pair("naive", "gd", "GD"),
    "heavy-ball": Pair("naive", "heavy-ball", "heavy ball"),
    "dcgd": Pair("naive", "gd", "DCGD"),
    "diana": Pair("diana", "gd", "DIANA"),
    "vr-diana": Pair("vr-diana", "gd", "VR-DIANA"),
    "marina": Pair("marina", "gd", "MARINA"),
    "vr-marina": Pair("vr-marina", "gd", "VR-MARINA"),
    "vr-marina-online": Pair("vr-marina-online", "gd", "VR-MARINA (online)"),
    "dasha": Pair("dasha", "gd", "DASHA"),
    "dasha-page": Pair("dasha-page", "gd", "DASHA-PAGE"),
    "dasha-mvr": Pair("dasha-mvr", "gd", "DASHA-MVR"),
    "dasha-sync-mvr": Pair("dasha-sync-mvr", "gd", "DASHA-SYNC-MVR"),
    "pp-marina": Pair("pp-marina", "gd", "PP-MARINA"),
    "ef": Pair("ef", "gd", "EF"),
    "ef21": Pair("ef21", "gd", "EF21"),
    "ef21-2way": Pair("ef21", "gd", "EF21 (two-way)", BOTH),
    "amsgrad": Pair("naive", "amsgrad", "AMSGrad"),
    "naive-amsgrad": Pair("naive", "amsgrad", "AMSGrad (naive)", BOTH),
    "ef-amsgrad": Pair("ef", "amsgrad", "AMSGrad (EF)", BOTH),
    "cd-adam": Pair("ef21", "amsgrad", "CD-Adam", BOTH | {"start": "zero"}),
    "1bit-adam": Pair("1bit-adam", "1bit-adam", "1-bit Adam"),
}
METHODS: Names[Pair] = Names("method", _OWN, {"ef21-bc": "ef21-2way"})
# these methods send dense vectors unless the experiment names a compressor
UNCOMPRESSED = ("gd", "heavy-ball", "amsgrad")
