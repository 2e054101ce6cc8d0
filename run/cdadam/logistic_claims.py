"""What Section 7.1 and Appendix E.1 say of Figures 2 and 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpisim.analysis import labels
from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Reach,
    Verdict,
    clear,
    compare,
    decided,
    needed,
    state,
    value_at,
)
from mpisim.analysis.curves import ROUNDS, Axis
from mpisim.analysis.study import data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import BITS
from .logistic import NORM, Found, at_end, runs
from .quotes import QUOTES

FIG2 = "CD-Adam, Section 7.1 and Figure 2"
FIG4 = "CD-Adam, Appendix E.1 and Figure 4"
OWN, PLAIN, WORSE = "cd-adam", "amsgrad", ("ef-amsgrad", "naive-amsgrad")
SAME = 3.0  # two gradient norms are "roughly the same" within this factor


def fig2(logs: Iterable[Log]) -> Iterator[Claim]:
    """Four claims, each of all data sets."""
    found = runs(logs)
    yield _fewer_bits(found, QUOTES["fewer_2"], FIG2)
    yield _smaller(found, BITS, QUOTES["budgets_2"], FIG2)
    yield _same_end(found, QUOTES["final_2"], FIG2)
    stops = [_stops(found, data, method) for data in data_sets(found) for method in WORSE]
    text = "error feedback and naive compression stop falling, above CD-Adam"
    yield state(text, QUOTES["stops_2"], FIG2, stops)


def fig4(logs: Iterable[Log]) -> Iterator[Claim]:
    """Four claims, each of all data sets."""
    found = runs(logs)
    yield _smaller(found, BITS, QUOTES["better_4"], FIG4)
    yield _smaller(found, ROUNDS, QUOTES["better_4"], FIG4)
    yield _fewer_bits(found, QUOTES["similar_4"], FIG4)
    yield _same_end(found, QUOTES["similar_4"], FIG4)


def _fewer_bits(found: Found, quote: str, source: str) -> Claim:
    own, plain = ({d: [found[d, m]] for d, m in found if m == name} for name in (OWN, PLAIN))
    each = [
        _lacking(found, data, (PLAIN,)) or compare(data, own[data], plain[data], BITS, exact=True)
        for data in data_sets(found)
    ]
    return state("CD-Adam needs fewer bits than uncompressed AMSGrad", quote, source, each)


def _smaller(found: Found, x: Axis, quote: str, source: str) -> Claim:
    unit = "rounds" if x is ROUNDS else "bits"
    text = f"CD-Adam has a smaller gradient norm than error feedback and naive at equal {unit}"
    each = [_smaller_than(found, data, rival, x) for data in data_sets(found) for rival in WORSE]
    return state(text, quote, source, each)


def _same_end(found: Found, quote: str, source: str) -> Claim:
    text = "CD-Adam ends where uncompressed AMSGrad ends, at equal rounds"
    return state(text, quote, source, [_where_plain_ends(found, d) for d in data_sets(found)])


def _lacking(found: Found, data: str, methods: Iterable[str]) -> Evidence | None:
    """Evidence that runs are missing; None where all are there."""
    lacking = [labels.method(m) for m in (OWN, *methods) if (data, m) not in found]
    why = f"no complete run of {', '.join(lacking)}"
    return Evidence(data, why, Verdict.UNDECIDED) if lacking else None


def _smaller_than(found: Found, data: str, rival: str, x: Axis) -> Evidence:
    """The norms when both have spent what the cheaper run did."""
    if lacking := _lacking(found, data, (rival,)):
        return lacking
    pair = [found[data, method] for method in (OWN, rival)]
    budget = min(float(x.values(log)[-1]) for log in pair)
    ours, theirs = (value_at(log, NORM, x, budget) for log in pair)
    steps = [float(log.attrs["stepsize"]) for log in pair]
    return Evidence(
        f"{data}, {labels.method(rival)}",
        f"{ours:.2g} and {theirs:.2g}",
        clear(theirs / ours),
        {"median": theirs / ours, "budget": budget, "norms": [ours, theirs], "steps": steps},
    )


def _where_plain_ends(found: Found, data: str) -> Evidence:
    """Not decided where CD-Adam still gets lower when it ends, above where AMSGrad is.

    AMSGrad may be at the floor that its 32-bit values on the wire set; below it CD-Adam is better.
    """
    if lacking := _lacking(found, data, (PLAIN,)):
        return lacking
    own, plain = (at_end(found[data, method]) for method in (OWN, PLAIN))
    floor, falls = Reach(found[data, PLAIN], ROUNDS, NORM).floor, _gets_lower(found[data, OWN])
    ratio = own / plain
    verdict = decided(ratio <= SAME)
    measured = f"{own:.2g} and {plain:.2g}, {ratio:.2g} times (at most {SAME:g} holds)"
    if floor > 0:
        measured += f", AMSGrad at its floor of {floor:.2g}"
    if falls and verdict is Verdict.FAILS:
        verdict, measured = Verdict.UNDECIDED, f"{measured}, still falling"
    return Evidence(data, measured, verdict, {"ratio": ratio, "floor": floor, "falls": falls})


def _gets_lower(log: Log) -> bool:
    """Whether the least norm of the last quarter of the rows is clearly below all before."""
    values = NORM.values(log)
    before = values[: -(len(values) // 4)]
    return clear(before.min() / values.min()) is Verdict.HOLDS


def _stops(found: Found, data: str, method: str) -> Evidence:
    """Whether its norm has stopped to fall, at a floor that CD-Adam ends below.

    Not decided where it still falls and CD-Adam is not below: the runs are too short to tell.
    """
    if lacking := _lacking(found, data, (method,)):
        return lacking
    log, own = found[data, method], at_end(found[data, OWN])
    floor = _floor(log)
    level = floor or at_end(log)
    below = clear(level / own)
    numbers = {"median": level / own, "floor": floor, "own": own}
    if floor > 0:
        start = needed(log, ROUNDS, level, NORM)
        measured = f"{level:.2g} from round {start:g} on, CD-Adam {own:.2g}"
        numbers["round"] = start
    else:
        measured = f"{level:.2g} and still falling, CD-Adam {own:.2g}"
        below = Verdict.FAILS if below is Verdict.HOLDS else Verdict.UNDECIDED
    return Evidence(f"{data}, {labels.method(method)}", measured, below, numbers)


def _floor(log: Log) -> float:
    """The floor of `Reach`, or where two tenths of the rows are a tie; 0 where the norm falls."""
    end, rounds = at_end(log), ROUNDS.values(log)
    before = value_at(log, NORM, ROUNDS, 0.9 * float(rounds[-1]))
    flat = clear(before / end) is not Verdict.HOLDS
    return Reach(log, ROUNDS, NORM).floor or (end if flat else 0.0)
