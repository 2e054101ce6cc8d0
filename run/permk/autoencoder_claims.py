"""What the PermK paper claims of the autoencoder, Figures 2 and 8 to 10."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log2

from mpisim.analysis.claims import (
    TENTHS,
    Claim,
    Evidence,
    Verdict,
    at_one_target,
    compare,
    decided,
    growing,
    state,
)
from mpisim.runs.log.reader import Log

from . import comparison
from .autoencoder import BITS, GAP, NAMES, SENT, F, Panel, Runs, finest, runs, unregularised
from .comparison import Saying, quotes

QUOTES = quotes("autoencoder")
ALIKE, APART = 0.9, 0.5  # p-hat from which shards count as alike, and up to which as different
SAME = 1.25  # numbers of bits are "almost the same" within this factor
SIGNIFICANT = 1.5  # from this factor on a gain is "significant"
DEEPER = (0.05, 0.02)  # of the start: long runs cross there, and few short ones get there
SMALL = 1e-5  # A.7 says lambda in {0, 0.00001}


def fig2(logs: Sequence[Log]) -> Iterator[Claim]:
    """What Section 5.2 says of the three methods, by p-hat."""
    found = runs(unregularised(logs))
    between = [panel for panel in found if APART < panel[1] < ALIKE]
    yield _ahead(found, found, ("permk", "randk"), QUOTES["all"])
    yield _ahead(found, _alike(found), ("permk", "topk"), QUOTES["more_alike"])
    same = [_same(better(found, panel, "permk", "topk")) for panel in between]
    yield state("PermK and TopK need almost the same bits", *QUOTES["between"], same)
    yield _ahead(found, _unlike(found), ("topk", "permk"), QUOTES["unlike"])
    for less in ("topk", "permk"):
        found_gains = [
            _significant(better(found, panel, less, "randk")) for panel in _unlike(found)
        ]
        yield state(
            f"{NAMES[less]} significantly outperforms RandK", *QUOTES["unlike"], found_gains
        )


def fig8(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike, for any lambda, and by more the larger lambda is."""
    found = runs(logs)
    ps = sorted({panel[1] for panel in found})
    for more in ("randk", "topk"):
        yield _ahead(found, _alike(found), ("permk", more), QUOTES["any"])
    for more in ("randk", "topk"):
        text = f"the larger λ, the fewer bits PermK needs compared to {NAMES[more]}"
        yield state(text, *QUOTES["larger"], [_by_lambda(found, p, more) for p in ps])


def fig9(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is better than RandK everywhere, and tolerates larger steps."""
    found = runs(logs)
    yield _ahead(found, found, ("permk", "randk"), QUOTES["in_all"])
    steps = [larger_steps(found, panel, "randk") for panel in found]
    yield state("PermK tolerates larger steps than RandK, as in A.3", *QUOTES["reproduce"], steps)


def fig10(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike; TopK where they are not and lambda is small."""
    found = runs(logs)
    larger = [larger_steps(found, panel, "topk") for panel in _alike(found)]
    yield state("PermK tolerates larger steps than TopK", *QUOTES["tolerates"], larger)
    yield _ahead(found, _alike(found), ("permk", "topk"), QUOTES["tolerates"])
    same = [same_steps(found, panel, "topk") for panel in _unlike(found)]
    yield state("PermK tolerates about the same steps as TopK", *QUOTES["same_steps"], same)
    small = [panel for panel in _unlike(found) if panel[0] <= SMALL]
    yield _ahead(found, small, ("topk", "permk"), QUOTES["same_steps"])


def _alike(found: Runs) -> list[Panel]:
    return [panel for panel in found if panel[1] >= ALIKE]


def _unlike(found: Runs) -> list[Panel]:
    return [panel for panel in found if panel[1] <= APART]


def _ahead(found: Runs, panels: Iterable[Panel], pair: tuple[str, str], saying: Saying) -> Claim:
    """The claim that the first of the pair needs fewer bits, in every one of the panels."""
    return comparison.ahead(NAMES, pair, saying, [better(found, panel, *pair) for panel in panels])


def better(found: Runs, panel: Panel, less: str, more: str) -> Evidence:
    """``less`` against ``more``, to tenths of f(x^0) - f(x*), each with its best step.

    In the bits of the paper's figures, without indices; those that were sent stand beside it. Its
    numbers have deeper targets, which decide nothing.
    """
    own = finest(found, panel, less), finest(found, panel, more)
    one, sent = (compare(where(panel), *own, bits, GAP, TENTHS) for bits in (BITS, SENT))
    if "median" not in one.numbers:
        return one
    steps = [float(log.attrs["stepsize"]) for logs in own for log in logs]
    measured = one.measured
    if sent.measured != measured:
        measured += f" ({sent.measured} with the bits of indices)"
    deeper = compare(where(panel), *own, BITS, GAP, DEEPER).numbers.get("by_target", {})
    numbers = one.numbers | {"sent": sent.numbers, "steps": steps, "deeper": deeper}
    return dataclasses.replace(one, measured=measured, numbers=numbers)


def _same(one: Evidence) -> Evidence:
    """Whether both need about the same, at the deepest target that both reached."""
    _, ratios = at_one_target([one])
    verdict = decided(1 / SAME <= ratios[0] <= SAME) if ratios else Verdict.UNDECIDED
    return dataclasses.replace(one, verdict=verdict)


def _significant(one: Evidence) -> Evidence:
    """Whether the gain is significant; a bound below that leaves it open."""
    if one.verdict is not Verdict.HOLDS or one.numbers["median"] >= SIGNIFICANT:
        return one
    bound = any(one.numbers["bounds"])
    return dataclasses.replace(one, verdict=Verdict.UNDECIDED if bound else Verdict.FAILS)


def _by_lambda(found: Runs, p: float, more: str) -> Evidence:
    """What PermK saves for each lambda of Figure 8, at one target."""
    panels = [panel for panel in found if panel[1] == p and panel[0] != SMALL]
    own = {f"λ = {panel[0]:g}": better(found, panel, "permk", more) for panel in panels}
    return comparison.gains(f"p-hat = {p:g}", own)


def where(panel: Panel) -> str:
    """A panel in words."""
    return f"λ = {panel[0]:g}, p-hat = {panel[1]:g}"


def larger_steps(found: Runs, panel: Panel, other: str) -> Evidence:
    """Whether PermK tolerates larger steps than ``other``, by powers of two; equal is a tie."""
    return _steps(found, panel, other, lambda ratio: growing([1, ratio]))


def same_steps(found: Runs, panel: Panel, other: str) -> Evidence:
    """Whether PermK and ``other`` tolerate about the same steps, up to a factor of 2."""
    return _steps(found, panel, other, lambda ratio: decided(0.5 <= ratio <= 2))


def _steps(found: Runs, panel: Panel, other: str, rule: Callable[[float], Verdict]) -> Evidence:
    largest = _tolerated(found, panel, "permk"), _tolerated(found, panel, other)
    return comparison.steps(where(panel), largest, rule, lambda step: f"2^{log2(step):g}")


def _tolerated(found: Runs, panel: Panel, compressor: str) -> float:
    """The largest step whose run neither diverged nor ended above f(x^0); 0 without one."""
    steps = found.get(panel, {}).get(compressor, {})
    good = [step for step, log in steps.items() if log.column(F)[-1] < log.column(F)[0]]
    return max(good, default=0.0)
