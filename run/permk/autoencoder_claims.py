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
    number,
    state,
)
from mpisim.analysis.curves import Axis
from mpisim.runs.log.reader import Log

from .autoencoder import BITS, LOSS, NAMES, F, Panel, Runs, finest, runs, unregularised

FIG2 = "PermK paper, Section 5.2 and Figure 2"
FIG8 = "PermK paper, Appendix A.5 and Figure 8"
FIG9 = "PermK paper, Appendix A.6 and Figure 9"
FIG10 = "PermK paper, Appendix A.7 and Figure 10"
# What is said.
ALL = "In all experiments, PermK outperforms RandK"
MORE_ALIKE = (
    "in the more homogeneous regimes, when p-hat in {0.9, 1.0}, PermK converges faster than TopK"
)
BETWEEN = "When p-hat = 0.75, both compressors have almost the same performance"
UNLIKE = (
    "In the heterogenous regime, when p-hat in {0, 0.5}, TopK is faster than PermK, but they both"
    " significantly outperform RandK"
)
ANY = (
    "in homogeneous regimes, when p-hat in {0.9, 1.0}, PermK outperforms other compressors for any"
    " lambda"
)
LARGER = (
    "the larger the regularization parameter lambda, the faster PermK convergences compared to"
    " rivals"
)
IN_ALL = "in all experiments, PermK is better than RandK"
REPRODUCE = (
    "Practical experiments on MNIST fully reproduce dependencies from our theory and experiments"
    " with synthetic quadratic optimization tasks from Section 5.1"
)
TOLERATES = (
    "when p-hat in {0.9, 1.0}, PermK tolerates larger step sizes and converges faster than TopK"
)
SAME_STEPS = (
    "When p-hat in {0, 0.5}, both compressors approximately tolerate the same step sizes, but TopK"
    " has a better performance when lambda in {0, 0.00001}"
)
ALIKE, APART = 0.9, 0.5  # p-hat from which shards count as alike, and up to which as different
SAME = 1.25  # numbers of bits are "almost the same" within this factor
SIGNIFICANT = 1.5  # from this factor on a gain is "significant"
SMALL = 1e-4  # A.7 says lambda in {0, 0.00001}, of which the figures have 0
PAPER_BITS = Axis("paper_bits_up", log=False)


def fig2(logs: Sequence[Log]) -> Iterator[Claim]:
    """What Section 5.2 says of the three methods, by p-hat."""
    found = runs(unregularised(logs))
    alike = [panel for panel in found if panel[1] >= ALIKE]
    unlike = [panel for panel in found if panel[1] <= APART]
    between = [panel for panel in found if APART < panel[1] < ALIKE]
    yield _ahead(found, found, ("permk", "randk"), ALL, FIG2)
    yield _ahead(found, alike, ("permk", "topk"), MORE_ALIKE, FIG2)
    same = [_same(better(found, panel, "permk", "topk")) for panel in between]
    yield state("PermK and TopK need almost the same bits", BETWEEN, FIG2, same)
    yield _ahead(found, unlike, ("topk", "permk"), UNLIKE, FIG2)
    for less in ("topk", "permk"):
        gains = [_significant(better(found, panel, less, "randk")) for panel in unlike]
        yield state(f"{NAMES[less]} significantly outperforms RandK", UNLIKE, FIG2, gains)


def fig8(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike, for any lambda, and by more the larger lambda is."""
    found = runs(logs)
    alike = [panel for panel in found if panel[1] >= ALIKE]
    ps = sorted({panel[1] for panel in found})
    for more in ("randk", "topk"):
        yield _ahead(found, alike, ("permk", more), ANY, FIG8)
    for more in ("randk", "topk"):
        text = f"the larger λ, the fewer bits PermK needs compared to {NAMES[more]}"
        yield state(text, LARGER, FIG8, [_by_lambda(found, p, more) for p in ps])


def fig9(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is better than RandK everywhere, and tolerates larger steps."""
    found = runs(logs)
    yield _ahead(found, found, ("permk", "randk"), IN_ALL, FIG9)
    steps = [larger_steps(found, panel, "randk") for panel in found]
    yield state("PermK tolerates larger steps than RandK, as in A.3", REPRODUCE, FIG9, steps)


def fig10(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike; TopK where they are not and lambda is small."""
    found = runs(logs)
    alike = [panel for panel in found if panel[1] >= ALIKE]
    unlike = [panel for panel in found if panel[1] <= APART]
    larger = [larger_steps(found, panel, "topk") for panel in alike]
    yield state("PermK tolerates larger steps than TopK", TOLERATES, FIG10, larger)
    yield _ahead(found, alike, ("permk", "topk"), TOLERATES, FIG10)
    same = [same_steps(found, panel, "topk") for panel in unlike]
    yield state("PermK tolerates about the same steps as TopK", SAME_STEPS, FIG10, same)
    small = [panel for panel in unlike if panel[0] < SMALL]
    yield _ahead(found, small, ("topk", "permk"), SAME_STEPS, FIG10)


def _ahead(
    found: Runs, panels: Iterable[Panel], pair: tuple[str, str], quote: str, source: str
) -> Claim:
    """The claim that the first of the pair needs fewer bits, in every one of the panels."""
    less, more = pair
    text = f"{NAMES[less]} needs fewer bits than {NAMES[more]}"
    return state(text, quote, source, [better(found, panel, *pair) for panel in panels])


def better(found: Runs, panel: Panel, less: str, more: str) -> Evidence:
    """``less`` against ``more`` in bits, to tenths of f(x^0), each with its best step."""
    own = finest(found, panel, less), finest(found, panel, more)
    one, paper = (compare(where(panel), *own, bits, LOSS, TENTHS) for bits in (BITS, PAPER_BITS))
    if "median" not in one.numbers:
        return one
    steps = [float(log.attrs["stepsize"]) for logs in own for log in logs]
    measured = f"{one.measured} ({paper.measured} as the paper counts, without indices)"
    numbers = one.numbers | {"paper": paper.numbers, "steps": steps}
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
    """What PermK saves for each lambda, at one target."""
    panels = [panel for panel in found if panel[1] == p]
    target, ratios = at_one_target([better(found, panel, "permk", more) for panel in panels])
    if not ratios:
        return Evidence(f"p-hat = {p:g}", "no target that all reached", Verdict.UNDECIDED)
    own = {panel[0]: ratio for panel, ratio in zip(panels, ratios, strict=True)}
    said = ", ".join(f"λ = {at:g}: {number(ratio)} times" for at, ratio in own.items())
    numbers = {"ratios": own, "target": target}
    return Evidence(f"p-hat = {p:g}", f"{said}, to {target:g}", growing(ratios), numbers)


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
    first, second = (_tolerated(found, panel, name) for name in ("permk", other))
    if not first or not second:
        return Evidence(where(panel), "no run of one of them went well", Verdict.UNDECIDED)
    measured = f"2^{log2(first):g} and 2^{log2(second):g} are the largest that went well"
    return Evidence(where(panel), measured, rule(first / second), {"steps": [first, second]})


def _tolerated(found: Runs, panel: Panel, compressor: str) -> float:
    """The largest step whose run neither diverged nor ended above f(x^0); 0 without one."""
    steps = found.get(panel, {}).get(compressor, {})
    good = [step for step, log in steps.items() if log.column(F)[-1] < log.column(F)[0]]
    return max(good, default=0.0)
