"""Figure 1: MARINA against DIANA, VR-MARINA against VR-DIANA; RandK, non-convex loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims.comparing import DECADES, TENTHS, WIRE_BITS, LaterBits, Targets, compare
from mpisim.analysis.claims.judging import CLEAR, with_note
from mpisim.analysis.claims.verdicts import Claim, Evidence, decided, number, state
from mpisim.analysis.curves import EPOCHS, GRADIENT, ROUNDS, UNIFORM, Axis
from mpisim.analysis.run_groups import one_setting
from mpisim.analysis.study import data_sets, grouped, quotes
from mpisim.methods.estimators.batches import batch_size
from mpisim.runs.log.reader import Log

ORDER = ("mushrooms", "w8a", "a9a", "phishing", "madelon", "duke", "gisette")
# The paper's red, blue and green, in shades that every eye tells apart.
COLOURS = {1: style.COLOURS[1], 5: style.COLOURS[0], 10: style.COLOURS[2]}
DASHES = {"marina": "-", "vr-marina": "-", "diana": (0, (4, 1.5)), "vr-diana": (0, (4, 1.5))}
# Here d, or L, is so large that 40,000 rounds with the theory's step stay above 0.1 of the start.
# They are judged at higher levels, the deepest that was really reached.
SLOW = ("madelon", "duke", "gisette")
LEVELS = (0.99, 0.95, *TENTHS, *DECADES[1:])


@dataclasses.dataclass(frozen=True)
class ExpectedBits(Axis):
    """bits_up per worker if a share p of the rounds, no more and no less, had c_k = 1.

    Corollary 2.1 is about the expected cost. The coin alone makes runs differ by 10% to 100%.
    """

    def values(self, log: Log) -> np.ndarray:
        rounds, d = log.column("round"), int(log.attrs["dimension"])
        return WIRE_BITS * (d * (rounds > 0) + np.maximum(rounds - 1, 0) * values_of(log))


BITS = Axis("bits_up", log=False)
LATER_BITS = LaterBits("bits_up", log=False)  # MARINA's published code leaves g^0 out
EXPECTED_BITS = ExpectedBits("bits_up", log=False)
Row = tuple[str, str, Axis]  # less, more, cost
# The rows of panels, top to bottom. The paper's row 1 is the first two.
ROWS: tuple[Row, ...] = (
    ("marina", "diana", ROUNDS),
    ("marina", "diana", BITS),
    ("vr-marina", "vr-diana", EPOCHS),
    ("vr-marina", "vr-diana", BITS),
)
SECTION = "MARINA, Section 5.1 and Figure 1, row {}"
QUOTES = quotes(__file__)
THEOREMS = {"marina": "2.1", "vr-marina": "3.1"}
BOUND = "MARINA, Theorem {}, with the 2 of the PermK paper's Theorem 4, whose proof is the same"
COSTS = {ROUNDS: "rounds", EPOCHS: "sample gradients", BITS: "bits"}

Groups = dict[tuple, list[Log]]


def runs(logs: list[Log]) -> Groups:
    """{(data, K, method): logs}, data sets in the order of the figure."""

    def key(log: Log) -> tuple[str, int, str]:
        data, compressor, method = (log.config[t] for t in ("problem", "compressor", "method"))
        return str(data["data"]), int(compressor["k"]), str(method["name"])

    return grouped(logs, key, ORDER)


def draw(logs: list[Log]) -> Any:
    """A column for each data set; the paper's two rows take two rows of panels each."""
    groups = runs(logs)
    names, counts = data_sets(groups), sorted({k for _, k, _ in groups})
    versus = (f"{labels.method(less)} vs {labels.method(more)}" for less, more, _ in ROWS)

    def fill(panel: Any, row: Row, data: str) -> None:
        keys = [key for key in groups if key[0] == data and key[2] in row[:2]]
        # over the bits, small K are short: on top
        for _, k, method in sorted(keys, key=lambda key: -key[1]):
            look = COLOURS.get(k, "black"), DASHES[method]
            panels.curve(panel, groups[data, k, method], row[2], GRADIENT, *look)
        if keys:
            panels.dress(panel, row[2], GRADIENT, row[2].label(groups[keys[0]][0]))

    left = [f"{pair}\n{GRADIENT.label(logs[0])}" for pair in versus]
    entries = panels.colours_of((f"K = {k}", COLOURS.get(k, "black")) for k in counts)
    dashes = {f"(VR-){name}": DASHES[name.lower()] for name in ("MARINA", "DIANA")}
    entries += panels.dashes_of(dashes)
    return panels.matrix(ROWS, names, fill, labels=left, titles=names, entries=entries)


