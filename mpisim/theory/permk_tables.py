"""Tables 1, 3, 4 and 6 of the PermK paper for an experiment, and the best p and K (App. L).

MARINA with PermK, MARINA with independent RandK and EF21 with TopK, each with the largest step of
its theorem and all its constants: 2 Delta_0 M / epsilon^2 rounds with gamma = 1 / M (Theorems 4 and
6), log(Delta_0 / epsilon) / -log(1 - gamma mu) under PL (Theorems 5 and 7), and p d + (1 - p) zeta
numbers a round. As in the paper, the d numbers of the first exchange are left out.
"""

from __future__ import annotations

import dataclasses
from math import ceil, inf, nan, sqrt

import numpy as np
from scipy.optimize import minimize_scalar

from mpisim.theory import stepsizes
from mpisim.theory.compression import FLOAT_BITS, input_variance
from mpisim.theory.setting import Setting
from mpisim.theory.tables import Case, rounds

GRID = 60  # values of K, and of p before refinement
LETTERS = {"permk": "MARINA, PermK", "randk": "MARINA, RandK", "topk": "EF21, TopK"}
LETTERS["groups"] = "MARINA, groups"  # of the experiment's compressor, where it has any


@dataclasses.dataclass(frozen=True)
class Choice:
    """A method, its parameters (p = 1 for EF21), and its cost by the theorems.

    rounds, bits : to reach the accuracy, not rounded; bits of a worker, 32 for each number.
    """

    method: str
    p: float
    k: int
    rounds: float
    bits: float


def constants(case: Case) -> list[tuple[str, float, float, str]]:
    """Table 1: compressor, A, B, source; RandK with the K of A.1."""
    s = case.setting
    omega, permk = s.d / _k(s) - 1, permuted(s)
    assert permk.A is not None and permk.B is not None
    name = f"RandK, K = {_k(s)}"
    return [
        (f"{name}, dependent", omega, 0.0, "Lemma 1"),
        (f"{name}, independent", omega / s.n, 0.0, "Lemma 1"),
        ("PermK", permk.A, permk.B, "Theorem 1 (8)" if s.d >= s.n else "Theorem 2 (9)"),
    ]


def table_3(case: Case) -> list[tuple[Choice, str]]:
    """Rounds with K = ceil(d/n), of the experiments (A.1), and p = zeta / d, of their code."""
    s = case.setting
    k = _k(s)
    return [
        (at(case, "permk", permuted(s).zeta / s.d, k), "Theorem 4 (PL: 5), A and B of PermK"),
        (at(case, "randk", k / s.d, k), "Theorem 4 (PL: 5), A = omega / n, B = 0"),
        (at(case, "topk", 1.0, k), "Theorem 6 (PL: 7), alpha = K / d"),
    ]


def optimized(case: Case) -> list[tuple[Choice, Choice, float]]:
    """Table 4 or, under PL, 6: each method with the lemma's p and K, with the best, and the order.

    Lemmas 13 and 14 (PL: 15 and 16). Then the compressor's groups, by Theorem 10 (PL: 11).
    """
    methods = [m for m in LETTERS if m != "groups" or case.setting.groups is not None]
    return [(of_lemma(case, m), best(case, m), order(case, m)) for m in methods]


def of_lemma(case: Case, method: str) -> Choice:
    """The p and K in the proof of the lemma's upper bounds; for RandK the K of A.1."""
    s = case.setting
    k = s.d if method == "topk" else _k(s)
    shares = {1.0} if method == "topk" else {with_compressor(s, method, k).zeta / s.d, 1.0}
    return min((at(case, method, p, k) for p in sorted(shares)), key=lambda c: c.bits)


def best(case: Case, method: str) -> Choice:
    """The fewest bits over p in (0, 1] and K in {1, ..., d}; a grid of K if d exceeds ``GRID``."""
    d, counts = case.setting.d, [_k(case.setting)]
    if method in ("randk", "topk"):
        many = np.unique(np.geomspace(1, d, GRID).round().astype(int)).tolist()
        counts = list(range(1, d + 1)) if d <= GRID else sorted({*many, *counts})
    if method == "topk":
        return min((at(case, method, 1.0, k) for k in counts), key=lambda c: c.bits)
    return min((_best_p(case, method, k) for k in counts), key=lambda c: c.bits)


