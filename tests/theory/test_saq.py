"""Theorems 1 to 6 of SAQ, derived again in NumPy: contraction by enumeration, bounds by hand."""

from __future__ import annotations

import dataclasses
from itertools import pairwise, product
from math import ceil, log, sqrt

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.theory import saq, tables
from mpisim.theory import saq_quantizers as q
from mpisim.theory.complexity import Case
from tests.theory.support import setting
from tests.theory.true_cal_l import true_cal_L


def matrices(n: int, d: int, seed: int = 0) -> np.ndarray:
    """L_i (n, d, d), each with its own scales of coordinates."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, d + 2, d)) * np.exp(1.5 * rng.standard_normal((n, 1, d)))
    return np.einsum("nmi,nmj->nij", a, a) / d + 0.05 * np.eye(d)


def diagonals(L: np.ndarray) -> np.ndarray:
    return L.diagonal(axis1=1, axis2=2)


class Quadratics:
    """f_i(x) = (x - b_i)^T L_i (x - b_i) / 2, two workers in two dimensions; Q_h with steps h_i.

    Expectations are sums over the 16 ways in which two coordinates of two workers are rounded.
    """

    def __init__(self, seed: int, h: float):
        rng = np.random.default_rng(seed)
        self.L, self.b = matrices(2, 2, seed), rng.standard_normal((2, 2))
        mean = self.L.mean(axis=0)
        values = np.linalg.eigvalsh(mean)
        self.mu, self.top = values[0], values[-1]
        self.x_star = np.linalg.solve(mean, np.einsum("nij,nj->i", self.L, self.b) / 2)
        self.roots = [self.power(L, 0.5) for L in self.L]
        self.h = h * np.exp(0.5 * rng.standard_normal((2, 2)))
        self.cal_L = [
            true_cal_L(L.diagonal(), row)[0] for L, row in zip(self.L, self.h, strict=True)
        ]
        self.omega = max(true_cal_L(np.ones(2), row)[0] for row in self.h)

    @staticmethod
    def power(matrix: np.ndarray, p: float) -> np.ndarray:
        values, vectors = np.linalg.eigh(matrix)
        return (vectors * values**p) @ vectors.T

    def setting(self):
        L_i = [np.linalg.eigvalsh(L)[-1] for L in self.L]
        one = setting(self.omega, L_i=L_i, L=self.top, mu=self.mu)
        return dataclasses.replace(one, cal_L_max=max(self.cal_L), convex=True)

    def gradients(self, x: np.ndarray) -> np.ndarray:
        return np.einsum("nij,nj->ni", self.L, x - self.b)

    def outcomes(self, v: np.ndarray):
        """Every L_i^{1/2} Q_h(L_i^{-1/2} v_i), shape (2, 2), and its probability."""
        own = []
        for root, h, row in zip(self.roots, self.h, v, strict=True):
            r = np.linalg.solve(root, row)
            y = np.abs(r) / np.linalg.norm(r) / h
            low, up = np.floor(y), y - np.floor(y)
            own.append(
                [
                    (root @ (np.linalg.norm(r) * np.sign(r) * (low + way) * h), chance)
                    for way in product([0, 1], repeat=2)
                    for chance in [np.prod(np.where(way, up, 1 - up))]
                ]
            )
        for (a, p), (b, r) in product(*own):
            yield np.array([a, b]), p * r

    def sigma(self, u: np.ndarray, weights=(1.0, 1.0)) -> float:
        """(1/n) sum_i w_i |u_i - grad f_i(x*)|^2 in the norm of L_i^{-1}."""
        away = u - self.gradients(self.x_star)
        each = [row @ np.linalg.solve(L, row) for row, L in zip(away, self.L, strict=True)]
        return float(np.mean(np.array(weights) * each))


def diana_excess(seed: int, multiple: float, h: float = 0.6) -> float:
    """The largest E Phi^{k+1} / ((1 - rho) Phi^k) over states (x, u): Theorem 2 says at most 1."""
    f = Quadratics(seed, h)
    rate = saq.theorem_2(f.setting(), f.omega)
    gamma, alpha = multiple * rate.step.gamma, 1 / (1 + f.omega)
    rho = rate.rho if multiple == 1 else min(gamma * f.mu, alpha / 2)
    weight = 4 * max(f.cal_L) / (alpha * 2) * gamma**2
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(60):
        x = f.x_star + rng.standard_normal(2) * np.exp(2 * rng.standard_normal())
        u = f.gradients(f.x_star) + rng.standard_normal((2, 2)) * np.exp(2 * rng.standard_normal())

        def phi(x, u):
            return np.sum((x - f.x_star) ** 2) + weight * f.sigma(u)

        expected, total = 0.0, 0.0
        for m, chance in f.outcomes(f.gradients(x) - u):
            expected += chance * phi(x - gamma * (u + m).mean(axis=0), u + alpha * m)
            total += chance
        assert total == pytest.approx(1)
        worst = max(worst, expected / ((1 - rho) * phi(x, u)))
    return worst


@pytest.mark.parametrize("h", [0.3, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_theorem_2_by_enumeration(seed, h):
    assert diana_excess(seed, 1.0, h) <= 1 + 1e-12


def test_theorem_2_breaks_at_a_multiple():
    assert min(diana_excess(seed, 12.0) for seed in range(4)) > 1


def dcgd_excess(seed: int, multiple: float, h: float = 0.6) -> float:
    """E|x^{k+1} - x*|^2 over (1 - rho) |x^k - x*|^2 + 2 gamma^2 sigma*_+ / n: Theorem 1, a step.

    Summed over all steps the last term is the theorem's 2 gamma sigma*_+ / (mu n).
    """
    f = Quadratics(seed, h)
    rate = saq.theorem_1(f.setting(), f.omega)
    gamma = multiple * rate.step.gamma
    noise = 2 * gamma**2 * f.sigma(np.zeros((2, 2)), f.cal_L) / 2
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(60):
        x = f.x_star + rng.standard_normal(2) * np.exp(2 * rng.standard_normal())
        expected = sum(
            chance * np.sum((x - gamma * m.mean(axis=0) - f.x_star) ** 2)
            for m, chance in f.outcomes(f.gradients(x))
        )
        contracted = (1 - multiple * rate.rho) * np.sum((x - f.x_star) ** 2)
        worst = max(worst, expected / (contracted + noise))
    return worst


@pytest.mark.parametrize("h", [0.3, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_theorem_1_by_enumeration(seed, h):
    assert dcgd_excess(seed, 1.0, h) <= 1 + 1e-12


def test_theorem_1_breaks_at_a_multiple():
    assert min(dcgd_excess(seed, 6.0) for seed in range(4)) > 1


def plus(cal_L=3.0, mu=0.01, **keys):
    return dataclasses.replace(setting(8.0, mu=mu, **keys), cal_L_max=cal_L, convex=True)


def test_rates_by_hand():
    """L = 4, n = 2: 1 / (4 + 6 * 3 / 2) = 1/13, and 1 / (4 + 2 * 3 / 2) = 1/7."""
    two = saq.theorem_2(plus(), 9.0)
    assert two.method == "DIANA+" and two.step.gamma == pytest.approx(1 / 13)
    assert two.rho == pytest.approx(0.01 / 13)
    assert two.e_fold == pytest.approx(1300, abs=1)
    assert two.rounds(1e-3) == ceil(log(1e3) / -log(1 - 0.01 / 13))
    one = saq.theorem_1(plus(), 9.0)
    assert one.method == "DCGD+" and one.step.gamma == pytest.approx(1 / 7)
    assert one.rho == pytest.approx(0.01 / 7)
    slow = saq.theorem_2(plus(mu=4.0), 99.0)  # alpha / 2 decides
    assert slow.rho == pytest.approx(1 / 200)
    assert saq.theorem_2(plus(mu=4.0), 99.0, alpha=0.002).rho == pytest.approx(0.001)
    plain = dataclasses.replace(plus(), cal_L_max=None)  # omega L_max = 56
    assert saq.theorem_2(plain, 8.0).step.gamma == pytest.approx(1 / (4 + 6 * 56 / 2))
    assert saq.theorem_1(plain, 8.0).method == "DCGD"
    assert saq.theorem_1(plain, 8.0).cal_L_max == 56


def test_trivial_rates():
    still = saq.theorem_1(plus(cal_L=0.0, mu=4.0), 0.0)  # L = mu: one step of gradient descent
    assert (still.rho, still.rounds(1e-9), still.e_fold) == (1.0, 1.0, 0.0)
    assert saq.theorem_1(plus(), 1.0).rounds(2.0) == 1


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_theorem_2_needs_a_small_alpha(alpha):
    with pytest.raises(InputError, match="0 < alpha <= 1 / "):
        saq.theorem_2(plus(), 9.0, alpha)


def test_nu_and_nu_1():
    assert q.nu(np.array([1.0, 4.0, 3.0])) == 2.0
    assert q.nu_1(np.array([1.0, 4.0, 3.0])) == 2.0
    assert q.nu_1(np.zeros(3)) == 1.0
    assert q.nu(np.full(5, 3.0)) == 5 and q.nu_1(np.full(7, 0.1)) == pytest.approx(7)


def test_T_by_hand():
    diagonal = np.array([3.0, 4.0, 5.0, 12.0, 0.0])
    starts = np.array([0, 2, 5])
    assert q.T(diagonal, starts) == pytest.approx((sqrt(2) * 5 + sqrt(3) * 13) / 5)
    assert q.T(diagonal, np.array([0, 5])) == pytest.approx(np.linalg.norm(diagonal) / sqrt(5))


def fitted(theorem: int, row: np.ndarray, n: int, mu: float) -> tuple[float, float]:
    """omega_i and cal-L_i, straight from D.2, D.3, (25), (28), (10) and (14)."""
    d, A = row.size, row / (n * mu)
    if theorem in (5, 6):
        w = row if theorem == 5 else np.sqrt(1 + A**2)
        h = np.sqrt(w.sum() / w) / (d / n)
        return min((h**2).sum(), np.linalg.norm(h)), min(row @ h**2, np.linalg.norm(row * h))
    edges = [*[*range(0, d, d // n)][:n], d]
    sizes = np.diff(edges)
    norms = np.array([np.linalg.norm(row[a:b]) for a, b in pairwise(edges)])
    w = norms if theorem == 3 else np.sqrt(sizes) + norms / (n * mu)
    # sum 1/h^2 + sqrt(d_l)/h = d/n for h = delta / w: a polynomial in delta
    delta = max(np.roots([d / n, -(np.sqrt(sizes) * w).sum(), -(w**2).sum()]).real)
    h = delta / w
    assert (1 / h**2 + np.sqrt(sizes) / h).sum() == pytest.approx(d / n)
    traces = np.array([row[a:b].sum() for a, b in pairwise(edges)])
    return (
        max(min(a, b) for a, b in zip(h**2 * sizes, h * np.sqrt(sizes), strict=True)),
        max(min(a, b) for a, b in zip(h**2 * traces, h * norms, strict=True)),
    )


SIZES = [(3, 12), (4, 14), (2, 3), (5, 25)]


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("theorem", q.THEOREMS)
@pytest.mark.parametrize("mu", [1e-3, 0.3])
def test_fits_are_the_appendices(theorem, n, d, mu):
    quantizers = q.Quantizers(n, d, mu)
    for row in diagonals(matrices(n, d)):
        fit, (omega, cal_L) = quantizers.fit(theorem, row), fitted(theorem, row, n, mu)
        assert fit.omega == pytest.approx(omega) and fit.cal_L == pytest.approx(cal_L)
        goal = cal_L / (n * mu) + (omega if theorem in (4, 6) else 0)
        assert fit.goal == pytest.approx(goal)


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("theorem", q.THEOREMS)
def test_each_bound_is_above_the_one_before(theorem, n, d):
    """goal <= bound by T_B, T_1 and the trace <= bound by nu_1; L <= nu L_max / n: (21)."""
    for seed in range(20):
        L, mu = matrices(n, d, seed), 10.0 ** -(seed % 5)
        quantizers, rows = q.Quantizers(n, d, mu), diagonals(L)
        L_i = np.linalg.eigvalsh(L)[:, -1]
        largest = max(q.nu_1(row) for row in rows)
        for row in rows:
            fit = quantizers.fit(theorem, row)
            assert fit.goal <= fit.bound * (1 + 1e-12)
            assert fit.bound <= quantizers.bound(theorem, largest, L_i.max()) * (1 + 1e-12)
        top = np.linalg.eigvalsh(L.mean(axis=0))[-1]
        assert top <= q.nu(L_i) * L_i.max() / n * (1 + 1e-12)


def test_bounds_by_nu_1_are_the_appendices():
    """For d_l = d / n: D.2 ends with 2 nu_1 kappa / sqrt(n d), and D.3 to E.4 likewise."""
    n, d, mu, nu_1, L_max = 4, 36, 0.01, 3.0, 2.0
    quantizers, kappa = q.Quantizers(n, d, mu), L_max / mu
    expected = {
        3: 2 * nu_1 * kappa / sqrt(n * d),
        4: 2 * n * (1 + nu_1 * kappa / (n * sqrt(n * d)))
        + 2 * sqrt(n) * (1 + nu_1 * kappa / (n * sqrt(d))),
        5: nu_1 * kappa / d,
        6: sqrt(2) * n + sqrt(2) * nu_1 * kappa / d,
    }
    for theorem, value in expected.items():
        assert quantizers.bound(theorem, nu_1, L_max) == pytest.approx(value), theorem
    orders = {3: 50.0, 4: 4 + 50 + 200 / 12, 5: 50 + 200 / 36, 6: 4 + 50 + 200 / 36}
    for theorem, value in orders.items():
        assert quantizers.order(theorem, L_max) == pytest.approx(value), theorem


@pytest.mark.parametrize("theorem", q.THEOREMS)
def test_constants_are_above_the_true_ones(theorem):
    """cal-L of the quantizer itself, by enumeration, is below what the theorem takes for it."""
    n, d, mu = 2, 3, 0.05
    quantizers = q.Quantizers(n, d, mu)
    for row in diagonals(matrices(n, d)):
        fit = quantizers.fit(theorem, row)
        beta, starts = quantizers.beta(theorem), quantizers.starts
        n_mu = n * mu if theorem in (4, 6) else 0.0
        if theorem in (5, 6):
            h = q.quantization.varying_steps(row, beta, n_mu)
            true = true_cal_L(row, h)[0]
        else:
            h = q.quantization.block_steps(row, starts, beta, n_mu)
            true = max(
                true_cal_L(row[a:b], np.full(b - a, step))[0]
                for (a, b), step in zip(pairwise(starts), h, strict=True)
            )
        assert 0.1 * fit.cal_L < true <= fit.cal_L * (1 + 1e-9)


def test_smooth_has_no_row_of_diana():
    """Its omega in the Euclidean norm is not what DIANA+ needs."""
    case = Case(plus(condition="PL"), 100, 3.0, 0.1)
    for condition in ("nonconvex", "PL"):
        one = dataclasses.replace(case, setting=plus(condition=condition), big_b=50)
        rows, missing = tables.rows(one)
        assert "DIANA" not in {row.method for row in rows}
        assert sum("SAQ's Theorem 2" in reason for reason in missing) == 1
        without = dataclasses.replace(one, setting=setting(8.0, mu=0.01, condition=condition))
        rows, missing = tables.rows(without)
        assert "DIANA" in {row.method for row in rows}
        assert not any("SAQ" in reason for reason in missing)
