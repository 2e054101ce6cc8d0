"""Which runs a figure or a table has: those that meet conditions, and those of the best steps."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from mpisim.analysis.settings import cell
from mpisim.analysis.tune import ranked
from mpisim.core.errors import InputError, suggestion
from mpisim.core.terminal import report
from mpisim.runs.labels import flatten
from mpisim.runs.log.reader import Log

FORM = re.compile(r"\s*([\w.-]+)\s*(==|!=|<=|>=|<|>|=)\s*(.+?)\s*")
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    **{"==": operator.eq, "=": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
ATTRIBUTES = ("seed", "status", "ranks", "workers", "stepsize")  # of a log, beside TABLE.KEY


def selected(logs: Sequence[Log], where: Sequence[str] = (), best: str | None = None) -> list[Log]:
    """The logs that meet all conditions; with ``best`` only those of the best step of each setting.

    where : ``compressor.k == 10``, ``method.name != gd``, ``status == done``; a run that lacks the
        key does not meet it
    best : a rule of `mpisim.analysis.tune.CRITERIA`

    `InputError` for a condition that cannot be read, and where no log is left.
    """
    kept = list(logs)
    for text in where:
        kept = _meeting(text, kept)
    return kept if best is None else _best(kept, best)


def _meeting(text: str, logs: list[Log]) -> list[Log]:
    parts = FORM.fullmatch(text)
    if parts is None:
        raise InputError(
            f"--where: {text!r} is not allowed; it must be KEY SIGN VALUE, such as"
            f" 'compressor.k == 10', with a sign of {', '.join(SIGNS)}"
        )
    key, sign, wanted = parts.groups()
    values = [_values(log) for log in logs]
    known = sorted({name for one in values for name in one})
    if key not in known:
        raise InputError(
            f"--where: {text!r}: no run has {key}; {suggestion(key, known)}"
            f"known: {', '.join(known)}"
        )
    kept = [
        log
        for log, one in zip(logs, values, strict=True)
        if key in one and _meets(one[key], sign, wanted.strip("'\""))
    ]
    if not kept:
        there = ", ".join(sorted({str(one[key]) for one in values if key in one}))
        raise InputError(f"--where: {text!r}: no run meets it; {key} is {there}")
    return kept


def _values(log: Log) -> dict[str, Any]:
    attributes = {name: log.attrs[name] for name in ATTRIBUTES if name in log.attrs}
    return {key: cell(value) for key, value in flatten(log.config).items()} | attributes


def _meets(value: Any, sign: str, wanted: str) -> bool:
    """Numbers are compared as numbers; a number and a text are different, and in no order."""
    try:
        return SIGNS[sign](float(value), float(wanted))
    except ValueError:
        alike = isinstance(value, str) or sign in ("==", "=", "!=")
        return alike and SIGNS[sign](str(value), wanted)


def _best(logs: list[Log], criterion: str) -> list[Log]:
    kept: set[str] = set()
    for setting in ranked(logs, criterion):
        steps = setting.candidates
        chosen = setting.best or (steps[0] if len(steps) == 1 else None)
        if chosen is None:
            report(f"mpisim: --best: {setting.label}: no step is left, {steps[0].out}")
            continue
        kept |= set(chosen.logs)
    if not kept:
        raise InputError("--best: every step of every setting is out; try smaller steps")
    return [log for log in logs if str(log.path) in kept]