def _best_p(case: Case, method: str, k: int) -> Choice:
    """The fewest bits over p >= 1e-4 zeta / d, by a grid in log p and a search around its best.

    Without a bound p may tend to 0, if L_± = 0 and not under PL.
    """

    def bits(log_p: float) -> float:
        return at(case, method, float(np.exp(log_p)), k).bits

    density = with_compressor(case.setting, method, k).zeta / case.setting.d
    grid = np.geomspace(1e-4 * density, 1.0, GRID)
    tried = [at(case, method, p, k) for p in grid.tolist()]
    i = int(np.argmin([one.bits for one in tried]))
    low, high = np.log(grid[max(i - 1, 0)]), np.log(grid[min(i + 1, GRID - 1)])
    least = minimize_scalar(bits, bounds=(low, high), method="bounded")
    refined = at(case, method, min(1.0, float(np.exp(least.x))), k)
    return min(tried[i], refined, key=lambda c: c.bits)


def at(case: Case, method: str, p: float, k: int) -> Choice:
    """N_PermK(p), N_RandK(p, k) or N_TopK(k): (31) to (33), (39), under PL (45) to (48).

    In groups, N_PermK^G(p) of Appendix M, by Theorems 10 and 11.
    """
    s = with_compressor(case.setting, method, k)
    if method == "topk":
        step, floats = stepsizes.ef21(s), float(k)
    else:
        step, floats = stepsizes.marina_ab(s, p), p * s.d + (1 - p) * s.zeta
    number = rounds(dataclasses.replace(case, setting=s), step)
    bits = FLOAT_BITS * floats * number if number < inf else inf
    return Choice(method, p, k, number, bits)


def order(case: Case, method: str) -> float:
    """The table's bits, an O(.) with constant 1, where 1/epsilon means Delta_0 / epsilon^2.

    Under PL the factor is log(Delta_0 / epsilon).
    """
    s, c = case.setting, case.setting.c
    if method == "groups":
        if s.groups is None or not equation_51(s):
            return nan
        G, L_pm = s.groups.groups.sizes[0], float(s.groups.L_pm.max())  # the largest of a group
        floats = min(s.d * c.L, s.d / G * c.L + s.d / sqrt(s.n) * L_pm)  # (51)
    else:
        L_x = c.L_pm if method == "permk" else c.L_plus
        floats = communication(method, s.n, s.d, c.L, L_x, s.mu if s.condition == "PL" else None)
    number = case.delta / case.epsilon**2 if s.condition == "nonconvex" else case.log_ratio
    return FLOAT_BITS * floats * number


def communication(
    method: str, n: int, d: int, L_minus: float, L_x: float, mu: float | None = None
) -> float:
    """Table 4 without Delta_0 / epsilon, or Table 6 if ``mu`` is given.

    L_x : L_± for PermK, L_+ for RandK
    """
    floats = d * L_minus
    if method != "topk":
        least = max(1.0, d / n) if method == "permk" or d < n else 0.0
        floats = min(floats, least * L_minus + d / sqrt(n) * L_x)
    if mu is None:
        return floats
    return floats / mu if method == "topk" else max(floats / mu, d)


def equation_51(s: Setting) -> bool:
    """Whether (51) covers the groups: n <= d, all of one size, PermK alone in each, and no PL."""
    if s.groups is None or s.condition == "PL" or s.n > s.d:
        return False
    partition = s.groups.groups
    return bool(np.ptp(partition.sizes) == 0 and (partition.A == partition.B).all())


def with_compressor(s: Setting, method: str, k: int) -> Setting:
    """The same workers with the method's compressor: TopK, independent RandK, PermK or its own."""
    if method == "topk":
        return dataclasses.replace(s, alpha=k / s.d, zeta=float(k))
    if method == "randk":
        A = (s.d / k - 1) / s.n
        return dataclasses.replace(s, A=A, B=0.0, zeta=float(k), correlated=False, groups=None)
    return permuted(s) if method == "permk" else s


def permuted(s: Setting) -> Setting:
    """The same workers with PermK."""
    copies = max(1, s.n // s.d)
    A, zeta = input_variance(s.n, copies), s.d * copies / s.n
    return dataclasses.replace(s, A=A, B=A, zeta=zeta, correlated=True, groups=None)


def _k(s: Setting) -> int:
    """K = ceil(d / n): A.1."""
    return ceil(s.d / s.n)