def claims(logs: list[Log]) -> Iterator[Claim]:
    """MARINA needs less than DIANA, VR-MARINA less than VR-DIANA; how K changes each cost; x^."""
    groups = runs(logs)
    for place, row in enumerate(ROWS):
        less, more, cost = row
        text = f"{labels.method(less)} needs fewer {COSTS[cost]} than {labels.method(more)}"
        source = SECTION.format(1 + place // 2)
        yield state(text, QUOTES[less], source, pairs(groups, row))
    for method, _, cost in ROWS:
        what = "smaller" if cost is BITS else "larger"
        unit = f"{'expected ' * (cost is BITS)}{COSTS[cost]}"
        text = f"{labels.method(method)} needs fewer {unit} the {what} K"
        source = f"MARINA, Theorem {THEOREMS[method]}: what its step size predicts for K"
        yield state(text, "", source, _by_count(groups, method, cost))
    yield from _at_the_drawn_iterate(groups)


def _at_the_drawn_iterate(groups: Groups) -> Iterator[Claim]:
    """The rows at x^, drawn uniformly from the iterates so far, and the theorems' bound on it."""
    for row in ROWS:
        less, more, cost = row
        text = f"{labels.method(less)} needs fewer {COSTS[cost]} than {labels.method(more)} at x^"
        source = f"MARINA, Theorem {THEOREMS[less]}"
        yield state(text, "", source, pairs(groups, row, UNIFORM))
    for method, theorem in THEOREMS.items():
        shares = []
        for (data, k, name), logs in groups.items():
            if name == method:
                share = float(share_of_bound(logs).max())
                text, within = f"at most {share:.3g} of it", decided(share <= 1)
                shares.append(Evidence(f"{data}, K = {k}", text, within, {"share": share}))
        text = f"E |grad f(x^)|^2 of {labels.method(method)} is below its bound"
        yield state(text, "", BOUND.format(theorem), shares)


def share_of_bound(logs: list[Log]) -> np.ndarray:
    """E |grad f(x^)|^2 after K = k iterations over 2 f(x^0) / (gamma K), 0 for k = 0; (rows,).

    The denominator bounds it by Theorems 2.1 and 3.1, whose O(.) hides the 2, with f* >= 0 left
    out. The mean over the logs, which differ in the seed, is for E.
    """
    rows = min(log.rows for log in logs)
    mean = np.mean([UNIFORM.values(log)[:rows] for log in one_setting(logs)], axis=0)
    bound = 2 * logs[0].column("loss")[0] / float(logs[0].attrs["stepsize"])
    return mean * logs[0].column("round")[:rows] / bound


def targets_of(data: str) -> Targets:
    """The levels at which a panel is judged."""
    return LEVELS if data in SLOW else DECADES


def pairs(groups: Groups, row: Row, y: Axis = GRADIENT) -> Iterator[Evidence]:
    """``less`` against ``more`` for each data set and K."""
    less, more, cost = row
    for data, k in dict.fromkeys((data, k) for data, k, _ in groups):
        where, targets = f"{data}, K = {k}", targets_of(data)
        pair = groups.get((data, k, less), []), groups.get((data, k, more), [])
        first = (LATER_BITS, BITS) if cost is BITS else None
        yield compare(where, *pair, cost, y, targets, first=first)


def _by_count(groups: Groups, method: str, cost: Axis) -> Iterator[Evidence]:
    """Each K against the next one, for each data set; of expected bits, the two ends.

    Where the theorem predicts less than a clear difference, the evidence is an aside.
    """
    counts = sorted({k for _, k, _ in groups}, reverse=cost is not BITS)
    steps = [(counts[0], counts[-1])] if cost is BITS else list(pairwise(counts))
    for data in data_sets(groups):
        for less, more in steps:
            pair = groups.get((data, less, method), []), groups.get((data, more, method), [])
            where, targets = f"{data}, K = {less} against {more}", targets_of(data)
            one = compare(where, *pair, EXPECTED_BITS if cost is BITS else cost, targets=targets)
            if all(pair):
                ratio = predicted(pair[1][0], cost) / predicted(pair[0][0], cost)
                one = with_note(one, f"by the theorem {number(ratio)}")
                if cost is BITS:
                    fell = compare(where, *pair, BITS, targets=targets)
                    one = with_note(one, f"as the coin fell {fell.measured}")
                one = dataclasses.replace(one, counts=ratio >= CLEAR)
            yield one


def predicted(log: Log, cost: Axis) -> float:
    """What a theorem predicts a run to cost, up to a factor that all K share.

    It is the expected cost of a round over the step size.
    """
    round_cost = 1.0
    if cost is BITS:
        round_cost = WIRE_BITS * values_of(log)
    elif cost is EPOCHS:
        p, m = float(log.attrs["method_p"]), int(log.workers["rows"][0])
        b = batch_size(log.config["method"]["batch"], m, "batch")
        round_cost = p * m + (1 - p) * 2 * b
    return round_cost / float(log.attrs["stepsize"])


def values_of(log: Log) -> float:
    """The expected number of values in a worker's message: p d + (1 - p) K."""
    p, d = float(log.attrs["method_p"]), int(log.attrs["dimension"])
    return p * d + (1 - p) * int(log.config["compressor"]["k"])
