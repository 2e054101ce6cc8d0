"""TAMUNA against a plain NumPy loop, and the derivation of its step, which is Scaffnew's."""

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from tests.compressors.cases import DOUBLE
from tests.helpers import run_tables
from tests.methods.test_downlink import GAMMA, ROUNDS, SEED, Loop, N, tables

ETA, P, C = 0.4, 0.3, 4
PATTERN = {"name": "pattern", "s": 2}


def who_sends(loop, k, s, c):
    """The clients of round k, and which coordinates each of them sends, (c, d): of the wire."""
    clients = Draw(Streams(SEED), "sample", k, 0, 1).subsets(N, c)[0] if c < N else np.arange(N)
    draw = Draw(Streams(SEED), "up", k, 0, N, clients if c < N else None)
    ones = np.ones((c, loop.d))
    pattern = make({"name": "pattern", "s": s}).bind(loop.d, N, DOUBLE)
    return clients, pattern.compress(ones, draw).decoded() != 0


def tamuna(loop, s, c):
    x, h = np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        x_i, number, done = np.tile(x, (N, 1)), 0, False
        while not done:
            x_i = x_i - GAMMA * (loop.gradients(x_i) - h)
            done = loop.coin(P, number)
            number += 1
        clients, mask = who_sends(loop, loop.k, s, c)
        assert (mask.sum(axis=0) == s).all() and np.ptp(mask.sum(axis=1)) <= 1
        x = (mask * x_i[clients]).sum(axis=0) / s
        h[clients] += P * ETA / GAMMA * mask * (x - x_i[clients])
    return x


@pytest.mark.parametrize(("s", "c"), [(2, 4), (3, 3), (2, N), (N, N)])
def test_trajectory_and_bits(s, c):
    keys = {"name": "tamuna", "p": P, "eta": ETA} | ({"participants": c} if c < N else {})
    end, loop = run_tables(tables(keys, PATTERN | {"s": s})), Loop()
    x = tamuna(loop, s, c)
    assert np.linalg.norm(end.x - x) <= 1e-12 * np.linalg.norm(x)
    assert end.row["bits_up"] == 64 * ROUNDS * s * loop.d
    assert end.row["bits_down"] == 64 * ROUNDS * (c + s) * loop.d


def test_the_step_needs_convex_functions():
    settings = tables({"name": "tamuna", "p": P, "stepsize": "theory"}, PATTERN)
    settings["problem"]["name"] = "nonconvex-loss"
    with pytest.raises(InputError, match=r"^method\.stepsize: TAMUNA has a theorem for convex"):
        run_tables(settings)
    settings["problem"]["name"] = "logistic"
    assert run_tables(settings).attributes["stepsize_source"] == "TAMUNA: 1 / L_max"
