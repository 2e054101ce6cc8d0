"""The rows of Tables 1 and 2 of the MARINA paper that apply to an experiment.

MARINA, VR-MARINA, PP-MARINA and GD (and EF21, where it is run) come with all constants of their
theorems. What the tables quote from other papers is an O(.) without constants: there constant 1 is
taken, and what the tables leave out is put where it must be for the units to agree. With
L = max L_i, 1/epsilon^2 means Delta_0 L / epsilon^2, 1/epsilon^4 its square and, in Table 2,
1/epsilon means Delta_0 / epsilon, and each term has the factor log(Delta_0 / epsilon).
"""

from __future__ import annotations

from math import inf, log, sqrt

from mpisim.theory import stepsizes
from mpisim.theory.complexity import Case, Cost, Row, rounds, row, whole

ALL, SUM, ONLINE, PART = "(1)", "(1)+(5)", "(1)+(6)", "PP, (1)"


def rows(case: Case) -> tuple[list[Row], list[str]]:
    """Table 1 or, under PL, Table 2: the rows that apply, and why others do not.

    `InputError` under PL where mu is not known.
    """
    first = [gradient_descent(case)]
    if case.setting.alpha is not None and case.method == "ef21":
        first.append(ef21(case))
    if case.setting.omega is None:
        return first, ["the other rows: they need omega, and the compressor is biased"]
    if case.setting.correlated:
        reason = "the other rows: they are for workers that compress independently of each other"
        return [*first, marina(case)], [reason]
    quoted = _quoted_1(case) if case.setting.condition == "nonconvex" else _quoted_2(case)
    found = [*first, *quoted, marina(case), vr_marina(case)]
    if case.big_b is not None:
        found.append(online(case))
    if case.r is not None:
        found.append(pp_marina(case))
    order = [ALL, SUM, ONLINE, PART]
    return sorted(found, key=lambda one: order.index(one.setup)), _missing(case)


def _missing(case: Case) -> list[str]:
    """Why rows are not there."""
    s, reasons = case.setting, []
    if case.big_b is None:
        reasons.append(f"{ONLINE}: workers have finite sums; online is method vr-marina-online")
    elif s.condition == "PL":
        reasons.append(f"{ONLINE} DIANA: Table 2 repeats the row of Table 1")
    if case.r is None:
        reasons.append(f"{PART}: all workers take part; in method pp-marina only some do")
    elif s.condition == "PL" and not _steph(case):
        reasons.append("FedSTEPH: r is below (1+omega) sqrt(L/mu) log(Delta_0/epsilon)")
    if _omega(case) > 0:
        reasons.append("FedCOMGATE: what it assumes of Q does not hold (Table 1, note 1)")
    return reasons


def gradient_descent(case: Case) -> Row:
    """GD: (1) without compression."""
    step = stepsizes.gradient_descent(case.setting)
    cost = Cost(case.setting.d, case.m)
    return row(ALL, "GD", rounds(case, step), (cost, cost), "bound", "1 / L")


def marina(case: Case) -> Row:
    """MARINA: Theorem 2.1, or 2.2 under PL. A worker keeps its last gradient: m calls a round."""
    s = case.setting
    p = _p(case, "marina", stepsizes.marina_probability(s.zeta, s.d))
    step = stepsizes.marina(s, p, case.theorem)
    dense = Cost(s.d, case.m)
    costs = dense, dense.mixed(p, Cost(s.zeta, case.m))
    return row(ALL, "MARINA", rounds(case, step), costs, "bound", _theorem(step.source))


def vr_marina(case: Case) -> Row:
    """VR-MARINA, finite sums: Theorem 3.1, or D.2 under PL; b' = 1 unless the method has one."""
    s, b = case.setting, case.b or 1
    p = _p(case, "vr-marina", stepsizes.vr_marina_probability(s.zeta, s.d, b, case.m))
    step = stepsizes.vr_marina(s, p, inf if case.whole else b)
    dense = Cost(s.d, case.m)
    costs = dense, dense.mixed(p, Cost(s.zeta, 2 * b))
    source = _theorem(step.source)
    return row(SUM, f"VR-MARINA, b' = {b}", rounds(case, step), costs, "bound", source)


def online(case: Case) -> Row:
    """VR-MARINA, online: Theorem 3.2, or D.4 under PL, for b >= sigma^2 / (n epsilon^2)."""
    s, b, big_b = case.setting, case.b or 1, case.big_b or 1
    p = _p(case, "vr-marina-online", stepsizes.vr_marina_probability(s.zeta, s.d, b, big_b))
    step = stepsizes.vr_marina(s, p, b)
    dense = Cost(s.d, big_b)
    costs = dense, dense.mixed(p, Cost(s.zeta, 2 * b))
    theorem, floor = "Theorem 3.2", "epsilon^2"
    if s.condition == "PL":
        theorem, floor = "Theorem D.4", "mu epsilon"
    name = f"VR-MARINA, b' = {b}, b = {big_b}"
    source = f"{theorem}, if b >= sigma^2 / (n {floor})"
    return row(ONLINE, name, rounds(case, step), costs, "order", source)


def pp_marina(case: Case) -> Row:
    """PP-MARINA: Theorem 4.1, or E.2 under PL. A client drawn twice sends once."""
    s, r = case.setting, case.r or case.setting.n
    p = _p(case, "pp-marina", stepsizes.pp_marina_probability(s.zeta, s.d, r, s.n))
    step = stepsizes.pp_marina(s, p, r)
    drawn = 1 - (1 - 1 / s.n) ** r
    dense = Cost(s.d, case.m)
    costs = dense, dense.mixed(p, Cost(drawn * s.zeta, drawn * 2 * case.m))
    source = _theorem(step.source)
    return row(PART, f"PP-MARINA, r = {r}", rounds(case, step), costs, "bound", source)


