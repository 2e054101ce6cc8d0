"""Two methods at equal cost: the axes of the figures, runs as evidence, and curves on their way.

Runs are compared on each seed that both methods have. Ratios of the seeds are judged by the rules
and the words of docs/how-to/studies.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import labels, style
from mpisim.analysis.claims.comparing import TENTHS, digests, pairs, seed, value_at
from mpisim.analysis.claims.judging import fewest, of_seeds
from mpisim.analysis.claims.verdicts import Claim, Evidence, Verdict, every, number, state
from mpisim.analysis.curves import EPOCHS, LOSS, NORM, Axis, Named, crossing
from mpisim.analysis.study import quotes
from mpisim.runs.log.reader import Log

BITS = Axis("bits_total", log=True)
ACCURACY = Named("train_accuracy", log=False, text="training accuracy")
TEST_LOSS = Named("test_loss", log=False, text="test loss")
TEST_NORM = Named("test_grad_norm_sq", log=True, text="test gradient norm", of=np.sqrt)
TEST_ACCURACY = Named("test_accuracy", log=False, text="test accuracy")
TEST_ERROR = Named("test_accuracy", log=False, text="test error", of=lambda share: 1 - share)
COSTS = {EPOCHS: "epochs", BITS: "bits"}
# Of four methods, as the figures draw them; CD-Adam is the first.
FOUR_LOOKS: tuple[tuple[str, Any], ...] = (
    (style.COLOURS[0], "-"),
    (style.COLOURS[1], (0, (4, 1.5))),
    (style.COLOURS[2], (0, (1, 1.2))),
    (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
)
# What the paper says, word for word, by name, and by the number of a figure.
QUOTES = quotes(__file__)

Runs = Sequence[Log]  # of a method, one for each seed
Pairs = Sequence[tuple[Log, Log]]  # of two methods, one for each seed
EF21, ONE_BIT, CDADAM = "ef21-2way", "1bit-adam", "cd-adam"
FIRST, MIDWAY = 0.25, 0.5  # "the early stage", "intermediately": these shares of what both spent
NORMS = NORM, TEST_NORM

Compare = Callable[[Runs, Runs], Iterator[Evidence]]


def by_seed(where: str, both: Pairs, ratios: np.ndarray, word: str, text: str = "") -> Evidence:
    """A ratio of each pair of runs, judged by the ``word``; ``text`` says what it is a ratio of."""
    least = fewest(*zip(*both, strict=True))
    one = of_seeds(where, ratios.tolist(), word, least, text)
    more = {"median": float(np.median(ratios)), "seeds": [seed(log) for log, _ in both]}
    return dataclasses.replace(one, numbers=one.numbers | more | {"runs": digests(both)})


def gone(method: str) -> Evidence:
    """What is told of a method without a run."""
    name = labels.method(method)
    return Evidence(name, f"no complete run of {name}", Verdict.UNDECIDED)


def times_better(first: np.ndarray, second: np.ndarray, y: Axis) -> np.ndarray:
    """How many times smaller our y is; for accuracies, how many times larger."""
    return first / second if y.name.endswith("accuracy") else second / first


def better(candidate: Runs, rival: Runs, y: Axis, x: Axis, word: str = "fewer") -> Evidence:
    """``candidate`` has the better y when both have spent the same on x: all of the cheaper run.

    Both have the same rounds; not decided otherwise. ``word``: by how much, as in `compare`
    """
    where = f"{y.label(candidate[0])}, {name(rival)}"
    both = pairs(candidate, rival)
    for pair in both:
        rounds = [int(log.column("round")[-1]) for log in pair]
        if rounds[0] != rounds[1]:
            return Evidence(where, f"{rounds[0]} and {rounds[1]} rounds", Verdict.UNDECIDED)
    if not both:
        return Evidence(where, "no seed has both runs", Verdict.UNDECIDED)
    budgets, ends = at_equal_cost(both, x, y)
    first, second = np.transpose(ends)
    if not np.isfinite(ends).all():
        why = "within the budget of one the other has row 0 alone"
        return Evidence(where, why, Verdict.UNDECIDED)
    one = by_seed(where, both, times_better(first, second, y), word)
    measured = f"{np.median(first):.3g} and {np.median(second):.3g}: {one.measured}"
    numbers = one.numbers | {"budgets": budgets, "own": first.tolist(), "rival": second.tolist()}
    return dataclasses.replace(one, measured=measured, numbers=numbers)


def at_equal_cost(both: Pairs, x: Axis, y: Axis) -> tuple[list[float], list[list[float]]]:
    """What the cheaper run of each pair spent on x, and y of both runs there."""
    budgets = [min(float(x.values(log)[-1]) for log in pair) for pair in both]
    each = zip(both, budgets, strict=True)
    return budgets, [[value_at(log, y, x, budget) for log in pair] for pair, budget in each]


def ahead(one: Runs, other: Runs, x: Axis, y: Axis, share: float, word: str = "fewer") -> Evidence:
    """``one`` has the better y at its last row within the ``share`` of what both spent on x.

    One row, known before the runs: the best of many would be ahead by chance.
    """
    where, both = y.label(one[0]), pairs(one, other)
    places, values = at_equal(both, x, y, share)
    if not places.size:
        return Evidence(where, "one has row 0 alone that early", Verdict.UNDECIDED)
    ends = values[:, :, -1]  # (seeds, 2)
    first, second = np.median(ends, axis=0)
    evidence = by_seed(where, both, times_better(ends[:, 0], ends[:, 1], y), word)
    at = f"at {number(float(places[-1]))} {COSTS[x]}"
    measured = f"{first:.3g} and {second:.3g} {at}: {evidence.measured}"
    return dataclasses.replace(evidence, measured=measured)


def at_equal(
    both: Sequence[tuple[Log, Log]], x: Axis, y: Axis, until: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where rows of the first run are, up to the share ``until``, and y there.

    No run has row 0 alone there. Shapes (places,) and (pairs, 2, places).
    """
    if not both:
        return np.empty(0), np.empty((0, 2, 0))
    first = x.values(both[0][0])
    begin = max(float(x.values(log)[:2][-1]) for pair in both for log in pair)
    least = min(float(x.values(log)[-1]) for pair in both for log in pair)
    places = first[(first > 0) & (first >= begin) & (first <= until * least)]
    values = [[np.interp(places, x.values(log), y.values(log)) for log in pair] for pair in both]
    return places, np.array(values)


