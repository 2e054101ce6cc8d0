"""Claims of papers: four verdicts, the evidence for them, and rules for several data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any

from mpisim.analysis.curves import WHY, oversubscribed
from mpisim.runs.log.reader import Log

LINE = 160  # characters; longer measurements are counted instead


class Verdict(StrEnum):
    """What the evidence says of a claim.

    A comparison crosses if one side is ahead at some targets, and the other at others. A tie is a
    difference that is shown to be small; a claim is not met by it. Not decided is where seeds
    scatter, a run ended too early, data is absent, or seconds mean nothing.
    """

    HOLDS = "holds"
    FAILS = "does not hold"
    CROSSES = "crosses"
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
        For programs: ratios of every seed at every target, costs.
    counts : bool
        False for evidence that is reported, but outside of what the paper speaks of.
    word : str
        What is claimed of the ratios of a comparison, a key of `judging.WORDS`; else empty.
    """

    where: str
    measured: str
    verdict: Verdict
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    counts: bool = True
    word: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
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
    rule : str
        The name of the rule that judged the evidence.
    """

    claim: str
    quote: str
    source: str
    measured: str
    verdict: Verdict
    evidence: list[Evidence] = dataclasses.field(default_factory=list)
    rule: str = "every"

    @property
    def of_project(self) -> bool:
        """Whether it is this project's, and not a sentence of a paper."""
        return not self.quote

    def __repr__(self) -> str:
        return f"<Claim {self.verdict}: {self.claim}: {self.measured}>"


def number(value: float) -> str:
    """A number with three digits: ``0.98``, ``103``, ``1.28M``, ``1.9e+13``."""
    if 1e6 <= abs(value) < 1e9:
        return f"{value / 1e6:.3g}M"
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


ONE = {verdict: verdict.value for verdict in Verdict}
MANY = {
    **ONE,
    Verdict.HOLDS: "hold",
    Verdict.FAILS: "do not hold",
    Verdict.CROSSES: "cross",
    Verdict.TIE: "ties",
}


def counts(claims: Sequence[Claim]) -> str:
    """``3 hold, 1 does not hold; of this project 2 hold``, or ``no claims``."""
    papers, project = ([c for c in claims if c.of_project == mine] for mine in (False, True))
    texts = [_counts(papers), f"of this project {_counts(project)}" if project else ""]
    return "; ".join(filter(None, texts)) or "no claims"


def _counts(claims: Sequence[Claim]) -> str:
    numbers = [(verdict, sum(c.verdict is verdict for c in claims)) for verdict in Verdict]
    return ", ".join(f"{n} {(ONE if n == 1 else MANY)[verdict]}" for verdict, n in numbers if n)


# one claim from several measurements

Rule = Callable[[Sequence[Evidence]], Verdict]
# Of a statement on all of them: what is worst decides.
WORST = (Verdict.FAILS, Verdict.TIE, Verdict.CROSSES, Verdict.UNDECIDED, Verdict.HOLDS)


def every(evidence: Sequence[Evidence]) -> Verdict:
    """The statement is about all: one that does not hold, a tie too, refutes it."""
    if not evidence:
        return Verdict.UNDECIDED
    worst = min((one.verdict for one in evidence), key=WORST.index)
    return Verdict.FAILS if worst is Verdict.TIE else worst


def most(evidence: Sequence[Evidence]) -> Verdict:
    """The statement is about more than half."""
    verdicts = [one.verdict for one in evidence]
    hold, open_ = (verdicts.count(verdict) for verdict in (Verdict.HOLDS, Verdict.UNDECIDED))
    if 2 * hold > len(verdicts):
        return Verdict.HOLDS
    if not verdicts or 2 * (hold + open_) > len(verdicts):
        return Verdict.UNDECIDED
    return Verdict.FAILS


RULES: dict[str, Rule] = {rule.__name__: rule for rule in (every, most)}


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
    name = getattr(rule, "__name__", "")
    return Claim(claim, quote, source, _measured(several), rule(counted), several, name)


def undecided(claim: str, quote: str, source: str, why: str) -> Claim:
    """A claim without what it takes to judge it."""
    return Claim(claim, quote, source, why, Verdict.UNDECIDED)


def on_seconds(claim: Claim, logs: Iterable[Log]) -> Claim:
    """A claim on the seconds of ``logs``, not decided where one had more ranks than cores.

    What was measured stays as its evidence, but for comparisons.
    """
    if not oversubscribed(logs):
        return claim
    measured = [one for one in claim.evidence if not one.word]
    evidence = [dataclasses.replace(one, verdict=Verdict.UNDECIDED) for one in measured]
    return Claim(claim.claim, claim.quote, claim.source, WHY, Verdict.UNDECIDED, evidence, "")


def _measured(evidence: Sequence[Evidence]) -> str:
    """All measurements where they fit a line; else counts, ratios, and what does not hold."""
    line = "; ".join(map(_line, evidence)) or "no data"
    if len(evidence) < 2 or len(line) <= LINE:
        return line
    counted = [one for one in evidence if one.counts]
    hold = [one for one in counted if one.verdict is Verdict.HOLDS]
    parts = [f"{len(hold)} of {len(counted)}"]
    exact = [one for one in counted if not any(one.numbers.get("bounds", []))]
    medians = [m for one in exact if (m := one.numbers.get("median")) is not None]
    if medians:
        ends = dict.fromkeys(map(number, (min(medians), max(medians))))
        parts[0] += f", {' to '.join(ends)} times"
        if len(medians) < len(counted):
            parts[0] += f" where ratios are exact ({len(medians)})"
    for verdict in WORST[:-1]:
        if judged := [one for one in counted if one.verdict is verdict]:
            names = [_short(one) for one in judged]
            between = "; " if any("," in name for name in names) else ", "
            parts.append(f"{verdict}: {between.join(names)}")
    return "; ".join(parts)


def _line(one: Evidence) -> str:
    aside = "" if one.counts else " (aside)"
    measured = f"a tie, {one.measured}" if one.verdict is Verdict.TIE else one.measured
    return f"{one.where}{aside}: {measured}" if one.where else measured


def _short(one: Evidence) -> str:
    median = one.numbers.get("median")
    return one.where if median is None else f"{one.where} ({number(median)})"
