"""CD-Adam's Lemmas B.5 and B.6 on Algorithm 1 in NumPy, and what they leave out of the start."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from mpisim.theory.cd_adam import Theorem64


def top(v: np.ndarray, k: int) -> np.ndarray:
    """Top-k: pi = 1 - k / d."""
    out = np.zeros_like(v)
    largest = np.argsort(-np.abs(v))[:k]
    out[largest] = v[largest]
    return out


class Regression:
    """f_i(x) = mean_t log(1 + exp(-a_t . x)): 3 workers, 8 samples, d = 6; Algorithm 1 in NumPy."""

    n, N, d, k = 3, 8, 6, 4

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.a = rng.standard_normal((self.n, self.N, self.d))
        self.rng = rng

    def theorem(self, beta1: float, nu: float) -> Theorem64:
        norms = np.linalg.norm(self.a, axis=2)
        L = max(np.linalg.eigvalsh(a.T @ a / (4 * self.N))[-1] for a in self.a)
        largest, sigma = np.abs(self.a).max(), sqrt((norms**2).mean(axis=1).max())
        pi = 1 - self.k / self.d
        return Theorem64(
            self.n, self.N, self.d, L, np.log(2), pi, norms.max(), largest, sigma, beta1, nu
        )

    def gradients(self, x: np.ndarray, tau: int) -> np.ndarray:
        out = []
        for a in self.a:
            rows = a[self.rng.permutation(self.N)[:tau]]
            out.append(-(rows / (1 + np.exp(rows @ x))[:, None]).mean(axis=0))
        return np.array(out)

    def errors(self, T: int, alpha: float, tau: int, beta1: float, nu: float):
        """|g^_t - g_t| and |g~_t - g^_t| of each round, shape (T, 2)."""
        x = np.zeros(self.d)
        hats, hat, tilde = np.zeros((self.n, self.d)), np.zeros(self.d), np.zeros(self.d)
        m, v, v_hat = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)
        out = []
        for _ in range(T):
            g = self.gradients(x, tau)
            c = np.array([top(row, self.k) for row in g - hats])
            hats, hat = hats + c, hat + c.mean(axis=0)
            tilde = tilde + top(hat - tilde, self.k)
            out.append([np.linalg.norm(hat - g.mean(axis=0)), np.linalg.norm(tilde - hat)])
            m, v = beta1 * m + (1 - beta1) * tilde, 0.99 * v + 0.01 * tilde**2
            v_hat = np.maximum(v_hat, v)
            x = x - alpha * m / np.sqrt(v_hat + nu)
        return np.array(out)


PARAMETERS = [(0.9, 0.01), (0.0, 1.0)]


@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 0.1])
@pytest.mark.parametrize(("beta1", "nu"), PARAMETERS)
def test_lemmas_B5_and_B6_with_full_gradients(alpha, beta1, nu):
    """Without noise they hold in every round and run, with what they leave out of the start."""
    T = 60
    t = np.arange(1, T + 1)
    for seed in range(5):
        f = Regression(seed)
        one = f.theorem(beta1, nu)
        errors = f.errors(T, alpha, f.N, beta1, nu)
        first = np.linalg.norm(f.gradients(np.zeros(f.d), f.N), axis=1).mean()
        start = one.root**t * first
        assert (errors[:, 0] <= one.worker_error(alpha, f.N) + start).all()
        server = one.server_error(alpha, f.N) + t * (1 + one.root) * start
        assert (errors[:, 1] <= server).all()
        assert first <= one.G


@pytest.mark.parametrize("tau", [1, 4])
def test_lemmas_B5_and_B6_with_minibatches(tau):
    """In the mean over runs, in the long run."""
    errors = np.array([_noisy(seed, tau) for seed in range(60)]).mean(axis=0)
    one = Regression(7).theorem(0.9, 1.0)
    assert errors[0] <= one.worker_error(1e-3, tau)
    assert errors[1] <= one.server_error(1e-3, tau)
    assert errors[0] > 0.02 * one.worker_error(1e-3, tau)


def _noisy(seed: int, tau: int) -> np.ndarray:
    f = Regression(7)
    f.rng = np.random.default_rng(seed)
    return f.errors(40, 1e-3, tau, 0.9, 1.0)[-1]