def name(logs: Runs) -> str:
    """The paper's name for the method of runs."""
    return labels.method(str(logs[0].attrs["method"]))


def times_fewer(less: Runs, more: Runs, x: Axis, y: Axis, wanted: float) -> Evidence:
    """``more`` spends about ``wanted`` times as much of x to get y down, along the whole curve.

    Levels are the tenths of y at the start that all runs reached. Every one counts.
    """
    where, both = y.label(less[0]), pairs(less, more)
    start = max((float(y.values(log)[0]) for pair in both for log in pair), default=np.nan)
    ratios = {t: np.array([_ratio(a, b, x, y, t * start) for a, b in both]) for t in TENTHS}
    ratios = {t: each for t, each in ratios.items() if each.size and np.isfinite(each).all()}
    if not ratios:
        why = f"not both got to {TENTHS[0]:g} of the start"
        return Evidence(where, why, Verdict.UNDECIDED)
    levels = [around(f"{t * start:.3g}", both, each, wanted) for t, each in ratios.items()]
    held = [one for one in levels if one.verdict is Verdict.HOLDS]
    measured = ", ".join(f"{one.measured} to {one.where}" for one in (levels[0], levels[-1]))
    measured += f"; around {wanted:g} at {len(held)} of {len(levels)} levels"
    if 0 < len(held) < len(levels):
        measured += f", from {held[0].where} to {held[-1].where}"
    judged = zip(ratios, levels, strict=True)
    by_target = {f"{t:g}": one.numbers | {"verdict": one.verdict} for t, one in judged}
    numbers = {"start": start, "wanted": wanted, "by_target": by_target}
    return Evidence(where, measured, every(levels), numbers)


def all_rounds(less: Runs, more: Runs, x: Axis, wanted: float) -> Evidence:
    """How many times as much of x all rounds of ``more`` spend, told beside the curve."""
    both = pairs(less, more)
    if not both:
        return Evidence("all rounds", "no seed has both runs", Verdict.UNDECIDED, counts=False)
    ratios = np.array([float(x.values(b)[-1] / x.values(a)[-1]) for a, b in both])
    return dataclasses.replace(around("all rounds", both, ratios, wanted), counts=False)


def around(where: str, both: Pairs, ratios: np.ndarray, wanted: float) -> Evidence:
    """Whether the seeds' ratios are around ``wanted``; they are judged as its multiples."""
    judged = by_seed(where, both, ratios / wanted, "around")
    median = float(np.median(ratios))
    numbers = judged.numbers | {"median": median, "ratios": ratios.tolist()}
    text = f"{number(median)} times"
    return dataclasses.replace(judged, measured=text, numbers=numbers, word="")


def _ratio(less: Log, more: Log, x: Axis, y: Axis, level: float) -> float:
    """How many times as much ``more`` spends until y is at ``level``; NaN where one never is."""
    first, second = (crossing(log, x, y, level) for log in (less, more))
    return second / first if 0 < first < np.inf else np.nan


