"""Claims of papers: four verdicts, the evidence for them, and rules for several data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from mpisim.analysis.remarks import WHY, oversubscribed
from mpisim.runs.log.reader import Log

CLEAR = 1.03  # ratios within this factor of 1 are a tie
ENOUGH = 5  # seeds from which the quartiles decide; of fewer all must agree
LARGEST = 1e300  # in place of infinity: one side spent nothing
LINE = 160  # characters; longer measurements are counted instead


class Verdict(StrEnum):
    """What the evidence says of a claim.

    A tie is a difference within the spread over seeds, or below 3%. A claim is not decided where a
    run ended too early, data is absent, or seconds mean nothing.
    """

    HOLDS = "holds"
    FAILS = "does not hold"
    TIE = "tie"
    UNDECIDED = "not decided"


def decided(holds: bool) -> Verdict:
    """``HOLDS`` or ``FAILS``, for what is a matter of yes or no."""
    return Verdict.HOLDS if holds else Verdict.FAILS


@dataclasses.dataclass(frozen=True)
class Evidence:
    """One measurement that bears on a claim: on a data set, say.

    Attributes
    ----------
    where : str
        What was measured on: ``mushrooms, K = 1``.
    measured : str
    verdict : Verdict
        Of this measurement alone.
    numbers : dict
        For programs: ratio and sign of every seed, costs, targets.
    counts : bool
        False for evidence that is reported, but outside of what the paper speaks of.
    """

    where: str
    measured: str
    verdict: Verdict
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    counts: bool = True


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper, and what the logs say of it.

    Attributes
    ----------
    claim : str
        What is checked, in a few words.
    quote : str
        What the paper says, word for word; empty where the claim is not a paper's.
    source : str
        Where it says so.
    measured : str
    verdict : Verdict
    evidence : list of Evidence
    """

    claim: str
    quote: str
    source: str
    measured: str
    verdict: Verdict
    evidence: list[Evidence] = dataclasses.field(default_factory=list)


def number(value: float) -> str:
    """A number with three digits: ``0.98``, ``103``, ``1.28M``, ``1.9e+13``."""
    if 1e6 <= abs(value) < 1e9:
        return f"{value / 1e6:.3g}M"
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def judge(ratios: Sequence[float]) -> Verdict:
    """Whether ratios over seeds are above 1.

    The median must be 3% from 1. With five seeds or more the quartiles must be on the same side,
    with fewer all ratios. Anything else is a tie.
    """
    values = np.minimum(ratios, LARGEST)
    median = float(np.median(values))
    spread = (25, 75) if len(ratios) >= ENOUGH else (0, 100)
    low, high = np.percentile(values, spread)
    if median >= CLEAR and low > 1:
        return Verdict.HOLDS
    if median <= 1 / CLEAR and high < 1:
        return Verdict.FAILS
    return Verdict.TIE


ONE = {Verdict.HOLDS: "holds", Verdict.FAILS: "does not hold", Verdict.TIE: "tie"}
MANY = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.TIE: "ties"}


def counts(claims: Sequence[Claim]) -> str:
    """``3 hold, 1 does not hold, 2 not decided``, or ``no claims``."""
    numbers = [(verdict, sum(c.verdict is verdict for c in claims)) for verdict in Verdict]
    parts = [
        f"{n} {(ONE if n == 1 else MANY).get(verdict, verdict)}" for verdict, n in numbers if n
    ]
    return ", ".join(parts) or "no claims"


# one claim from several measurements

Rule = Callable[[Sequence[Evidence]], Verdict]
# Of a statement on all of them: what is worst decides.
WORST = (Verdict.FAILS, Verdict.UNDECIDED, Verdict.TIE, Verdict.HOLDS)


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
    several = list(evidence)
    counted = [one for one in several if one.counts]
    return Claim(claim, quote, source, _measured(several), rule(counted), several)


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
    line = "; ".join(map(_line, evidence)) or "no data"
    if len(evidence) < 2 or len(line) <= LINE:
        return line
    counted = [one for one in evidence if one.counts]
    hold = [one for one in counted if one.verdict is Verdict.HOLDS]
    parts = [f"{len(hold)} of {len(counted)}"]
    medians = [m for one in counted if (m := one.numbers.get("median")) is not None]
    if medians:
        parts[0] += f", {number(min(medians))} to {number(max(medians))} times"
        if any(any(one.numbers.get("bounds", [])) for one in counted):
            parts[0] += " (bounds among them)"
    for verdict in WORST[:-1]:
        if judged := [one for one in counted if one.verdict is verdict]:
            parts.append(f"{verdict}: {', '.join(map(_short, judged))}")
    return "; ".join(parts)


def _line(one: Evidence) -> str:
    aside = "" if one.counts else " (aside)"
    return f"{one.where}{aside}: {one.measured}" if one.where else one.measured


def _short(one: Evidence) -> str:
    median = one.numbers.get("median")
    return one.where if median is None else f"{one.where} ({number(median)})"
