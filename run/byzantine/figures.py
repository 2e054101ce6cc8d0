"""Byz-VR-MARINA, Byz-DASHA-PAGE: what a robust rule at the server saves from workers that lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpisim.analysis import style
from mpisim.analysis.claims import Claim, Evidence, Verdict, decided, state
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import QUESTION, Figure, Grid, Line, Lines, diverged, value_of
from mpisim.analysis.study.tuning import rises
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log

BITS = Axis("bits_up", log=False)
BLUE, ORANGE, GREEN, _, PURPLE = style.COLOURS[:5]
TARGET = 1e-2  # of |grad f(x^0)|^2

RFA = {"server.aggregate": "geometric-median"}
ROBUST = Line("geometric median, RandK", BLUE, RFA | {"compressor.name": "randk"})
DENSE = Line("geometric median, uncompressed", GREEN, RFA | {"compressor.name": "identity"})
MEAN = Line("mean, RandK", ORANGE, {"server.aggregate": None}, (0, (4, 1.5)))


def attack(log: Log) -> str:
    """The name of the attack, and the data."""
    return f"{value_of(log, 'problem.data')}, {value_of(log, 'attack.name')}"


LINES = Lines((ROBUST, DENSE, MEAN), BITS, attack)

BYZ = {"method.name": "byz-dasha-page"}
CM = {"server.aggregate": "median"}
VR = {"method.name": "vr-marina"}
DASHED = (0, (4, 1.5))
MARINA = Line("Byz-VR-MARINA, geometric median", BLUE, RFA | VR)
MARINA_CM = Line("Byz-VR-MARINA, median", PURPLE, CM | VR, DASHED)
DASHA = Line("Byz-DASHA-PAGE, median", GREEN, CM | BYZ)
DASHA_RFA = Line("Byz-DASHA-PAGE, geometric median", ORANGE, RFA | BYZ, DASHED)
METHODS = Lines((DASHA, MARINA, DASHA_RFA, MARINA_CM), BITS, attack)


def reaches(line: Line, logs: Sequence[Log]) -> Claim:
    """Whether some step of the line reaches the target with all seeds, for each attack.

    A step with which a seed diverged or ends rising does not. Where runs are missing, a step may.
    """
    evidence, seeds = [], {int(log.attrs["seed"]) for log in logs}
    for name in sorted({attack(log) for log in logs}):
        ran = [log for log in (*logs, *diverged(logs)) if line.has(log) and attack(log) == name]
        by_step = by_key(ran, lambda log: float(log.attrs["stepsize"])).values()
        complete = [same_step for same_step in by_step if len(same_step) == len(seeds)]
        best = min((max(map(_lowest, same_step)) for same_step in complete), default=1.0)
        verdict = decided(best <= TARGET)
        if verdict is Verdict.FAILS and not 0 < len(complete) == len(by_step):
            verdict = Verdict.UNDECIDED
        text = f"{best:.1e} of the start, of the best step's worst seed"
        evidence.append(Evidence(name, text, verdict, {"lowest": best}))
    text = f"{line.label}: |grad f|^2 falls to {TARGET:g} of its start, with one step for all seeds"
    return state(text, *QUESTION, evidence)


def _lowest(log: Log) -> float:
    """The smallest |grad f|^2, as a share of that at the start; 1 where it does not stay low."""
    y = log.column("grad_norm_sq")
    return 1.0 if log.attrs["status"] == "diverged" or rises(y) else float(y.min() / y[0])


def attacks(logs: list[Log]) -> Iterator[Claim]:
    """What each rule survives, and what compression saves."""
    yield reaches(ROBUST, logs)
    yield reaches(MEAN, logs)
    yield LINES.fewer(logs, ROBUST, DENSE)


def dasha(logs: list[Log]) -> Iterator[Claim]:
    """Which rule it survives with, and what it needs beside Byz-VR-MARINA."""
    yield reaches(DASHA, logs)
    yield reaches(DASHA_RFA, logs)
    yield reaches(MARINA_CM, logs)
    yield METHODS.fewer(logs, DASHA, MARINA)


LONG = ["run.stop.bits_up=2e5"]
GRID = Grid("attacks", {"quick": [], "paper": LONG})
A9A = ['sweep.problem.data=["a9a"]', "sweep.steps=[0.3125, 0.625, 1.25, 2.5, 5]"]  # 1 / L is 0.6
A9A += ["run.stop.bits_up=2e5", "sweep.folder=logs/byzantine-a9a"]
LARGER = Grid("attacks", {"quick": A9A})
TITLE = "four attacks, two rules at the server"
FIGURES = [
    Figure("attacks", TITLE, GRID, LINES.draw, attacks),
    Figure("a9a", f"{TITLE}, on a larger data set", LARGER, LINES.draw, attacks),
    Figure("dasha", "four attacks, two methods", Grid("dasha"), METHODS.draw, dasha),
]
