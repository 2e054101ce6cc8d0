"""Claims of papers, measured in logs, written as JSON and printed as tables."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis.curves import Axis
from mpisim.analysis.oversubscription import WHY, oversubscribed
from mpisim.core.atomic_file import write_json
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

SUFFIX = ".claims.json"
Y = "grad_norm_sq"
START = {Y: "|grad f(x^0)|^2", "distance_sq": "|x^0 - x*|^2", "loss": "f(x^0)"}
HARDLY = 0.9  # share of the value at the start above which a level means little
KEYS = ("claim", "source", "measured", "holds")
MARKS = {True: "yes", False: "NO ", None: "-- "}


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim and the evidence for it in logs.

    Attributes
    ----------
    claim : str
    source : str
        Where the paper makes the claim, or the theorem from which it follows.
    measured : str
        The evidence as text.
    holds : bool
        None where the evidence is not judged.
    details : dict
        More numbers, for programs.
    """

    claim: str
    source: str
    measured: str
    holds: bool | None
    details: dict[str, Any] = dataclasses.field(default_factory=dict)


def missing(claim: str, source: str, why: str) -> Claim:
    """A claim that does not hold because logs are missing, or have too little in them."""
    return Claim(claim, source, f"not measured: {why}", False)


def not_judged(claim: str, source: str) -> Claim:
    """A claim on the seconds of runs that had more ranks than cores."""
    return Claim(claim, source, f"not judged: {WHY}", None)


def judged(claim: Claim, logs: Iterable[Log]) -> Claim:
    """A claim on the seconds of ``logs``, or `not_judged` in its place."""
    return not_judged(claim.claim, claim.source) if oversubscribed(logs) else claim


