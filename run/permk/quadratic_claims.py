"""What the PermK paper claims of quadratic tasks: Figures 1 and 3 to 7, Tables 4 and 6."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, pairwise

from mpisim.analysis.claims.verdicts import Claim, Evidence, Verdict, number, state
from mpisim.analysis.study import QUESTION, BestSteps
from mpisim.runs.log.reader import Log

from . import comparison, quadratic
from .comparison import WITH_RANDK, WITH_TOPK, Saying, gains, sayings
from .quadratic import BITS, METHODS, SENT, Groups, Task, tuned

QUOTES = sayings("quadratic")
HOMOGENEOUS = 0.2  # noise up to which the paper has L_± <= 0.21
SOME, MANY = 1000, 10000
APART = 1.5  # theory steps differ by a few percent: a difference within a power of 2 is a tie
SAME = 1.1  # predictions within this factor have no order


def best_steps(logs: list[Log]) -> Iterator[Claim]:
    """Figure 1: PermK against RandK, and against TopK where Section 5.1 says who is ahead."""
    groups = tuned(logs, WITH_RANDK)
    yield _ahead(groups, groups, WITH_RANDK, QUOTES["outperforms"])
    yield _more_by_noise(groups, QUOTES["outperforms"])
    groups = tuned(logs, WITH_TOPK)
    yield _ahead(groups, _homogeneous(groups), WITH_TOPK, QUOTES["worse"])
    yield _where_large(groups, QUOTES["worse"])


def under_pl(logs: list[Log]) -> Iterator[Claim]:
    """Figure 3: PermK against both others where A.2 says that it is ahead."""
    for pair in (WITH_RANDK, WITH_TOPK):
        groups = tuned(logs, pair)
        yield _ahead(groups, _homogeneous(groups), pair, QUOTES["under_pl"])


def against_randk(logs: list[Log], table: int = 4) -> Iterator[Claim]:
    """Figures 4 and 5: PermK is better, tolerates larger steps, and gains by n; Tables 4 and 6."""
    groups = tuned(logs, WITH_RANDK)
    yield _ahead(groups, groups, WITH_RANDK, QUOTES["behaves"])
    larger = [_larger_steps(task, methods) for task, methods in groups.items()]
    yield state("PermK tolerates larger steps than RandK", *QUOTES["behaves"], larger)
    each = (gains(f"noise {noise:g}", _of_noise(groups, noise)) for noise in _noises(groups))
    by_size = chain.from_iterable(each)
    yield state("PermK saves the more, the larger n", *QUOTES["increases"], by_size)
    yield _more_by_size(groups, table)


def table_4(logs: list[Log]) -> Iterator[Claim]:
    """With the theory steps: PermK gains by L_± and by n what Table 4 says."""
    groups = tuned(logs, WITH_RANDK)
    yield _more_by_noise(groups, QUESTION)
    yield _more_by_size(groups, 4)


def table_6(logs: list[Log]) -> Iterator[Claim]:
    """The same under PL, and that PermK is ahead where L_± = 0."""
    groups = tuned(logs, WITH_RANDK)
    identical = [task for task in groups if task[1] == 0]
    few, many = [t for t in identical if t[0] <= SOME], [t for t in identical if t[0] >= SOME]
    yield _ahead(groups, few, WITH_RANDK, _of_theory("strictly_few"))
    yield _ahead(groups, many, WITH_RANDK, _of_theory("strictly_many"))
    yield _more_by_noise(groups, QUESTION)
    yield _more_by_size(groups, 6)


def against_topk(logs: list[Log]) -> Iterator[Claim]:
    """Figures 6 and 7: PermK is faster where n > d, for any L_±; else TopK where L_± is large."""
    groups = tuned(logs, WITH_TOPK)
    alike = [task for task in _homogeneous(groups) if task[0] >= MANY]
    yield _ahead(groups, alike, WITH_TOPK, QUOTES["alike"])
    yield _ahead(groups, [t for t in groups if t[0] >= MANY], WITH_TOPK, QUOTES["faster"])
    yield _where_large(groups, QUOTES["large"])


def _of_theory(name: str) -> Saying:
    """A sentence on theorems: what the runs say is no claim of the paper."""
    quote, source = QUOTES[name]
    return "", f'{source}, of the theory: "{quote}"'


def _homogeneous(groups: Groups) -> list[Task]:
    return [(n, noise) for n, noise in groups if n >= SOME and noise <= HOMOGENEOUS]


def _ahead(groups: Groups, tasks: Iterable[Task], pair: tuple[str, str], saying: Saying) -> Claim:
    """The claim that the first of the pair needs fewer bits, on every one of the tasks."""
    evidence = [compared(groups, task, *pair) for task in tasks]
    return comparison.ahead(METHODS, pair, saying, evidence)


def _more_by_noise(groups: Groups, saying: Saying) -> Claim:
    sizes = dict.fromkeys(n for n, _ in groups)
    evidence = [one for n in sizes for one in _by_noise(groups, n)]
    return state("PermK saves the more, the smaller L_±", *saying, evidence)


def _more_by_size(groups: Groups, table: int) -> Claim:
    evidence = [one for noise in _noises(groups) for one in _by_size(groups, noise, table)]
    return state(f"PermK saves by n what Table {table} says, in its order", *QUESTION, evidence)


def _noises(groups: Groups) -> list[float]:
    return sorted({noise for _, noise in groups})


def _where_large(groups: Groups, saying: Saying) -> Claim:
    evidence = [_who(groups, task) for task in groups if task[1] > HOMOGENEOUS]
    less, more = METHODS["topk"], METHODS["permk"]
    text = f"L_± large: {less} needs fewer bits than {more} but for n = 10000"
    return state(text, *saying, evidence)


def _who(groups: Groups, task: Task) -> Evidence:
    """TopK is ahead of PermK, but for the most workers, where PermK is."""
    if task[0] < MANY:
        return compared(groups, task, "topk", "permk")
    one = compared(groups, task, "permk", "topk")
    return dataclasses.replace(one, where=f"{one.where} (PermK ahead)")


def compared(groups: Groups, task: Task, less: str, more: str) -> Evidence:
    """``less`` against ``more`` on a task, in bits, each with its best step."""
    sides = [groups[task].get(name) for name in (less, more)]
    return comparison.against(name_of(task), sides, (BITS, SENT))


def _by_noise(groups: Groups, n: int) -> list[Evidence]:
    """What PermK gains over RandK shrinks as L_± grows: Table 4 has L_± in place of L_+."""
    noises = sorted((noise for workers, noise in groups if workers == n), reverse=True)
    ends = dict.fromkeys((noises[0], noises[-1]))
    tasks = {f"noise {noise:g}": compared(groups, (n, noise), "permk", "randk") for noise in ends}
    return gains(f"n = {n}", tasks)


def _by_size(groups: Groups, noise: float, table: int) -> list[Evidence]:
    """Whether gains over RandK are in the order that the table predicts, at one target."""
    both = [n for n, s in groups if s == noise and groups[n, s].keys() >= set(WITH_RANDK)]
    predicted = {f"n = {n}": predicted_gain(groups, (n, noise), table) for n in both}
    rising = pairwise(sorted(predicted, key=lambda name: predicted[name]))
    pairs = [(a, b) for a, b in rising if predicted[b] > SAME * predicted[a]]
    notes = {name: f" ({number(gain)} by Table {table})" for name, gain in predicted.items()}
    return gains(f"noise {noise:g}", _of_noise(groups, noise), pairs, notes)


def _of_noise(groups: Groups, noise: float) -> dict[str, Evidence]:
    """PermK against RandK for each n."""
    sizes = sorted(n for n, other in groups if other == noise)
    return {f"n = {n}": compared(groups, (n, noise), "permk", "randk") for n in sizes}


def predicted_gain(groups: Groups, task: Task, table: int) -> float:
    """How many times fewer numbers PermK sends than RandK by Table 4 or 6, with constant 1."""
    run = groups[task]["permk"].logs[0]
    of = partial(quadratic.communication, run, table=table)
    return of("randk") / of("permk")


def _larger_steps(task: Task, methods: dict[str, BestSteps]) -> Evidence:
    """A tie within the resolution of the grid of steps; open where RandK's largest step works."""

    def rule(ratio: float) -> Verdict:
        if 1 / APART <= ratio <= APART:
            return Verdict.TIE
        return Verdict.HOLDS if ratio > 1 else Verdict.FAILS

    both = [methods.get(name) for name in WITH_RANDK]
    permk, randk = map(quadratic.tolerated, both)
    if quadratic.tolerates_all(both[1]):
        why = "RandK works with the largest step that was run"
        return Evidence(name_of(task), why, Verdict.UNDECIDED)
    return comparison.steps(name_of(task), both, (permk, randk), rule)


def name_of(task: Task) -> str:
    """``n = 10, noise 0.05``."""
    return f"n = {task[0]}, noise {task[1]:g}"
