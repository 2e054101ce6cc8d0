"""What the PermK paper claims of the autoencoder, Figures 2 and 8 to 10."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log2
from typing import Any

from mpisim.analysis.claims import TENTHS, Claim, Evidence, Verdict, clear, decided, state
from mpisim.analysis.claims.judging import CLOSE
from mpisim.runs.log.reader import Log

from . import comparison
from .autoencoder import BITS, GAP, NAMES, SENT, Groups, Panel, tuned, unregularised
from .comparison import WITH_RANDK, WITH_TOPK, Saying, sayings

QUOTES = sayings("autoencoder")
ALIKE, APART = 0.9, 0.5  # p-hat from which shards count as alike, and up to which as different
TARGETS = (*TENTHS, 0.05, 0.02)  # of the start: long runs cross at the last two
SMALL = 1e-5  # A.7 says lambda in {0, 0.00001}


def fig2(logs: Sequence[Log]) -> Iterator[Claim]:
    """What Section 5.2 says of the three methods, by p-hat."""
    pairs = WITH_RANDK, WITH_TOPK, ("topk", "randk")
    against_randk, against_topk, others = (tuned(unregularised(logs), pair) for pair in pairs)
    yield _ahead(against_randk, against_randk, WITH_RANDK, QUOTES["all"])
    yield _ahead(against_topk, _alike(against_topk), WITH_TOPK, QUOTES["more_alike"])
    between = [panel for panel in against_topk if APART < panel[1] < ALIKE]
    same = [better(against_topk, panel, *WITH_TOPK, "around") for panel in between]
    yield state("PermK and TopK need almost the same bits", *QUOTES["between"], same)
    yield _ahead(against_topk, _unlike(against_topk), ("topk", "permk"), QUOTES["unlike"])
    for less, groups in (("topk", others), ("permk", against_randk)):
        gains = [better(groups, panel, less, "randk", "significantly") for panel in _unlike(groups)]
        text = f"{NAMES[less]} significantly outperforms RandK"
        yield state(text, *QUOTES["unlike"], gains)


def fig8(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike, for any lambda, and by more the larger lambda is."""
    pairs = {pair: tuned(logs, pair) for pair in (WITH_RANDK, WITH_TOPK)}
    for pair, groups in pairs.items():
        yield _ahead(groups, _alike(groups), pair, QUOTES["any"])
    for (_, more), groups in pairs.items():
        text = f"the larger λ, the fewer bits PermK needs compared to {NAMES[more]}"
        ps = sorted({panel[1] for panel in groups})
        by_lambda = [one for p in ps for one in _by_lambda(groups, p, more)]
        yield state(text, *QUOTES["larger"], by_lambda)


def fig9(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is better than RandK everywhere, and tolerates larger steps."""
    groups = tuned(logs, WITH_RANDK)
    yield _ahead(groups, groups, WITH_RANDK, QUOTES["in_all"])
    steps = [_steps(groups, panel, "randk", clear) for panel in groups]
    yield state("PermK tolerates larger steps than RandK, as in A.3", *QUOTES["reproduce"], steps)


def fig10(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike; TopK where they are not and lambda is small."""
    groups = tuned(logs, WITH_TOPK)
    larger = [_steps(groups, panel, "topk", clear) for panel in _alike(groups)]
    yield state("PermK tolerates larger steps than TopK", *QUOTES["tolerates"], larger)
    yield _ahead(groups, _alike(groups), WITH_TOPK, QUOTES["tolerates"])
    same = [_steps(groups, panel, "topk", _close) for panel in _unlike(groups)]
    yield state("PermK tolerates about the same steps as TopK", *QUOTES["same_steps"], same)
    small = [panel for panel in _unlike(groups) if panel[0] <= SMALL]
    yield _ahead(groups, small, ("topk", "permk"), QUOTES["same_steps"])


def _alike(groups: Groups) -> list[Panel]:
    return [panel for panel in groups if panel[1] >= ALIKE]


def _unlike(groups: Groups) -> list[Panel]:
    return [panel for panel in groups if panel[1] <= APART]


def _ahead(groups: Groups, panels: Iterable[Panel], pair: tuple[str, str], saying: Saying) -> Claim:
    """The claim that the first of the pair needs fewer bits, in every one of the panels."""
    return comparison.ahead(NAMES, pair, saying, [better(groups, panel, *pair) for panel in panels])


def better(groups: Groups, panel: Panel, less: str, more: str, word: str = "fewer") -> Evidence:
    """``less`` against ``more``, to tenths of f(x^0) - f(x*), each with its best step."""
    sides = [groups[panel].get(name) for name in (less, more)]
    how: dict[str, Any] = {"y": GAP, "targets": TARGETS, "word": word}
    return comparison.against(where(panel), sides, (BITS, SENT), **how)


def _by_lambda(groups: Groups, p: float, more: str) -> list[Evidence]:
    """What PermK saves for each lambda of Figure 8, at one target."""
    panels = [panel for panel in groups if panel[1] == p and panel[0] != SMALL]
    by_lambda = {f"λ = {panel[0]:g}": better(groups, panel, "permk", more) for panel in panels}
    more_saved = comparison.gains(f"p-hat = {p:g}", by_lambda)
    # the sentence before this one names p-hat of 0.9 and 1
    return [dataclasses.replace(one, counts=p >= ALIKE) for one in more_saved]


def where(panel: Panel) -> str:
    """A panel in words."""
    return f"λ = {panel[0]:g}, p-hat = {panel[1]:g}"


def _close(ratio: float) -> Verdict:
    """About the same steps, on a grid of powers of 2."""
    return decided(1 / CLOSE <= ratio <= CLOSE)


def _steps(groups: Groups, panel: Panel, other: str, rule: Callable[[float], Verdict]) -> Evidence:
    """The ``rule`` on the largest steps that PermK and ``other`` tolerate; `clear`: larger ones."""
    both = [groups[panel].get(name) for name in ("permk", other)]
    first, second = (max(side.steps) if side else 0.0 for side in both)
    if both[1] and second == both[1].tried[-1]:
        why = f"{NAMES[other]} works with the largest step that was run"
        return Evidence(where(panel), why, Verdict.UNDECIDED)
    largest = first, second
    return comparison.steps(where(panel), both, largest, rule, lambda step: f"2^{log2(step):g}")
