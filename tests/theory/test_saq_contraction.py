"""One step of DCGD+ and DIANA+ contracts as SAQ's Theorems 1 and 2 say: by enumeration in NumPy."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest

from mpisim.theory import saq
from tests.theory.support import setting, smoothness_matrices
from tests.theory.true_cal_l import true_cal_L


class Quadratics:
    """f_i(x) = (x - b_i)^T L_i (x - b_i) / 2, two workers in two dimensions; Q_h with steps h_i.

    Expectations are sums over the 16 ways in which two coordinates of two workers are rounded.
    """

    def __init__(self, seed: int, h: float):
        rng = np.random.default_rng(seed)
        self.L, self.b = smoothness_matrices(2, 2, seed), rng.standard_normal((2, 2))
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
