"""What the PermK paper claims of the autoencoder, Figures 2 and 8 to 10."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2

import numpy as np

from mpisim.analysis.claims import Claim, fewer, missing, number
from mpisim.analysis.curves import Axis
from mpisim.runs.log.reader import Log

from .autoencoder import BITS, NAMES, F, Panel, Runs, finest, runs, unregularised

FIG2 = "PermK paper, Section 5.2 and Figure 2"
FIG8 = "PermK paper, Appendix A.5 and Figure 8"
FIG9 = "PermK paper, Appendix A.6 and Figure 9"
FIG10 = "PermK paper, Appendix A.7 and Figure 10"
ALIKE = 0.9  # p-hat from which shards count as alike
SAME = 1.25  # numbers of bits are "almost the same" within this factor
SIGNIFICANT = 1.5  # from this factor on a gain is "significant"
SMALL = 1e-4  # A.7 says lambda in {0, 0.00001}, of which the figures have 0
PAPER_BITS = Axis("paper_bits_up", log=False)


def fig2(logs: Sequence[Log]) -> Iterator[Claim]:
    """What Section 5.2 says of the three methods, by p-hat."""
    found = runs(unregularised(logs))
    for panel in found:
        yield better(found, panel, "permk", "randk", FIG2)
        if panel[1] >= ALIKE:
            yield better(found, panel, "permk", "topk", FIG2)
        elif panel[1] > 0.5:
            ratio = bits_ratio(found, panel, "permk", "topk")
            text = f"{where(panel)}: PermK and TopK need almost the same bits"
            measured = f"{number(ratio)} times (up to {SAME:g} either way holds)"
            yield Claim(text, FIG2, measured, 1 / SAME <= ratio <= SAME, {"ratio": ratio})
        else:
            yield better(found, panel, "topk", "permk", FIG2)
            for less in ("topk", "permk"):
                ratio = bits_ratio(found, panel, less, "randk")
                text = f"{where(panel)}: {NAMES[less]} significantly outperforms RandK"
                measured = f"{number(ratio)} times (from {SIGNIFICANT:g} on holds)"
                yield Claim(text, FIG2, measured, ratio >= SIGNIFICANT, {"ratio": ratio})


def fig8(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike, for any lambda, and by more the larger lambda is."""
    found = runs(logs)
    for panel in found:
        if panel[1] >= ALIKE:
            yield better(found, panel, "permk", "randk", FIG8)
            yield better(found, panel, "permk", "topk", FIG8)
    for p in dict.fromkeys(panel[1] for panel in found):
        own = [panel for panel in found if panel[1] == p]
        for more in ("randk", "topk"):
            text = f"p-hat = {p:g}: the larger λ, the fewer bits PermK needs compared to"
            ratios = {panel[0]: bits_ratio(found, panel, "permk", more) for panel in own}
            said = ", ".join(f"λ = {at:g}: {number(ratio)} times" for at, ratio in ratios.items())
            grows = len(ratios) > 1 and bool(np.all(np.diff(list(ratios.values())) > 0))
            yield Claim(f"{text} {NAMES[more]}", FIG8, said, grows, {"ratios": ratios})


def fig9(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is better than RandK everywhere, and tolerates larger steps."""
    found = runs(logs)
    for panel in found:
        yield better(found, panel, "permk", "randk", FIG9)
    for panel in found:
        yield steps_claim(found, panel, "randk", f"{FIG9}: as on quadratics (A.3)")


def fig10(logs: Sequence[Log]) -> Iterator[Claim]:
    """PermK is ahead where shards are alike; TopK where they are not and lambda is small."""
    found = runs(logs)
    for lambda_, p in found:
        if p >= ALIKE:
            yield steps_claim(found, (lambda_, p), "topk", FIG10)
            yield better(found, (lambda_, p), "permk", "topk", FIG10)
        elif p <= 0.5:
            yield steps_claim(found, (lambda_, p), "topk", FIG10, alike=True)
            if lambda_ < SMALL:
                yield better(found, (lambda_, p), "topk", "permk", FIG10)


def better(found: Runs, panel: Panel, less: str, more: str, source: str) -> Claim:
    """Claim that ``less`` needs fewer bits than ``more`` to the smallest f that both reached."""
    text = f"{where(panel)}: {NAMES[less]} needs fewer bits than {NAMES[more]}"
    own = finest(found, panel, less), finest(found, panel, more)
    claim = fewer(text, source, *own, BITS, F)
    if "ratios" not in claim.details:
        return claim
    paper = float(fewer(text, source, *own, PAPER_BITS, F).details["median_ratio"])
    steps = [float(log.attrs["stepsize"]) for logs in own for log in logs]
    level = float(claim.details["level"])
    measured = f"{number(claim.details['median_ratio'])} times, to f = {level:.4g}"
    measured += f" ({number(paper)} as the paper counts, without indices)"
    details = claim.details | {"paper_ratio": paper, "steps": steps}
    return Claim(text, source, measured, claim.holds, details)


def bits_ratio(found: Runs, panel: Panel, less: str, more: str) -> float:
    """The ratio that `better` measures; NaN where it measures none."""
    return float(better(found, panel, less, more, "").details.get("median_ratio", np.nan))


def where(panel: Panel) -> str:
    """A panel in words."""
    return f"λ = {panel[0]:g}, p-hat = {panel[1]:g}"


def steps_claim(
    found: Runs, panel: Panel, other: str, source: str, *, alike: bool = False
) -> Claim:
    """Claim that PermK tolerates larger steps than ``other``, or about the same (a factor of 2)."""
    what = "about the same steps as" if alike else "larger steps than"
    text = f"{where(panel)}: PermK tolerates {what} {NAMES[other]}"
    first, second = (_tolerated(found, panel, name) for name in ("permk", other))
    if not first or not second:
        return missing(text, source, "no run of one of them went well")
    measured = f"2^{log2(first):g} and 2^{log2(second):g} are the largest that went well"
    holds = 0.5 <= first / second <= 2 if alike else first > second
    return Claim(text, source, measured, holds, {"steps": [first, second]})


def _tolerated(found: Runs, panel: Panel, compressor: str) -> float:
    """The largest step whose run neither diverged nor ended above f(x^0); 0 without one."""
    steps = found.get(panel, {}).get(compressor, {})
    good = [step for step, log in steps.items() if log.column(F)[-1] < log.column(F)[0]]
    return max(good, default=0.0)
