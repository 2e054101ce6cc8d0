"""What the PermK paper claims of MARINA and EF21 on quadratic tasks, Figures 1 and 3 to 7."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise

from mpisim.analysis.claims import Claim, fewer, missing, number
from mpisim.runs.log.reader import Log

from .quadratic import BITS, METHODS, Found, Steps, Task, tolerated, tuned

HOMOGENEOUS = 0.2  # noise up to which the paper has L_± <= 0.21
SOME, MANY = 1000, 10000
APART = 1.5  # steps a factor of 2 apart in theory's units; theory's own differ by a few percent
BEST = "PermK paper, Section 5.1 and Figure 1 (A.2 and Figure 3)"
RANDK = "PermK paper, A.3 and Figures 4 and 5"
TOPK = "PermK paper, A.4 and Figures 6 and 7"
NOWHERE = "no step of one got anywhere"


def best_steps(logs: list[Log]) -> Iterator[Claim]:
    """Figures 1 and 3: PermK against RandK, and TopK where Section 5.1 says who is ahead.

    PermK is ahead of TopK for n >= 1000 and L_± <= 0.21, and for n = 10,000; else TopK is ahead
    where L_± is large. The paper says nothing of n = 10 and small L_±.
    """
    found = tuned(logs)
    for task in found:
        yield compared(found, task, "permk", "randk", BEST)
    for n, noise in found:
        if n >= MANY or (n >= SOME and noise <= HOMOGENEOUS):
            yield compared(found, (n, noise), "permk", "topk", BEST)
        elif noise > HOMOGENEOUS:
            yield compared(found, (n, noise), "topk", "permk", BEST)
    # What PermK gains over RandK shrinks as L_± grows: Table 4 has L_± in place of L_+.
    for n in dict.fromkeys(n for n, _ in found):
        noises = [noise for own, noise in found if own == n]
        low, high = (gain(found, (n, noise)) for noise in (min(noises), max(noises)))
        text = f"n = {n}: PermK saves more against RandK at noise {min(noises):g}"
        measured = f"{number(low)} times, and {number(high)} times at noise {max(noises):g}"
        source = f"{BEST}: the differences reproduce Table 4"
        yield Claim(text, source, measured, low > high, {"gains": [low, high]})


def against_randk(logs: list[Log]) -> Iterator[Claim]:
    """Figures 4 and 5: PermK is better and tolerates larger steps, the more so the larger n is."""
    found = tuned(logs)
    for task in found:
        yield compared(found, task, "permk", "randk", RANDK)
    for task, own in found.items():
        yield _larger_steps(task, own)
    yield from growing(found)


def _larger_steps(task: Task, own: dict[str, Steps]) -> Claim:
    text = f"{name_of(task)}: PermK tolerates larger steps"
    if "permk" not in own or "randk" not in own:
        return missing(text, RANDK, NOWHERE)
    largest = {name: tolerated(own[name]) for name in ("permk", "randk")}
    best = {name: float(_best(own[name])[1].attrs["stepsize"]) for name in largest}
    measured = (
        f"largest {largest['permk']:.3g} and {largest['randk']:.3g},"
        f" best {best['permk']:.3g} and {best['randk']:.3g}"
    )
    holds = largest["permk"] > APART * largest["randk"]
    return Claim(text, RANDK, measured, holds, {"largest": largest, "best": best})


def growing(found: Found) -> Iterator[Claim]:
    """Claims that PermK's gain over RandK in bits grows with n, for each noise."""
    for noise in sorted({noise for _, noise in found}):
        gains = {n: gain(found, (n, noise)) for n, own in found if own == noise}
        values = list(gains.values())
        measured = ", ".join(f"n = {n}: {number(value)} times" for n, value in gains.items())
        holds = len(values) > 1 and all(a < b for a, b in pairwise(values))
        text = f"noise {noise:g}: the more workers, the more bits PermK saves against RandK"
        yield Claim(text, RANDK, measured, holds, {"gains": gains})


def against_topk(logs: list[Log]) -> Iterator[Claim]:
    """Figures 6 and 7: PermK is faster where n > d, for any L_±; else TopK where L_± is large."""
    found = tuned(logs)
    for n, noise in found:
        if n >= MANY:
            yield compared(found, (n, noise), "permk", "topk", TOPK)
        elif noise > HOMOGENEOUS:
            yield compared(found, (n, noise), "topk", "permk", TOPK)


def name_of(task: Task) -> str:
    """``n = 10, noise 0.05``."""
    return f"n = {task[0]}, noise {task[1]:g}"


def compared(found: Found, task: Task, less: str, more: str, source: str) -> Claim:
    """Claim that ``less`` needs fewer bits than ``more`` on a task, each with its best step."""
    text = f"{name_of(task)}: {METHODS[less]} needs fewer bits than {METHODS[more]}"
    own = found[task]
    if less not in own or more not in own:
        return missing(text, source, NOWHERE)
    (first, low), (second, high) = _best(own[less]), _best(own[more])
    claim = fewer(text, source, [low], [high], BITS)
    measured = f"{claim.measured}; steps ×{first:g}, ×{second:g}"
    details = claim.details | {less: first, more: second}
    return dataclasses.replace(claim, measured=measured, details=details)


def _best(steps: Steps) -> tuple[float, Log]:
    return next(iter(steps.items()))


def gain(found: Found, task: Task) -> float:
    """Bits of RandK over those of PermK to their common level; NaN without both runs."""
    claim = compared(found, task, "permk", "randk", "")
    return float(claim.details.get("median_ratio", float("nan")))
