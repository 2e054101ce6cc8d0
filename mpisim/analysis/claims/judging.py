"""Rules that make a verdict of ratios: docs/how-to/studies.md, Verdicts.

A comparison is judged from its numbers alone, so that what is on record can be judged again.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from mpisim.analysis.claims.verdicts import RULES, Claim, Evidence, Verdict, number, state
from mpisim.runs.log.reader import Log

CLEAR = 1.03  # a ratio nearer to 1 is no difference
CLOSE = 1.25  # "around": a ratio within this factor of 1, both ways
WORDS = {"fewer": CLEAR, "significantly": 1.5, "much": 2.0, "around": CLOSE}
FEWEST = 5  # seeds; fewer decide nothing
FEWEST_LONG, LONG = 3, 60.0  # where a run takes so many seconds
LEVEL = 0.95  # of the interval of the mean log ratio
SECOND_LOOK = 12  # with ten seeds after five, one difference of nothing in so many is decided
LARGEST = 1e300  # in place of infinity: one side spent nothing
EDGE = "edge of the grid"
HEADLINE = ("target", "bounds", "median", "interval")  # of a comparison, in its numbers
CONTRARY = {Verdict.HOLDS: -1, Verdict.FAILS: 1}  # bounds of which a ratio may be on the other side


class Rules(NamedTuple):
    """What `judged` goes by; the defaults are the rules, all else is an alternative.

    target : ``all`` decided targets must agree, and the deepest exact one is the headline; or the
        ``first``, ``middle`` or ``deepest`` exact one alone
    clear : how far the median must be from 1
    costs : ``""``, or the name of other costs on record, a key of `OTHER_COSTS`
    """

    target: str = "all"
    clear: float = CLEAR
    costs: str = ""


THE_RULES = Rules()
ALTERNATIVES = {
    "the first target": Rules("first"),
    "the middle target": Rules("middle"),
    "the deepest target alone": Rules("deepest"),
    "5% from 1": Rules(clear=1.05),
    "10% from 1": Rules(clear=1.1),
}
OTHER_COSTS = {
    "row 0": "without row 0",
    "framing": "with framing",
    "indices": "with the bits of indices",
    "finals": "steps by final value",
}
ALTERNATIVES |= {text: Rules(costs=name) for name, text in OTHER_COSTS.items()}


def clear(ratio: float) -> Verdict:
    """Whether a number that draws nothing is above 1; a tie within 3%."""
    if ratio != ratio:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if ratio >= CLEAR else Verdict.FAILS if ratio <= 1 / CLEAR else Verdict.TIE


def fewest(*sides: Iterable[Log]) -> int:
    """How many seeds a comparison of these runs needs: the median run of a side says it.

    So a run that was paused does not change the number.
    """
    seconds = max(statistics.median(run.duration for run in side) for side in sides)
    return FEWEST_LONG if seconds >= LONG else FEWEST


@lru_cache(1 << 16)  # alternatives judge the same ratios
def interval(ratios: tuple[float, ...]) -> tuple[float, float]:
    """The 95% interval of the mean log ratio, as ratios; Student's t, one ratio for each seed."""
    logs = np.log(np.clip(ratios, 1 / LARGEST, LARGEST))
    if len(logs) < 2:
        return 0.0, float("inf")
    half = stdtrit(len(logs) - 1, (1 + LEVEL) / 2) * logs.std(ddof=1) / len(logs) ** 0.5
    most = log(LARGEST)
    return exp(max(logs.mean() - half, -most)), exp(min(logs.mean() + half, most))


