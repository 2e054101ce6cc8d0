"""Statements of papers on several data sets: one claim, with the data sets as evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from mpisim.analysis.claims.compare import judge
from mpisim.analysis.claims.table import number
from mpisim.analysis.claims.verdict import Claim, Evidence, Verdict
from mpisim.analysis.remarks import WHY, oversubscribed
from mpisim.runs.log.reader import Log

Rule = Callable[[Sequence[Evidence]], Verdict]
# Of a statement on all of them: what is worst decides.
WORST = (Verdict.FAILS, Verdict.UNDECIDED, Verdict.TIE, Verdict.HOLDS)
LINE = 160  # characters; longer measurements are counted instead


def every(evidence: Sequence[Evidence]) -> Verdict:
    """The statement is about all: one that does not hold refutes it."""
    if not evidence:
        return Verdict.UNDECIDED
    return min((one.verdict for one in evidence), key=WORST.index)


def most(evidence: Sequence[Evidence]) -> Verdict:
    """The statement is about more than half."""
    verdicts = [one.verdict for one in evidence]
    hold, open_, ties = (verdicts.count(v) for v in (Verdict.HOLDS, Verdict.UNDECIDED, Verdict.TIE))
    if 2 * hold > len(verdicts):
        return Verdict.HOLDS
    if not verdicts or 2 * (hold + open_) > len(verdicts):
        return Verdict.UNDECIDED
    return Verdict.TIE if 2 * (hold + ties) > len(verdicts) else Verdict.FAILS


def larger_half(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Evidence by rising d, of which the larger half counts: "when d is larger"."""
    first = (len(evidence) + 1) // 2 if len(evidence) > 1 else 0
    return [dataclasses.replace(one, counts=i >= first) for i, one in enumerate(evidence)]


def state(
    claim: str, quote: str, source: str, evidence: Iterable[Evidence], rule: Rule = every
) -> Claim:
    """One claim; the ``rule`` judges the evidence that counts."""
    found = list(evidence)
    counted = [one for one in found if one.counts]
    return Claim(claim, quote, source, _measured(found), rule(counted), found)


def undecided(claim: str, quote: str, source: str, why: str) -> Claim:
    """A claim without what it takes to judge it."""
    return Claim(claim, quote, source, why, Verdict.UNDECIDED)


def on_seconds(claim: Claim, logs: Iterable[Log]) -> Claim:
    """A claim on the seconds of ``logs``, not decided where one had more ranks than cores."""
    return undecided(claim.claim, claim.quote, claim.source, WHY) if oversubscribed(logs) else claim


def growing(values: Sequence[float]) -> Verdict:
    """Whether each value is above the one before; a tie where one is about the same."""
    if len(values) < 2 or not all(value > 0 for value in values):
        return Verdict.UNDECIDED
    steps = [judge([b / a]) for a, b in pairwise(values)]
    return min(steps, key=WORST.index)


def _measured(evidence: Sequence[Evidence]) -> str:
    """All measurements where they fit a line; else counts, ratios, and what does not hold."""
    whole = "; ".join(_told(one) for one in evidence) or "no data"
    if len(evidence) < 2 or len(whole) <= LINE:
        return whole
    counted = [one for one in evidence if one.counts]
    hold = [one for one in counted if one.verdict is Verdict.HOLDS]
    parts = [f"{len(hold)} of {len(counted)}"]
    medians = [m for one in counted if (m := one.numbers.get("median")) is not None]
    if medians:
        parts[0] += f", {number(min(medians))} to {number(max(medians))} times"
        if any(any(one.numbers.get("bounds", [])) for one in counted):
            parts[0] += " (bounds among them)"
    for verdict in WORST[:-1]:
        own = [one for one in counted if one.verdict is verdict]
        if own:
            parts.append(f"{verdict}: {', '.join(map(_short, own))}")
    return "; ".join(parts)


def _told(one: Evidence) -> str:
    aside = "" if one.counts else " (aside)"
    return f"{one.where}{aside}: {one.measured}" if one.where else one.measured


def _short(one: Evidence) -> str:
    median = one.numbers.get("median")
    return one.where if median is None else f"{one.where} ({number(median)})"
