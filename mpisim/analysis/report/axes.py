"""The axes that a reader of a report can choose."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis.curves import LABELS, Axis, grows
from mpisim.analysis.framing import ABOVE, share
from mpisim.analysis.link_model import Links
from mpisim.analysis.modelled import ModelledSeconds
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

X = (
    Axis("bits_up", log=True),
    Axis("bits_total", log=True),
    Axis("round", log=False),
    Axis("oracle_calls", log=True),
    Axis("seconds", log=True),
)
FIRST = "grad_norm_sq"  # the y axis that is shown first
PLAIN = (  # TeX in labels, as text
    (r"\|", "‖"),
    (r"\nabla ", "∇"),
    (r"^\star", "*"),
    ("^2", "²"),
    ("^k", "ᵏ"),
    ("^j", "ʲ"),
    ("$", ""),
)


def x_axes(logs: Sequence[Log], networks: Sequence[Links]) -> list[Axis]:
    """Rounds, bits, gradients, measured and modelled seconds: those that a log has.

    Bits also with framing, where that is large.
    """
    modelled = [ModelledSeconds("seconds", True, links=links) for links in networks]
    large = [axis for axis in X if any(share(log, axis) > ABOVE for log in logs)]
    framed = [dataclasses.replace(axis, framing=True) for axis in large]
    return [axis for axis in (*X, *framed, *modelled) if any(_has(axis, log) for log in logs)]


def y_axes(logs: Sequence[Log]) -> list[Axis]:
    """Every column that is no cost, `FIRST` first; logarithmic where no value is below 0."""
    names = [name for log in logs for name in (*log.columns, "mean_grad_norm_sq")]
    found = []
    for name in dict.fromkeys(sorted(names, key=lambda name: (name != FIRST, name not in LABELS))):
        if grows(name):
            continue
        with_it = [log for log in logs if _has(Axis(name, log=False), log)]
        values = [log.column(name) for log in with_it]
        if values:
            lowest = np.nanmin([np.nanmin(own, initial=np.inf) for own in values])
            found.append(Axis(name, log=bool(lowest >= 0) and not name.endswith("accuracy")))
    return found


def key(axis: Axis) -> str:
    """A name of the axis that no other axis has."""
    if isinstance(axis, ModelledSeconds):
        return f"{axis.name}@{axis.links}"
    return axis.name + "+framing" * axis.framing


def described(axis: Axis, logs: Sequence[Log]) -> dict[str, Any]:
    """The axis for the page."""
    log = next(log for log in logs if _has(axis, log))
    return {"key": key(axis), "label": plain(axis.label(log)), "log": axis.log}


def plain(label: str) -> str:
    """The label of an axis without TeX."""
    for tex, text in PLAIN:
        label = label.replace(tex, text)
    return label


def _has(axis: Axis, log: Log) -> bool:
    try:
        return bool(log.rows and axis.values(log).size)
    except InputError:
        return False