def write(path: Path, claims: Sequence[Claim]) -> Path:
    """Write the claims as a JSON list; returns ``path``. `OutputError` where that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, [dataclasses.asdict(claim) for claim in claims])
    return path


def read(path: Path) -> list[Claim]:
    """Read the claims that `write` wrote; `InputError` for any other file."""
    try:
        claims = [Claim(**claim) for claim in json.loads(path.read_text(encoding="utf-8"))]
        if not all(isinstance(claim.holds, bool | None) for claim in claims):
            raise TypeError
        return claims
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError):
        raise InputError(
            f"{path}: not a list of claims with the keys {', '.join(KEYS)}; draw the figure again"
        ) from None


def table(name: str, claims: Sequence[Claim]) -> str:
    """The claims by source, below a line that counts those that hold."""
    lines = [f"{name}: {count(claims)}"]
    width = max((len(claim.claim) for claim in claims), default=0)
    for source in dict.fromkeys(claim.source for claim in claims):
        lines.append(f"\n{source}")
        for claim in claims:
            if claim.source == source:
                lines.append(f"  {MARKS[claim.holds]}  {claim.claim:<{width}}  {claim.measured}")
    return "\n".join(lines)


def count(claims: Sequence[Claim]) -> str:
    """How many claims hold, and how many are not judged, as text."""
    verdicts = [claim.holds for claim in claims]
    left = f", {n} not judged" if (n := verdicts.count(None)) else ""
    return f"{verdicts.count(True)} of {len(claims)} claims hold{left}"


def common_level(logs: Iterable[Log], y: str = Y) -> float:
    """The lowest level of column ``y`` that all runs reached: the largest of their minima."""
    return max(float(np.nanmin(log.column(y))) for log in logs)


def needed(log: Log, x: Axis, level: float, y: str = Y) -> float:
    """The value on axis ``x`` in the first logged row with ``y`` <= level; infinite without one.

    The running minimum of ``y`` reaches the level there, or up to one logged row before.
    """
    below = np.flatnonzero(log.column(y) <= level)
    return float(x.values(log)[below[0]]) if below.size else float("inf")


def seed(log: Log) -> int:
    """The seed of a run."""
    return int(log.attrs["seed"])


def fewer(
    claim: str, source: str, less: Sequence[Log], more: Sequence[Log], x: Axis, y: str = Y
) -> Claim:
    """The claim that ``less`` spend less on ``x`` than ``more`` to reach their common level.

    Runs are compared on each seed that both have. The claim holds if the median of the ratios is
    above 1 and the common level is below ``y`` at the start. It is not judged where ``x`` is
    seconds, and a run had more ranks than cores.
    """
    pairs = [(a, b) for a in less for b in more if seed(a) == seed(b)]
    if not pairs:
        return missing(claim, source, "no seed has both runs")
    runs = [log for pair in pairs for log in pair]
    if x.timed and oversubscribed(runs):
        return not_judged(claim, source)
    level, start = common_level(runs, y), max(float(log.column(y)[0]) for log in runs)
    details = {
        "level": level,
        "level_of_start": level / start,
        "seeds": [seed(a) for a, _ in pairs],
    }
    if level >= start:
        not_reached = missing(claim, source, f"a run never got below {START[y]}")
        return dataclasses.replace(not_reached, details=details)
    low = [needed(a, x, level, y) for a, _ in pairs]
    high = [needed(b, x, level, y) for _, b in pairs]
    ratios = np.array(high) / np.array(low)
    median = float(np.median(ratios))
    details |= {"less": low, "more": high, "ratios": ratios.tolist(), "median_ratio": median}
    measured = (
        f"{number(median)} times ({number(ratios.min())} to {number(ratios.max())}),"
        f" {_reached(level / start, y)}"
    )
    return Claim(claim, source, measured, median > 1, details)


def without_start(
    claim: Claim,
    pair: Sequence[Sequence[Log]],
    axes: Sequence[Axis],
    start: str,
    alone: str = "",
    y: str = Y,
) -> Claim:
    """A claim of `fewer` with the ratio that leaves ``start`` out, what is sent before round 0.

    ``axes`` are those of both sides without it. The text has the ratio where ``start`` turns the
    claim, and ``alone`` where ``start`` is all that the one side needed.
    """
    if "ratios" not in claim.details:
        return claim
    low, high = (
        np.median([needed(log, axis, claim.details["level"], y) for log in logs])
        for logs, axis in zip(pair, axes, strict=True)
    )
    ratio = float(high / low) if low > 0 else None
    told = alone if ratio is None else f"{number(ratio)} times" if ratio > 1 else ""
    measured = claim.measured
    if told and not claim.holds:
        measured += f"; without {start}: {told}"
    details = claim.details | {"ratio_without_start": ratio}
    return dataclasses.replace(claim, measured=measured, details=details)


def ordered(claim: str, source: str, groups: Mapping[str, Sequence[Log]], x: Axis) -> Claim:
    """The claim that each group needs more of ``x`` than the one before it to reach their level."""
    logs = [log for group in groups.values() for log in group]
    if x.timed and oversubscribed(logs):
        return not_judged(claim, source)
    level, start = common_level(logs), max(float(log.column(Y)[0]) for log in logs)
    medians = {
        name: float(np.median([needed(log, x, level) for log in group]))
        for name, group in groups.items()
    }
    values = list(medians.values())
    measured = ", ".join(f"{name}: {number(value)}" for name, value in medians.items())
    details = {"level": level, "level_of_start": level / start, "medians": medians}
    measured += f", {_reached(level / start)}"
    return Claim(claim, source, measured, bool(np.all(np.diff(values) > 0)), details)


def _reached(share: float, y: str = Y) -> str:
    """The common level as a share of ``y`` at the start, with a remark where it hardly moved."""
    text = f"{share:.3g}" if share < 0.99 else f"1 - {1 - share:.1e}"
    moved = "" if share < HARDLY else " (hardly moved)"
    return f"to {text} of {START[y]}{moved}"


def number(value: float) -> str:
    """A number with three digits: ``0.98``, ``103``, ``1.28M``."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
