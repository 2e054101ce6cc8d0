"""Table 2: seconds of an iteration, and bits of a whole run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels
from mpisim.analysis.claims.comparing import pairs
from mpisim.analysis.claims.verdicts import Claim, Evidence, Verdict, decided, on_seconds, state
from mpisim.analysis.curves import about_seconds
from mpisim.comm.clock import COMPUTE, PHASES
from mpisim.runs.log.reader import Log

from .equal_cost import BITS, QUOTES, by_seed
from .images import of_method

SOURCE = "CD-Adam, Table 2"
COMPUTED = f"time_{PHASES[COMPUTE]}"
METHODS = ("amsgrad", "ef21-2way", "1bit-adam", "cd-adam")
SENT = "bits of a worker,\n{} rounds, both ways"
HEAD = ("Method", "s / round", "without gradients, ms", SENT, "by the formula")
GRADIENTS = (
    "the seconds of the gradients, with what workers subtract before they compress, are the median"
    " of all runs"
)


def rows(logs: list[Log]) -> list[tuple[str, float, float, float, float]]:
    """Method, seconds of a round, those without gradients, bits of a worker, and the formula's.

    All methods compute the same gradients, and some subtract a state from them. These seconds
    scatter more from run to run than the methods differ, so they are the median of all runs. The
    others are a method's median.
    """
    gradients = _gradients(logs)
    groups = of_method(logs, METHODS)
    rests = {method: statistics.median(map(_rest, group)) for method, group in groups.items()}
    return [(m, gradients + rest, rest, *_bits(groups[m][0])) for m, rest in rests.items()]


def _gradients(logs: list[Log]) -> float:
    """The median seconds of a round's gradients, of all runs."""
    return statistics.median(_each(log, COMPUTED) for log in logs if log.attrs["method"] in METHODS)


def _rest(log: Log) -> float:
    """Seconds of a round without gradients."""
    return _each(log, "seconds") - _each(log, COMPUTED)


def _each(log: Log, seconds: str) -> float:
    """Seconds of a round, of this column."""
    return float(log.column(seconds)[-1] / log.column("round")[-1])


def _bits(log: Log) -> tuple[float, float]:
    """Payload bits of a worker, both ways, and Table 2's formula."""
    d, rounds = int(log.attrs["dimension"]), int(log.column("round")[-1])
    method = str(log.attrs["method"])
    warm = int(log.attrs["method_warmup"]) if method == "1bit-adam" else 0
    each = {"amsgrad": 32 * d, "cd-adam": 32 + d, "1bit-adam": 32 + d}.get(method, 0)
    if method == "ef21-2way":
        each = 64 * max(1, int(float(log.config["compressor"]["k"]) * d))
    return float(BITS.values(log)[-1]), 2.0 * (32 * d * warm + each * (rounds - warm))


def draw(logs: list[Log]) -> Any:
    """A picture of the table."""
    cells = []
    for method, total, rest, *both in rows(logs):
        bits = [f"{one:.4g}" for one in both]
        cells.append((labels.method(method), f"{total:.3g}", f"{1000 * rest:.3g}", *bits))
    log = next(iter(of_method(logs, METHODS).values()))[0]
    figure, ((panel,),) = panels.grid(1, 1, (3 * panels.PANEL[0], panels.PANEL[1]))
    figure.set_layout_engine("none")
    panel.set_position((0.03, 0.15, 0.94, 0.8))
    head = [text.format(int(log.column("round")[-1])) for text in HEAD]
    panels.table(panel, [head, *cells], 2.1, cellLoc="center")
    trained = labels.training(log.config, log.n)
    panels.caption(figure, "; ".join(filter(None, (trained, GRADIENTS, about_seconds(logs)))), 3)
    return figure


def claims(logs: list[Log]) -> Iterator[Claim]:
    """The formulas of the bits, and which method takes more time."""
    sent = [_sent(method, bits, formula) for method, *_, bits, formula in rows(logs)]
    yield state("methods send the bits of the table, EF21 at most those", "", SOURCE, sent)
    runs = of_method(logs, METHODS)
    if {"cd-adam", "amsgrad", "ef21-2way"} <= runs.keys():
        cdadam, plain, ef21 = (runs[name] for name in ("cd-adam", "amsgrad", "ef21-2way"))
        one = _seconds(cdadam, plain, logs, "around", "the time of uncompressed (paper: 1.12)")
        text = "CD-Adam's overhead over uncompressed is small: around the same time"
        yield on_seconds(state(text, QUOTES["overhead_table2"], SOURCE, [one]), logs)
        one = _seconds(ef21, cdadam, logs, "fewer", "the time of CD-Adam (paper: 1.24)")
        text = "EF21 takes more time than CD-Adam"
        yield on_seconds(state(text, QUOTES["slower_table2"], SOURCE, [one]), logs)


def _seconds(one: list[Log], other: list[Log], logs: list[Log], word: str, text: str) -> Evidence:
    """The seconds of a round of ``one`` over those of ``other``, seed by seed.

    The gradients take the same in both: the median of all runs.
    """
    gradients, both = _gradients(logs), pairs(one, other)
    if not both:
        return Evidence("", "no seed has both runs", Verdict.UNDECIDED)
    spent = [[gradients + _rest(log) for log in pair] for pair in both]
    ratios = np.array([a / b for a, b in spent])
    return by_seed("", both, ratios, word, text)


def _sent(method: str, bits: float, formula: float) -> Evidence:
    share = bits / formula
    measured = f"{bits:.6g} and {formula:.6g}, {share:.6g} times"
    right = share <= 1 if method == "ef21-2way" else share == 1
    numbers = {"bits": bits, "formula": formula}
    return Evidence(labels.method(method), measured, decided(right), numbers)