def judge(
    ratios: Sequence[float], least: float = CLEAR, exact: bool = False, fewest: int = FEWEST
) -> Verdict:
    """Whether paired ratios, one for each seed, are above 1.

    The interval must be on one side of 1, and the median ``least`` from it. A tie is an interval
    near 1, which is not decided so; with fewer than ``fewest`` seeds all is open.
    ``exact``: the runs draw nothing, and one stands for all seeds.
    """
    ratios = tuple(ratios)
    if exact and len(ratios) == 1:
        ratios *= fewest
    if len(ratios) < fewest:
        return Verdict.UNDECIDED
    low, high = interval(ratios)
    median = min(statistics.median(ratios), LARGEST)
    if low > 1 and median >= least:
        return Verdict.HOLDS
    if high < 1 and median <= 1 / least:
        return Verdict.FAILS
    return Verdict.TIE if low >= 1 / CLOSE and high <= CLOSE else Verdict.UNDECIDED


def judge_word(
    ratios: tuple[float, ...], bound: bool, word: str, verdict: Verdict, fewest: int
) -> Verdict:
    """The verdict on a claim that says more than ``fewer``, of which ``verdict`` is the one."""
    if word == "around":
        low, high = interval(ratios)
        if bound or len(ratios) < fewest:
            return Verdict.UNDECIDED
        apart = high < 1 / CLOSE or low > CLOSE
        within = low >= 1 / CLOSE and high <= CLOSE
        return Verdict.HOLDS if within else Verdict.FAILS if apart else Verdict.UNDECIDED
    if verdict is Verdict.HOLDS and statistics.median(ratios) < WORDS[word]:
        return Verdict.UNDECIDED if bound else Verdict.FAILS if word != "fewer" else verdict
    return verdict


def _apart(ratios: tuple[float, ...]) -> float:
    """How far the median is from 1, in its logarithm."""
    return float(abs(np.log(np.clip(statistics.median(ratios), 1 / LARGEST, LARGEST))))


class Judged(NamedTuple):
    """A comparison by some rules.

    headline : the target of the ratio that is shown; None where nothing was reached
    crosses : the targets at which the lead passes to the other side
    """

    verdict: Verdict
    headline: str | None = None
    crosses: Sequence[str] = ()


