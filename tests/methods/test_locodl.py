"""LoCoDL against a plain NumPy loop, and the derivation of its step."""

import numpy as np

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
