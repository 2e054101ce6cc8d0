"""LoCoDL against a plain NumPy loop, and the derivation of its step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import run_tables
from tests.methods.test_downlink import GAMMA, RANDK, ROUNDS, Loop, N, tables

P, MU, CHI, RHO = 0.3, 0.05, 0.4, 0.6


def locodl(loop):
    x = np.zeros((N, loop.d))
    y, u, v = np.zeros(loop.d), np.zeros((N, loop.d)), np.zeros(loop.d)
    omega = loop.d / 20 - 1
    for loop.k in range(ROUNDS):
        number, done = 0, False
        while not done:
            x = x - GAMMA * (loop.gradients(x) - MU * x - u)
            y = y - GAMMA * (MU * y - v)
            done = loop.coin(P, number)
            number += 1
        d_i = loop.randk(x - y, "up")
        d = d_i.mean(axis=0) / 2
        x = (1 - RHO) * x + RHO * (y + d)
        y = y + RHO * d
        factor = P * CHI / (GAMMA * (1 + 2 * omega))
        u, v = u + factor * (d - d_i), v + factor * d
    return y


def test_trajectory():
    keys = {"name": "locodl", "p": P, "mu": MU, "chi": CHI, "rho": RHO}
    end, loop = run_tables(tables(keys, RANDK)), Loop()
    y = locodl(loop)
    assert np.linalg.norm(end.x - y) <= 1e-12 * np.linalg.norm(y)
    assert end.row["bits_up"] == 64 * 20 * N * ROUNDS
    assert end.row["bits_down"] == 64 * loop.d * N * ROUNDS


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_step_is_as_fast_as_derived(share, n=4, p=0.4):
    """The mean of the Lyapunov function after a step, over all draws of Bernoulli, in 1-D."""
    rng, omega, worst = np.random.default_rng(2), 1 / share - 1, 0.0
    rho = chi = n / (n + omega)
    s = p * chi / (1 + 2 * omega)
    draws = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    weights = (share**draws * (1 - share) ** (1 - draws)).prod(axis=1)
    for _ in range(400):
        L, mu = rng.uniform(0.05, 1.0, n), rng.uniform(0.05, 1.0)
        gamma, low = 1 / max(L.max(), mu), min(L.min(), mu)
        b = rng.standard_normal(n)
        star = b.mean() / (L.mean() + mu)
        u_star, v_star = L * star - b, mu * star
        x, y = star + rng.choice([0.01, 1]) * rng.standard_normal(n), star + rng.standard_normal()
        u = rng.choice([0.01, 1]) * rng.standard_normal(n)
        v = -u.mean()

        def psi(x, y, u, v, star=star, u_star=u_star, v_star=v_star, gamma=gamma):
            dual = gamma**2 * (np.mean((u - u_star) ** 2) + (v - v_star) ** 2)
            return np.mean((x - star) ** 2) + (y - star) ** 2 + dual / (p * s)

        hat, yhat = x - gamma * (L * x - b - u), y - gamma * (mu * y - v)
        after = 0.0
        for kept, weight in zip(draws, weights, strict=True):
            d_i = kept / share * (hat - yhat)
            d = d_i.mean() / 2
            moved = (1 - rho) * hat + rho * (yhat + d), yhat + rho * d
            after += weight * psi(*moved, u + s / gamma * (d - d_i), v + s / gamma * d)
        mean = p * after + (1 - p) * psi(hat, yhat, u, v)
        rate = max((1 - gamma * low) ** 2, 1 - p * s)
        worst = max(worst, mean / (rate * psi(x, y, u, v)))
    assert 0.7 < worst <= 1 + 1e-12
