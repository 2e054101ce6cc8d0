"""The rows of Tables 1 and 2 of the MARINA paper that apply to an experiment.

MARINA, VR-MARINA, PP-MARINA and GD have all constants (`rounds`), and p of the corollaries.
The experiment's method gives its row itself, with its p (`Estimator.guarantees`); EF21 adds one.
What the tables quote from other papers is an O(.) without constants: the constant is taken as 1,
and factors that the tables leave out are added where the units need them. With L = max L_i,
1/epsilon^2 means Delta_0 L / epsilon^2, 1/epsilon^4 its square and, in Table 2, 1/epsilon means
Delta_0 / epsilon, and each term has the factor log(Delta_0 / epsilon).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import ceil, inf, isnan, log, log1p, sqrt
from typing import Literal

import numpy as np

from mpisim.theory import stepsizes
from mpisim.theory.compression import FLOAT_BITS
from mpisim.theory.setting import MarinaTheorem, Setting, Step

Kind = Literal["bound", "order"]
ALL, SUM, ONLINE, PART = "(1)", "(1)+(5)", "(1)+(6)", "PP, (1)"


@dataclasses.dataclass(frozen=True)
class Case:
    """An experiment as the tables see it, in the papers' letters.

    rows : samples of each worker, (n,)
    delta : Delta_0 = f(x^0) - f_inf, infinite if no lower bound of f is available; epsilon : the
    accuracy, E|grad f(x^hat)|^2 <= epsilon^2 or, under PL, E f(x^K) - f(x*) <= epsilon.
    b (b'), big_b (b), first_b (samples of g^0), r : the experiment's, with which other methods'
    rows are computed, too; None if its method has none.
    """

    setting: Setting
    rows: np.ndarray
    delta: float
    epsilon: float
    b: int | None = None
    big_b: int | None = None
    first_b: int | None = None
    r: int | None = None

    @property
    def m(self) -> int:
        """The least number of samples of a worker, of which b' are a share."""
        return int(self.rows.min())

    @property
    def full(self) -> float:
        """The samples of a full gradient, in the mean over the workers."""
        return float(self.rows.mean())

    @property
    def log_ratio(self) -> float:
        """log(Delta_0 / epsilon), at least 0."""
        return max(0.0, log(self.delta / self.epsilon)) if self.delta > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class Cost:
    """Expected cost of one exchange for a worker: numbers sent and gradients of single samples."""

    floats: float
    calls: float

    def mixed(self, p: float, other: Cost) -> Cost:
        """This cost with probability p, else the other."""
        floats = p * self.floats + (1 - p) * other.floats
        return Cost(floats, p * self.calls + (1 - p) * other.calls)


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """A row of Table 1 or 2: rounds K, and a worker's expected bits and sample gradients in them.

    kind : "bound" with the theorem's constants, "order" for an O(.) with constant 1.
    """

    setup: str
    method: str
    rounds: float
    bits: float
    calls: float
    kind: Kind
    source: str


def guarantee(
    setup: str, method: str, rounds: float, costs: tuple[Cost, Cost], kind: Kind, source: str
) -> Guarantee:
    """A row from its rounds and the costs of the first and of each later exchange."""
    first, later = costs
    k = round_up(rounds)
    bits = FLOAT_BITS * (first.floats + (k - 1) * later.floats)
    return Guarantee(setup, method, k, bits, first.calls + (k - 1) * later.calls, kind, source)


def round_up(rounds: float) -> float:
    """The next whole number of rounds, at least 1."""
    return max(1.0, float(ceil(rounds))) if rounds < inf else inf


def rounds(case: Case, step: Step) -> float:
    """The least K with which ``step`` guarantees epsilon, not rounded.

    Smooth f: (1/K) sum_k E|grad f(x^k)|^2 <= 2 Delta_0 / (gamma K) (PermK paper, Theorem 4). PL:
    E f(x^K) - f(x*) <= (1 - gamma mu)^K Delta_0 (PermK paper, Theorem 5). The proofs are those of
    all rows with a bound; MARINA's theorems have an O(.) in the main text.
    """
    if case.setting.condition == "nonconvex":
        return 2 * case.delta / (step.gamma * case.epsilon**2)
    if case.delta <= case.epsilon or step.gamma * case.setting.mu >= 1:
        return 1.0
    return case.log_ratio / -log1p(-step.gamma * case.setting.mu)


def rows(case: Case) -> tuple[list[Guarantee], list[str]]:
    """The rows of Table 1 (under PL: 2) that apply, and why the others do not.

    `InputError` under PL if mu is not known.
    """
    gd = gradient_descent(case)
    if case.setting.omega is None:
        return [gd], ["the other rows: they need omega, and the compressor is biased"]
    if case.setting.correlated:
        reason = "the other rows: they are for workers that compress independently of each other"
        return [gd, marina(case)], [reason]
    table = [gd, *_quoted(case), marina(case)]
    if not isnan(case.setting.cal_L_rms):
        table += [vr_marina(case), *([] if case.big_b is None else [online(case)])]
    if case.r is not None:
        table.append(pp_marina(case))
    order = [ALL, SUM, ONLINE, PART]
    return sorted(table, key=lambda row: order.index(row.setup)), _missing(case)


def merged(table: Sequence[Guarantee], rows: Sequence[Guarantee]) -> list[Guarantee]:
    """The table with a method's rows instead of those of the same setup and name.

    Others follow the method's row before them, or the table.
    """
    out, i = list(table), len(table)
    for row in rows:
        names = [(one.setup, one.method) for one in out]
        name = row.setup, row.method
        i, replaced = (names.index(name), 1) if name in names else (i, 0)
        out[i : i + replaced] = [row]
        i += 1
    return out


def _missing(case: Case) -> list[str]:
    """Why rows are left out."""
    s, reasons = case.setting, []
    if isnan(s.cal_L_rms):
        reasons.append("VR-MARINA: the problem does not say how smooth single samples are")
    if case.big_b is None:
        reasons.append(f"{ONLINE}: workers have finite sums; online is method vr-marina-online")
    elif s.condition == "PL" and s.cal_L_max is None:
        reasons.append(f"{ONLINE} DIANA: Table 2 repeats the row of Table 1")
    if case.r is None:
        reasons.append(f"{PART}: all workers take part; in method pp-marina only some do")
    elif s.condition == "PL" and not _steph(case):
        reasons.append("FedSTEPH: r is below (1+omega) sqrt(L/mu) log(Delta_0/epsilon)")
    if s.cal_L_max is not None:
        reasons.append("DIANA: inside 'smooth' it is DIANA+, with SAQ's Theorem 2 (method diana)")
    if _omega(case) > 0:
        reasons.append("FedCOMGATE: what it assumes of Q does not hold (Table 1, note 1)")
    return reasons


def gradient_descent(case: Case) -> Guarantee:
    """GD: (1) without compression."""
    step = stepsizes.gradient_descent(case.setting)
    return _bound(case, ALL, "GD", step, 1, Cost(0, 0), "1 / L")


def marina(case: Case, p: float | None = None, theorem: MarinaTheorem = "marina") -> Guarantee:
    """MARINA: Theorem 2.1, or 2.2 under PL. A worker keeps its last gradient: its m calls a round.

    Here and below p is the corollary's unless given.
    """
    s = case.setting
    p = p or stepsizes.marina_probability(s.zeta, s.d)
    step = stepsizes.marina(s, p, theorem)
    return _bound(case, ALL, "MARINA", step, p, Cost(s.zeta, case.full))


def vr_marina(case: Case, p: float | None = None, noise_b: float | None = None) -> Guarantee:
    """VR-MARINA, finite sums: Theorem 3.1, derived under PL; b' = 1 unless the method has one.

    noise_b : b' in the step size, if it differs: infinite without sampling noise.
    """
    s, b = case.setting, case.b or 1
    p = p or stepsizes.vr_marina_probability(s.zeta, s.d, b, case.m)
    step = stepsizes.vr_marina(s, p, noise_b or b)
    name = f"VR-MARINA, b' = {b}"
    return _bound(case, SUM, name, step, p, Cost(s.zeta, 2 * b))


def online(case: Case, p: float | None = None) -> Guarantee:
    """VR-MARINA, online: Theorem 3.2, derived under PL, for b >= sigma^2 / (n epsilon^2)."""
    s, b, big_b = case.setting, case.b or 1, case.big_b or 1
    p = p or stepsizes.vr_marina_probability(s.zeta, s.d, b, big_b)
    step = stepsizes.vr_marina(s, p, b)
    costs = Cost(s.d, case.first_b or big_b), Cost(s.d, big_b).mixed(p, Cost(s.zeta, 2 * b))
    theorem, floor = "Theorem 3.2", "epsilon^2"
    if s.condition == "PL":
        theorem, floor = "derived here", "mu epsilon"
    name = f"VR-MARINA, b' = {b}, b = {big_b}"
    source = f"{theorem}, if b >= sigma^2 / (n {floor})"
    return guarantee(ONLINE, name, rounds(case, step), costs, "order", source)


def pp_marina(case: Case, p: float | None = None) -> Guarantee:
    """PP-MARINA: Theorem 4.1, derived under PL. A client drawn twice sends twice, computes once."""
    s, r = case.setting, case.r or case.setting.n
    p = p or stepsizes.pp_marina_probability(s.zeta, s.d, r, s.n)
    step = stepsizes.pp_marina(s, p, r)
    drawn = 1 - (1 - 1 / s.n) ** r
    compressed = Cost(r / s.n * s.zeta, drawn * 2 * case.full)
    return _bound(case, PART, f"PP-MARINA, r = {r}", step, p, compressed)


def ef21(case: Case) -> Guarantee:
    """EF21 that starts with the gradients: PermK paper, Theorem 6, or 7 under PL (G^0 = 0)."""
    s, step = case.setting, stepsizes.ef21(case.setting)
    source = step.source.split(":")[0] + ', start = "dense"'
    return _bound(case, ALL, "EF21", step, 0, Cost(s.zeta, case.full), source)


def derived(case: Case, name: str, step: Step, floats: float) -> Guarantee:
    """A method with a derived step, ``floats`` a round, and no error after its dense start."""
    return _bound(case, ALL, name, step, 0, Cost(floats, case.full))


def _bound(
    case: Case, setup: str, name: str, step: Step, p: float, compressed: Cost, source: str = ""
) -> Guarantee:
    """A row with its theorem's constants; exchanges after the first are dense with probability p.

    source : unless given, the theorem's number, of "MARINA, Theorem 3.1 (3.2 online): ...", or
        "derived here"
    """
    theorem = step.source.split(":")[0].split(" (")[0].removeprefix("MARINA, ")
    source = source or ("derived here" if theorem.startswith("derived") else theorem)
    dense = Cost(case.setting.d, case.full)
    costs = dense, dense.mixed(p, compressed)
    return guarantee(setup, name, rounds(case, step), costs, "bound", source)


def _omega(case: Case) -> float:
    assert case.setting.omega is not None
    return case.setting.omega


def _quoted(case: Case) -> list[Guarantee]:
    """What Table 1 quotes or, under PL, Table 2, which lacks two of the rows."""
    s, omega, b, m, zeta = case.setting, _omega(case), case.b or 1, case.m, case.setting.zeta
    n, r, table_1 = s.n, case.r or s.n, s.condition == "nonconvex"
    diana = 1 + (1 + omega) * sqrt(omega / n)
    vr = ((m / b) ** (2 / 3) + omega) * sqrt(1 + omega / n)
    if table_1:
        unit = case.delta * s.L_max / case.epsilon**2
        noisy = unit * diana + unit**2 * (1 + omega) / n
        absent = (1 + omega) * (n - r) / (r * (n - 1)) if n > r else 0.0
        steph = unit**2 * ((1 + omega / n) / r + absent)
        comgate_calls = unit**2 / n
    else:
        kappa = s.L_max / s.mu
        unit = kappa * case.log_ratio
        noise = unit * (1 + omega) / n
        noisy = unit * diana + noise * (kappa + case.delta / case.epsilon)
        steph = sqrt(kappa) * unit
        comgate_calls = noise * case.delta / case.epsilon

    def quoted(setup: str, name: str, k: float, first: Cost, *later: Cost) -> Guarantee:
        costs = first, *(later or [first])
        return guarantee(setup, name, k, costs, "order", "Table 1" if table_1 else "Table 2")

    full, one_sample = Cost(zeta, case.full), Cost(zeta, 1)
    table = [
        quoted(ALL, "DIANA", unit * diana, full),
        quoted(SUM, "DIANA", noisy, one_sample),
        # b' samples at x and at w, and all of them with probability b' / m
        quoted(SUM, f"VR-DIANA, b' = {b}", unit * vr, full, Cost(zeta, b * (2 + case.full / m))),
    ]
    if table_1:
        table.insert(1, quoted(ALL, "FedSTEPH, r = n", unit**2 * (1 + omega / n), one_sample))
        if case.big_b is not None:
            table.append(quoted(ONLINE, "DIANA", noisy, one_sample))
    if omega == 0:  # with G = 0: several stochastic gradients between two exchanges
        cost = Cost(zeta, comgate_calls / round_up(unit))
        table.insert(1, quoted(ALL, "FedCOMGATE", unit, cost))
        if case.big_b is not None:
            table.append(quoted(ONLINE, "FedCOMGATE", unit, cost))
    if case.r is not None and (table_1 or _steph(case)):
        table.append(quoted(PART, f"FedSTEPH, r = {r}", steph, Cost(r / n * zeta, r / n)))
    if s.cal_L_max is not None:  # omega, in the Euclidean norm, is not DIANA+'s
        table = [row for row in table if row.method != "DIANA"]
    return table


def _steph(case: Case) -> bool:
    """Whether r is large enough for FedSTEPH's row of Table 2 (note 4)."""
    s = case.setting
    return (case.r or s.n) >= (1 + _omega(case)) * sqrt(s.L_max / s.mu) * case.log_ratio