def claims_on_the_way(
    groups: Mapping[str, Runs], x: Axis, number: int, source: str
) -> Iterator[Claim]:
    """The statements of Figure ``number``, whose curves are over x."""
    cost = f"at equal {COSTS[x]}"

    def each(one: str, other: str, compare: Compare) -> Iterator[Evidence]:
        missing = [method for method in (one, other) if method not in groups]
        yield from map(gone, missing)
        if not missing:
            yield from compare(groups[one], groups[other])

    if quote := QUOTES["early"].get(str(number)):
        faster = x is EPOCHS  # 1-bit Adam is: its warm-up sends everything
        ys = (LOSS, ACCURACY) if faster else (LOSS,)
        ranks = (ONE_BIT, CDADAM) if faster else (CDADAM, ONE_BIT)
        alike = each(EF21, CDADAM, lambda a, b: (similar(a, b, x, y) for y in ys))
        word = "fewer" if faster else "much"  # "faster" and "much slower"
        apart = each(*ranks, lambda a, b: (ahead(a, b, x, y, FIRST, word) for y in ys))
        text = f"at first EF21 is where CD-Adam is, 1-bit Adam {'ahead' if faster else 'behind'}"
        yield state(f"{text}, {cost}", quote, source, [*alike, *apart])
    if quote := QUOTES["worse"].get(str(number)):
        two = LOSS, TEST_ACCURACY
        cdadam, ef21 = (
            each(one, ONE_BIT, lambda a, b: (_named(better(a, b, y, x, "much"), a) for y in two))
            for one in (CDADAM, EF21)
        )
        text = f"1-bit Adam is behind CD-Adam and EF21 {cost}"
        yield state(text, quote, source, [*cdadam, *ef21])
    if quote := QUOTES["midway"].get(str(number)):
        four = LOSS, TEST_LOSS, ACCURACY, TEST_ACCURACY
        on_the_way = each(EF21, CDADAM, lambda a, b: (ahead(a, b, x, y, MIDWAY) for y in four))
        text = f"midway EF21 is ahead of CD-Adam, {cost}"
        yield state(text, quote, source, on_the_way)
    if number == 9:
        # At equal epochs: CD-Adam has ended before 1-bit Adam has sent its first rows' bits.
        text = "1-bit Adam's gradient norm is lower at first, and grows later"
        both = each(ONE_BIT, CDADAM, lambda a, b: (_lower_then_up(a, b, y) for y in NORMS))
        yield state(text, QUOTES["diverges_9"], source, both)
    if number == 10:
        two = LOSS, ACCURACY
        training = each(ONE_BIT, CDADAM, lambda a, b: (better(a, b, y, x) for y in two))
        yield state(f"1-bit Adam is ahead in training {cost}", QUOTES["ahead_10"], source, training)


def _named(evidence: Evidence, runs: Runs) -> Evidence:
    """Evidence that also says which method is compared."""
    return dataclasses.replace(evidence, where=f"{name(runs)}, {evidence.where}")


def similar(one: Runs, other: Runs, x: Axis, y: Axis) -> Evidence:
    """At all rows of the early stage the two are around each other."""
    both = pairs(one, other)
    places, values = at_equal(both, x, y, FIRST)
    if not places.size:
        return Evidence(y.label(one[0]), "one has row 0 alone that early", Verdict.UNDECIDED)
    ratios = values[:, 0] / values[:, 1]  # (seeds, places)
    rows = [by_seed("", both, row, "around") for row in ratios.T]
    medians = [one.numbers["median"] for one in rows]
    low, high = min(medians), max(medians)
    measured = f"{low:.3g} to {high:.3g} times in the first {FIRST:.0%}"
    numbers = {"low": low, "high": high, "ratios": ratios.T.tolist()}
    return Evidence(y.label(one[0]), measured, every(rows), numbers)


def _lower_then_up(one: Runs, other: Runs, y: Axis) -> Evidence:
    """Below ``other`` at first, and at the end above both ``other`` and its own least."""
    first, both = ahead(one, other, EPOCHS, y, FIRST), pairs(one, other)
    if not both:
        return first
    least = [float(y.values(log).min()) for log, _ in both]
    end, rivals = ([float(y.values(pair[i])[-1]) for pair in both] for i in (0, 1))
    later = np.array([e / max(a, b) for e, a, b in zip(end, least, rivals, strict=True)])
    three = (float(np.median(values)) for values in (least, end, rivals))
    measured = first.measured + "; least {:.3g}, at the end {:.3g} against {:.3g}".format(*three)
    numbers = first.numbers | {"least": least, "end": end, "other": rivals}
    verdict = every([first, by_seed("", both, later, "fewer")])
    return Evidence(y.label(one[0]), measured, verdict, numbers)
