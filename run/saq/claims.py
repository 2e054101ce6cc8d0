"""What the SAQ paper claims of Figures 4 to 8: pairs of schemes, compared on all data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mpisim.analysis.claims import verdicts
from mpisim.analysis.claims.comparing import DECADES, compare
from mpisim.analysis.claims.judging import CLEAR, with_note
from mpisim.analysis.claims.verdicts import Claim, Evidence, Rule, Verdict, decided, state
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import data_sets, quotes
from mpisim.runs.log.reader import Log

from .schemes import BYTES, COSTS, ERROR, MEGABYTE, RIVAL, ROUNDS, Groups, break_even, first, runs

TARGETS = DECADES[:3]  # 0.1, 0.01, 1e-3 of |x^0 - x*|^2
WORD = 32  # bits of a norm, as the paper charges it
QUOTES = quotes(__file__)


class Where(NamedTuple):
    """On which data sets the paper says something.

    Attributes
    ----------
    words : as the claim puts it
    rule : judges the evidence that counts
    which : marks what counts, from evidence by rising d
    """

    words: str
    rule: Rule
    which: Callable[[Sequence[Evidence]], Sequence[Evidence]] = list


EVERY = Where("on every data set", verdicts.every)
MOST = Where("on most data sets", verdicts.most)
LARGER = Where("when d is larger", verdicts.every, verdicts.larger_half)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Says that ``less`` needs fewer of each cost than ``more``.

    ``quote`` names what the paper says, and ``brings`` is what makes the difference, for the
    source. ``word`` says by how much, as in `compare`. What the paper says with "might" or "may" is
    ``hedged``: no result of it, so the claim is this project's.
    """

    less: str
    more: str
    quote: str = ""
    where: Where = EVERY
    brings: str = ""
    hedged: bool = False
    costs: dict[Axis, str] = dataclasses.field(default_factory=lambda: COSTS)
    word: str = "fewer"

    def source(self, place: str) -> str:
        """The place, with what makes the difference, and what the paper says of it with a hedge."""
        parts = [place, f"what {self.brings} bring" if self.brings else ""]
        text = ": ".join(filter(None, parts))
        return f'{text}; the paper hedges: "{QUOTES[self.quote]}"' if self.hedged else text


def claims(
    source: str, comparisons: Sequence[Comparison], timed: bool, logs: Sequence[Log]
) -> Iterator[Claim]:
    """A claim for each comparison and cost, with the data sets as evidence.

    ``timed``: whether runs were made for claims on seconds
    """
    for one in comparisons:
        quote = QUOTES[one.quote] if one.quote and not one.hedged else ""
        for cost, unit in one.costs.items():
            if cost.timed and not timed:
                continue
            groups, source_text = runs(logs, cost), one.source(source)
            fewer = "fewer" if one.word == "fewer" else f"{one.word} fewer"
            text = f"{one.less} needs {fewer} {unit} than {one.more} {one.where.words}"
            yield _claim(text, quote, source_text, one, cost, groups)
            if cost is BYTES and (equal := _equally_long(groups, one)):
                text = f"{text}, when both have the rounds of {one.less}"
                claim = _claim(text, "", source_text, one, cost, equal)
                yield dataclasses.replace(claim, evidence=list(map(_of_parts, claim.evidence)))


def _claim(
    text: str, quote: str, source: str, one: Comparison, cost: Axis, groups: Groups
) -> Claim:
    evidence = one.where.which([pair(groups, one, cost, name) for name in data_sets(groups)])
    return state(text, quote, source, evidence, one.where.rule)


def _equally_long(groups: Groups, one: Comparison) -> Groups:
    """The runs, with those of ``more`` cut to the rounds of ``less``; empty if none is longer."""
    cut: Groups = {}
    for (data, name), logs in groups.items():
        less = groups.get((data, one.less), [])
        if name == one.more and less:
            last = less[0].column("round")[-1]
            if any(log.column("round")[-1] > last for log in logs):
                cut[data, name] = [_until(log, last) for log in logs]
    return groups | cut if cut else {}


def _until(log: Log, last: int) -> Log:
    """The run up to the round ``last``."""
    rows = int(np.searchsorted(log.column("round"), last, side="right"))
    return dataclasses.replace(log, columns={n: c[:rows] for n, c in log.columns.items()})


def _of_parts(evidence: Evidence) -> Evidence:
    """Names no runs to repeat, as it is of parts of them."""
    numbers = {key: value for key, value in evidence.numbers.items() if key != "runs"}
    return dataclasses.replace(evidence, numbers=numbers)


def pair(groups: Groups, one: Comparison, cost: Axis, data: str) -> Evidence:
    """``less`` against ``more`` on a data set, to fixed shares of |x^0 - x*|^2."""
    logs = groups.get((data, one.less), []), groups.get((data, one.more), [])
    fewer = compare(_where(groups, data, cost), *logs, cost, ERROR, TARGETS, one.word)
    counted = not cost.timed and cost is not ROUNDS and one.more == RIVAL
    if not counted or fewer.verdict is Verdict.HOLDS:
        return fewer
    even = break_even(*logs, BYTES)  # told where ``less`` is not ahead
    if even is None:
        return fewer
    return with_note(fewer, str(even).replace("\n", ", "), break_even=even.numbers())


def norms(source: str, scheme: str, logs: Sequence[Log]) -> Claim:
    """B.2: what all norms but one add to a message; below 3% is nothing, as in a comparison."""
    groups = runs(logs)
    firsts = [(d, groups[d, scheme][0]) for d in data_sets(groups) if (d, scheme) in groups]
    evidence = verdicts.larger_half([_norms(_where(groups, data), log) for data, log in firsts])
    text = f"{scheme}: B norms are a negligible part of a message when d is larger"
    return state(text, QUOTES["norms"], source, evidence)


def _norms(where: str, log: Log) -> Evidence:
    sent = BYTES.values(log) * MEGABYTE
    message = float((sent[-1] - sent[0]) / log.column("round")[-1] / log.n)
    blocks = log.config["compressor"]["inner"].get("blocks")
    extra = WORD * ((blocks or min(log.n, int(log.attrs["dimension"]))) - 1)
    least = extra * CLEAR / (CLEAR - 1)
    measured = f"{extra} of {message:.0f} bits are norms beside the first"
    measured += f", {extra / message:.0%}; below 3% of the rest from {least:,.0f} bits on"
    negligible = decided(message < CLEAR * (message - extra))
    return Evidence(where, measured, negligible, {"message_bits": message, "norm_bits": extra})


def _where(groups: Groups, data: str, cost: Axis = ROUNDS) -> str:
    """With d; for seconds also n, as their runs may have fewer workers than the others."""
    log = first(groups, data)
    return f"{data} (d = {log.attrs['dimension']}" + f", n = {log.n}" * cost.timed + ")"