def ef21(case: Case) -> Row:
    """EF21 that starts with the gradients: PermK paper, Theorem 6, or 7 under PL (G^0 = 0)."""
    s = case.setting
    costs = Cost(s.d, case.m), Cost(s.zeta, case.m)
    step = stepsizes.ef21(s)
    source = step.source.split(":")[0] + ', start = "dense"'
    return row(ALL, "EF21", rounds(case, step), costs, "bound", source)


def _p(case: Case, method: str, theory: float) -> float:
    """The experiment's own p in its own method's row, the corollary's elsewhere."""
    return case.p if case.method == method and case.p is not None else theory


def _theorem(source: str) -> str:
    """The theorem's number alone, of "MARINA, Theorem 3.1 (3.2 online): ..."."""
    return source.split(":")[0].split(" (")[0].removeprefix("MARINA, ")


def _omega(case: Case) -> float:
    assert case.setting.omega is not None
    return case.setting.omega


def _factors(case: Case) -> tuple[float, float]:
    """1 + (1+omega) sqrt(omega/n) and (M^(2/3) + omega) sqrt(1 + omega/n), M = m / b'."""
    omega, n = _omega(case), case.setting.n
    power = (case.m / (case.b or 1)) ** (2 / 3)
    return 1 + (1 + omega) * sqrt(omega / n), (power + omega) * sqrt(1 + omega / n)


def _quoted_1(case: Case) -> list[Row]:
    """What Table 1 quotes: with unit = Delta_0 L / epsilon^2."""
    omega, n, r = _omega(case), case.setting.n, case.r
    unit = case.delta * case.setting.L_max / case.epsilon**2
    diana, vr = _factors(case)
    noisy = unit * diana + unit**2 * (1 + omega) / n
    found = [
        _diana(case, ALL, unit * diana, "Table 1"),
        _stochastic(case, ALL, "FedSTEPH, r = n", unit**2 * (1 + omega / n), "Table 1"),
        _stochastic(case, SUM, "DIANA", noisy, "Table 1"),
        _vr_diana(case, unit * vr, "Table 1"),
    ]
    if omega == 0:
        found.insert(1, _comgate(case, unit, unit**2 / n, "Table 1"))
    if case.big_b is not None:
        found.append(_stochastic(case, ONLINE, "DIANA", noisy, "Table 1"))
    if r is not None:
        absent = (1 + omega) * (n - r) / (r * (n - 1)) if n > r else 0.0
        k = unit**2 * ((1 + omega / n) / r + absent)
        found.append(_stochastic(case, PART, f"FedSTEPH, r = {r}", k, "Table 1", r / n))
    return found


def _quoted_2(case: Case) -> list[Row]:
    """What Table 2 quotes: with unit = (L / mu) log(Delta_0 / epsilon)."""
    s, omega, r = case.setting, _omega(case), case.r
    kappa, unit = s.L_max / s.mu, s.L_max / s.mu * _log(case)
    diana, vr = _factors(case)
    noise = unit * (1 + omega) / s.n
    noisy = unit * diana + noise * (kappa + case.delta / case.epsilon)
    found = [
        _diana(case, ALL, unit * diana, "Table 2"),
        _stochastic(case, SUM, "DIANA", noisy, "Table 2"),
        _vr_diana(case, unit * vr, "Table 2"),
    ]
    if omega == 0:
        found.insert(1, _comgate(case, unit, noise * case.delta / case.epsilon, "Table 2"))
    if r is not None and _steph(case):
        k = sqrt(kappa) * unit
        found.append(_stochastic(case, PART, f"FedSTEPH, r = {r}", k, "Table 2", r / s.n))
    return found


def _log(case: Case) -> float:
    return max(0.0, log(case.delta / case.epsilon)) if case.delta > 0 else 0.0


def _steph(case: Case) -> bool:
    """Whether r is large enough for FedSTEPH's row of Table 2 (note 4)."""
    s = case.setting
    return (case.r or s.n) >= (1 + _omega(case)) * sqrt(s.L_max / s.mu) * _log(case)


def _diana(case: Case, setup: str, k: float, source: str) -> Row:
    cost = Cost(case.setting.zeta, case.m)
    return row(setup, "DIANA", k, (cost, cost), "order", source)


def _stochastic(
    case: Case, setup: str, name: str, k: float, source: str, share: float = 1.0
) -> Row:
    """Methods that take one sample gradient a round; ``share`` of the workers take part."""
    cost = Cost(share * case.setting.zeta, share)
    return row(setup, name, k, (cost, cost), "order", source)


def _vr_diana(case: Case, k: float, source: str) -> Row:
    """b' samples at x and at w, and m with probability b' / m."""
    b, zeta = case.b or 1, case.setting.zeta
    costs = Cost(zeta, case.m), Cost(zeta, 3 * b)
    return row(SUM, f"VR-DIANA, b' = {b}", k, costs, "order", source)


def _comgate(case: Case, k: float, calls: float, source: str) -> Row:
    """FedCOMGATE with G = 0: several stochastic gradients between two exchanges."""
    each = Cost(case.setting.zeta, calls / whole(k))
    return row(ALL, "FedCOMGATE", k, (each, each), "order", source)