def judged(numbers: Mapping[str, Any], word: str, rules: Rules = THE_RULES) -> Judged:
    """Judge the numbers of `compare`."""
    table = numbers["by_target"]
    if rules.costs:
        table = numbers.get("other_costs", {}).get(rules.costs, table)
    targets = sorted(table, key=float, reverse=True)
    exact = [t for t in targets if not any(table[t]["bounds"])]
    exactly, fewest = bool(numbers.get("exact")), numbers.get("fewest") or FEWEST
    verdicts = {}
    for t in targets:
        verdict = judge(ratios_of(table[t]), rules.clear, exactly, fewest)
        verdicts[t] = Verdict.UNDECIDED if CONTRARY.get(verdict) in table[t]["bounds"] else verdict
    decided = [t for t in targets if verdicts[t] in (Verdict.HOLDS, Verdict.FAILS)]
    if exact:
        place = {"first": 0, "middle": (len(exact) - 1) // 2}.get(rules.target, -1)
        headline = exact[place]
    elif decided:
        headline = max(decided, key=lambda t: _apart(ratios_of(table[t])))
    else:
        return Judged(Verdict.UNDECIDED)
    bound = headline not in exact
    ratios = ratios_of(table[headline])
    if exactly and len(ratios) == 1:
        ratios *= fewest
    verdict = judge_word(ratios, bound, word, verdicts[headline], fewest)
    crosses = [b for a, b in pairwise(decided) if verdicts[a] is not verdicts[b]]
    if crosses and rules.target == "all" and word != "around":
        verdict = Verdict.CROSSES
    if numbers.get("edge"):
        verdict = Verdict.UNDECIDED
    return Judged(verdict, headline, crosses)


def ratios_of(one: Mapping[str, Any]) -> tuple[float, ...]:
    """The ratios at a target; JSON has None for infinity."""
    return tuple(float("inf") if ratio is None else float(ratio) for ratio in one["ratios"])


def again(evidence: Evidence, rules: Rules = THE_RULES) -> Evidence:
    """The evidence by these rules; what is no comparison stays as it is."""
    if not evidence.word:
        return evidence
    numbers = evidence.numbers
    costs = "by_target" in numbers  # else of `of_seeds`, as at one target
    table = {} if costs else {"by_target": {"1": numbers | {"bounds": [0]}}}
    judgement = judged(numbers | table, evidence.word, rules)
    verdict = judgement.verdict
    if rules is not THE_RULES or not costs:
        return dataclasses.replace(evidence, verdict=verdict)
    headline = {key: value for key, value in numbers.items() if key not in HEADLINE}
    if judgement.headline is not None:
        one = numbers["by_target"][judgement.headline]
        ratios = ratios_of(one)
        headline |= {
            "target": float(judgement.headline),
            "bounds": one["bounds"],
            "median": finite(np.median(np.minimum(ratios, LARGEST))),
            "interval": [finite(end) for end in interval(ratios)],
        }
    text = summary(numbers, judgement, evidence.word)
    return dataclasses.replace(evidence, measured=text, verdict=verdict, numbers=headline)


def summary(numbers: Mapping[str, Any], judgement: Judged, word: str = "fewer") -> str:
    """``2.1 times (95%: 1.9 to 2.4, 5 seeds) to 0.01 of f(x^0); crosses at 0.001``."""
    table, headline, parts = numbers["by_target"], judgement.headline, []
    if headline is None:
        first = max(table, key=float, default=f"{numbers['first']:g}")
        why = f"no run of a pair got to {first} of {numbers['of']} within the other's budget"
        parts.append(f"{times(table[first])} to {first} of {numbers['of']}" if table else why)
    else:
        parts.append(f"{times(table[headline])} to {headline} of {numbers['of']}")
    deeper = [t for t in table if any(table[t]["bounds"]) and t != headline]
    if deeper:
        deepest = min(deeper, key=float)
        parts.append(f"{times(table[deepest])} to {deepest}")
    if numbers.get("edge"):
        parts[0] = f"{EDGE} ({numbers['edge']}): with these {parts[0]}"
    if judgement.crosses:
        parts.append(f"crosses at {', '.join(judgement.crosses)}")
    for costs in numbers.get("other_costs", {}):
        other = judged(numbers, word, Rules(costs=costs))
        if other.verdict is not judgement.verdict:
            parts.append(f"{OTHER_COSTS[costs]}: {other.verdict}")
    return "; ".join([*parts, *numbers.get("notes", [])])


def times(one: Mapping[str, Any]) -> str:
    """``2.1 times (95%: 1.9 to 2.4, 5 seeds)``; a bound has ``>`` or ``<``."""
    ratios = ratios_of(one)
    sides = frozenset(one["bounds"]) - {0}
    mark = {frozenset({1}): "> ", frozenset({-1}): "< "}.get(sides, "")
    text = f"{mark}{number(float(np.median(ratios)))} times"
    if len(ratios) == 1:
        return f"{text} (1 seed)"
    low, high = interval(ratios)
    return f"{text} (95%: {number(low)} to {number(high)}, {len(ratios)} seeds)"


def finite(value: Any) -> float | None:
    """The value for JSON, which has no infinity."""
    return float(value) if np.isfinite(value) and abs(value) < LARGEST else None


def undecided_at_edge(evidence: Evidence, edges: Sequence[str]) -> Evidence:
    """The evidence, not decided where one of ``edges`` says whose best step is at an edge."""
    names = ", ".join(filter(None, edges))
    if not names or not evidence.word:
        return evidence
    measured = f"{EDGE} ({names}): with these {evidence.measured}"
    numbers = evidence.numbers | {"edge": names}
    return again(dataclasses.replace(evidence, measured=measured, numbers=numbers))


def of_seeds(
    where: str, ratios: Sequence[float], word: str, fewest: int = 0, text: str = ""
) -> Evidence:
    """Evidence of one ratio for each seed, which no cost at a target gives."""
    measured = f"{times({'ratios': ratios, 'bounds': [0]})} {text}".rstrip()
    numbers = {"ratios": list(ratios), "fewest": fewest}
    return again(Evidence(where, measured, Verdict.UNDECIDED, numbers, word=word))


def with_costs(evidence: Evidence, name: str, other: Evidence) -> Evidence:
    """The evidence with the ratios of another comparison beside it, as one of `OTHER_COSTS`."""
    if not evidence.word or not other.word:
        return evidence
    others = evidence.numbers.get("other_costs", {}) | {name: other.numbers["by_target"]}
    return again(dataclasses.replace(evidence, numbers=evidence.numbers | {"other_costs": others}))


def with_note(evidence: Evidence, text: str, **numbers: Any) -> Evidence:
    """The evidence with a text beside what was measured, and more numbers."""
    more = evidence.numbers | numbers
    if evidence.word:
        more["notes"] = [*more.get("notes", []), text]
    measured = f"{evidence.measured}; {text}"
    return dataclasses.replace(evidence, measured=measured, numbers=more)


# a claim that is on record


def claim_again(claim: Claim, rules: Rules = THE_RULES) -> Claim:
    """The claim by these rules, from the numbers of its evidence."""
    rule = RULES.get(claim.rule)
    if not claim.evidence or rule is None:
        return claim
    evidence = [again(one, rules) for one in claim.evidence]
    return state(claim.claim, claim.quote, claim.source, evidence, rule)


def moved_by(claim: Claim) -> list[str] | None:
    """The alternatives that give another verdict; None for a claim without a comparison."""
    if not any(one.word for one in claim.evidence if one.counts):
        return None
    verdicts = {name: claim_again(claim, rules).verdict for name, rules in ALTERNATIVES.items()}
    return [name for name, verdict in verdicts.items() if verdict is not claim.verdict]


def comparisons(claims: Sequence[Claim]) -> list[Evidence]:
    """The comparisons that the claims rest on; those of the same ratios are one."""
    several = [one for claim in claims for one in claim.evidence if one.counts and one.word]
    ratios = [one.numbers.get("by_target") or one.numbers.get("ratios") for one in several]
    keys = [repr(each) if each else id(one) for one, each in zip(several, ratios, strict=True)]
    return list(dict(zip(keys, several, strict=True)).values())


def by_chance(several: Iterable[Evidence]) -> float:
    """How many comparisons chance alone would decide, if there were no difference anywhere.

    One in 20; one in `SECOND_LOOK` of those with ten seeds, which are taken where five do not
    decide; none of those with too few seeds, or whose runs draw nothing.
    """
    chances = []
    for one in several:
        tables = [one.numbers, *one.numbers.get("by_target", {}).values()]
        seeds = max(len(each.get("ratios", ())) for each in tables)
        if seeds >= (one.numbers.get("fewest") or FEWEST):
            chances.append(1 / SECOND_LOOK if seeds >= 2 * FEWEST else 1 - LEVEL)
    return sum(chances)


def firmness(claims: Sequence[Claim]) -> str:
    """``2 of 3 firm``: of the decided claims that rest on comparisons; empty without any."""
    decided = [claim for claim in claims if claim.verdict is not Verdict.UNDECIDED]
    tested = [moved for claim in decided if (moved := moved_by(claim)) is not None]
    return f"{sum(not moved for moved in tested)} of {len(tested)} firm" if tested else ""


def sensitivity(claims: Sequence[Claim]) -> dict[str, tuple[int, int]]:
    """{alternative: how many decided verdicts it moves, and how many open ones it decides}.

    Of other costs those that a comparison has.
    """
    others = {name for one in comparisons(claims) for name in one.numbers.get("other_costs", {})}
    tested = [name for name, rules in ALTERNATIVES.items() if rules.costs in ("", *others)]
    counts = {name: [0, 0] for name in tested}
    for claim in claims:
        for name in moved_by(claim) or ():
            counts[name][claim.verdict is Verdict.UNDECIDED] += 1
    return {name: (decided, open_) for name, (decided, open_) in counts.items()}
