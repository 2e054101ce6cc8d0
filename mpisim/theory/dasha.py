"""DASHA (Tyurin and Richtarik, 2023): its parameters, step sizes, and what its rounds cost.

One Lyapunov function gives all step sizes. With a = 1 / (2 omega + 1) and

    G = |g - h|^2,    G_i = mean |g_i - h_i|^2,    D = mean |h_i^{t+1} - h_i^t|^2,
    H = |h - grad f|^2,    H_i = mean |h_i - grad f_i|^2,

a compressed round leaves at most (1-a) G + 2 omega (a^2 G_i + D) / n and (1-a) G_i + 2 omega D. So

    f + gamma (2 omega + 1) G + (4 gamma omega / n) G_i

pays gamma G for the error of g, and costs at most c D, c = 8 gamma omega (2 omega + 1) / n. H and
H_i shrink by 1 - q, where q is p of PAGE and SYNC-MVR, and b of MVR. With the weights gamma / q and
2 c (PAGE) or 2 b c (MVR) they pay gamma H for the error of h, and their share of D. What is left is

    (c_1 omega (2 omega + 1) / n (V + L^^2) + c_2 V / (q n)) gamma / 2 |x^{t+1} - x^t|^2,

V |x^{t+1} - x^t|^2 being the variance that a minibatch adds to h_i. gamma is the largest one for
which (1 / (2 gamma) - L / 2) |x^{t+1} - x^t|^2 of the descent lemma pays for that.

SYNC-MVR's weights are the least that pay, as a compressed round leaves (1-a)^2 of G, not 1-a:
A = gamma / (a (2 - a)) for G and 2 a omega A / n for G_i, with c = 2 gamma omega (2 omega + 1) / n.

Under the Polyak-Lojasiewicz condition the weights shall shrink by 1 - gamma mu. With gamma mu at
most a / 2 and q / 2 they double, and c is 20 gamma omega (2 omega + 1) / n. SYNC-MVR's are then
A = gamma / (a (3/2 - a)) and 4 a omega A / n, with c = 4 gamma omega (2 omega + 1) / n.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from mpisim.core.numerics.functions import power
from mpisim.theory.setting import Setting, Step
from mpisim.theory.stepsizes import omega_of, theorem_only_for
from mpisim.theory.tables import ALL, ONLINE, SUM, Case, Cost, Guarantee, Kind, guarantee, rounds


def momentum(omega: float) -> float:
    """a = 1 / (2 omega + 1)."""
    return 1 / (2 * omega + 1)


def mvr_momentum(omega: float, B: int, big_B: int) -> float:
    """The b of SYNC-MVR's floor, 48 omega (2 omega + 1) b^2 + 2 b = B / B' (see `mvr`)."""
    share = B / big_B
    return share / (1 + sqrt(1 + 48 * omega * (2 * omega + 1) * share))


def published_momentum(omega: float, B: int, big_B: int) -> float:
    """b = min(B / B', sqrt(B / B') / omega): the published code's `config_libsvm_zero_marina.py`.

    Its B' counts stochastic gradients of B samples each, and omega is RandK's.
    """
    share = B / big_B
    return min(share, sqrt(share) / omega) if omega else share


def dasha(setting: Setting, a: float) -> Step:
    """gamma = 1 / (L + sqrt(16 omega (2 omega + 1) / n) L^), L^^2 = (1/n) sum L_i^2.

    Under PL min(the same with 40 for 16, a / (2 mu)).
    """
    return _step(setting, "DASHA", a, _Term((16, 40), "L^^2", power(setting.L_rms, 2)))


def page(setting: Setting, a: float, p: float, B: int) -> Step:
    """gamma = 1 / (L + sqrt(48 omega (2 omega + 1) / n (V + L^^2) + 2 V / (p n))).

    V = (1-p) L_max^2 / B, L_max = max_ij L_ij. Under PL min(the same with 200 and 4 for 48 and 2,
    a / (2 mu), p / (2 mu)).
    """
    V, text = (1 - p) * power(setting.L_max_ij, 2) / B, "(1-p) L_max^2"
    sent = _Term((48, 200), f"({text} / B + L^^2)", V + power(setting.L_rms, 2))
    return _step(setting, "DASHA-PAGE", a, sent, _Term((2, 4), text, V, ("p", p)))


def mvr(setting: Setting, a: float, b: float, B: int) -> Step:
    """gamma = 1 / (L + sqrt(96 omega (2 omega + 1) / n (V + L^^2) + 4 V / (b n))).

    V = (1-b)^2 L_sigma^2 / B, and L_sigma <= L_max. |grad f|^2 is bounded down to the floor
    (96 omega (2 omega + 1) b^2 + 4 b) sigma^2 / (n B). Under PL min(the same with 400 and 8 for 96
    and 4, a / (2 mu), b / (2 mu)), and f - f(x*) has the floor
    (200 omega (2 omega + 1) b^2 + 4 b) sigma^2 / (mu n B).
    """
    V, text = power(1 - b, 2) * power(setting.L_max_ij, 2) / B, "(1-b)^2 L_sigma^2"
    sent = _Term((96, 400), f"({text} / B + L^^2)", V + power(setting.L_rms, 2))
    return _step(setting, "DASHA-MVR", a, sent, _Term((4, 8), text, V, ("b", b)))


def sync_mvr(setting: Setting, a: float, p: float, B: int) -> Step:
    """gamma = 1 / (L + sqrt(4 omega (2 omega + 1) / n (V + (1-p) L^^2) + 2 V / (p n))).

    V = (1-p) L_sigma^2 / B, and L_sigma <= L_max. |grad f|^2 is bounded down to the floor
    2 sigma^2 / (n B'). Under PL min(the same with 8 and 4 for 4 and 2, a / (2 mu), p / (2 mu)),
    and f - f(x*) has the floor 2 sigma^2 / (mu n B').
    """
    V, text = (1 - p) * power(setting.L_max_ij, 2) / B, "(1-p) L_sigma^2"
    sent = _Term((4, 8), f"({text} / B + (1-p) L^^2)", V + (1 - p) * power(setting.L_rms, 2))
    return _step(setting, "DASHA-SYNC-MVR", a, sent, _Term((2, 4), text, V, ("p", p)))


class _Term(NamedTuple):
    """A part of what is under the root: ``factors`` for smooth f and under PL, times ``value``.

    rate : q, its letter and number, of what is ``sampled``
    """

    factors: tuple[int, int]
    text: str
    value: float
    rate: tuple[str, float] = ("", 1.0)


def _step(setting: Setting, who: str, a: float, sent: _Term, sampled: _Term | None = None) -> Step:
    """1 / (L + sqrt(c_1 omega (2 omega + 1) / n ``sent`` + c_2 ``sampled`` / (q n))), q the rate.

    Under PL at most a / (2 mu) and q / (2 mu).
    """
    omega, pl = omega_of(setting, who), setting.condition == "PL"
    if a != momentum(omega):
        raise theorem_only_for(who, 'method.a = "theory"')
    square = sent.factors[pl] * omega * (2 * omega + 1) / setting.n * sent.value
    formula = f"{sent.factors[pl]} omega (2 omega + 1) {sent.text} / n"
    rates = [("a", a)]
    if sampled:
        letter, q = sampled.rate
        square += sampled.factors[pl] * sampled.value / (q * setting.n)
        formula += f" + {sampled.factors[pl]} {sampled.text} / ({letter} n B)"
        rates.append(sampled.rate)
    gamma, formula = 1 / (setting.c.L + sqrt(square)), f"1 / (L + sqrt({formula}))"
    if not pl:
        return Step(gamma, f"derived for {who}: {formula}")
    names = ", ".join(f"{name} / (2 mu)" for name, _ in rates)
    gamma = min(gamma, *(q / (2 * setting.mu) for _, q in rates))
    return Step(gamma, f"derived for {who} (PL): min({formula}, {names})")


def dasha_row(case: Case, step: Step) -> Guarantee:
    """DASHA: m sample gradients a round, as workers keep the last gradient."""
    s = case.setting
    return _row(case, ALL, "DASHA", step, (Cost(s.d, case.full), Cost(s.zeta, case.full)))


def page_row(case: Case, step: Step, p: float, B: int) -> Guarantee:
    """DASHA-PAGE: m sample gradients with probability p, else 2 B."""
    s, m = case.setting, case.full
    costs = Cost(s.d, m), Cost(s.zeta, p * m + (1 - p) * 2 * B)
    return _row(case, SUM, f"DASHA-PAGE, B = {B}", step, costs)


def mvr_row(case: Case, step: Step, b: float, B: int, first: int) -> Guarantee:
    """DASHA-MVR: ``first`` sample gradients at the start, then 2 B."""
    s, name = case.setting, f"DASHA-MVR, B = {B}, b = {b:g}"
    costs = Cost(s.d, first), Cost(s.zeta, 2 * B)
    return _row(case, ONLINE, name, step, costs, "order")


def sync_mvr_row(case: Case, step: Step, p: float, B: int, big_B: int, first: int) -> Guarantee:
    """DASHA-SYNC-MVR: B' sample gradients and d numbers with probability p, else 2 B and zeta."""
    s, name = case.setting, f"DASHA-SYNC-MVR, B = {B}, B' = {big_B}"
    costs = Cost(s.d, first), Cost(s.d, big_B).mixed(p, Cost(s.zeta, 2 * B))
    return _row(case, ONLINE, name, step, costs, "order")


def _row(
    case: Case, setup: str, name: str, step: Step, costs: tuple[Cost, Cost], kind: Kind = "bound"
) -> Guarantee:
    """A row for g_i^0 = h_i^0; "order" where it holds down to a floor that sigma^2 decides."""
    source = "derived here, " + ('start = "dense"' if kind == "bound" else "above the floor")
    return guarantee(setup, name, rounds(case, step), costs, kind, source)
