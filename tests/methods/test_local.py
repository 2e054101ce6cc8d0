"""Local steps against plain NumPy loops over the clients, with their minibatches and their bits."""

import copy
import tracemalloc

import numpy as np
import pytest

from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from tests.helpers import run_tables, set_up, table
from tests.methods import loops
from tests.methods.loops import SEED, N, near
from tests.resumes import COMPRESSORS
from tests.resumes import KEYS as KEYS_OF

ROUNDS, L2 = 12, 0.02
STEPS, ETA, ETA_G = 4, 0.4, 0.7
KEYS = {"local_steps": STEPS, "stepsize": ETA, "server_stepsize": ETA_G}
PART = {"participants": 3, "batch": 7}


class Loop(loops.Loop):
    """Who takes part, with which rows, and which coordinates they send, by the addresses."""

    def __init__(self, participants=None, batch=None, K=None):
        super().__init__(L2)
        self.r, self.b, self.K = participants, batch, K

    def clients(self):
        return list(range(N)) if self.r is None else super().clients(self.r).tolist()

    def gradient(self, i, x, step):
        if self.b is None:
            return super().gradient(i, x)
        draw = Draw(Streams(SEED), "batch", self.k, i, 1, None, step)
        return super().gradient(i, x, draw.batches(np.array([self.m]), self.b)[0])

    def sent(self, rows, message=0):
        """What the server decodes of the clients' rows: RandK of them, or they themselves."""
        S = None if self.r is None else np.array(self.clients())
        rows = np.array(rows)
        return rows if self.K is None else self.randk(rows, "up", self.K, message, S)


def fedavg(loop, mu=0.0):
    x = np.zeros(loop.d)
    for loop.k in range(ROUNDS):
        ends = []
        for i in loop.clients():
            y = x.copy()
            for t in range(STEPS):
                y = y - ETA * (loop.gradient(i, y, t) + mu * (y - x))
            ends.append(y)
        x = x + ETA_G * np.mean(loop.sent(np.array(ends) - x), axis=0)
    return x


def scaffold(loop, option="II"):
    x, c, c_i = np.zeros(loop.d), np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        moves, changes = [], []
        for i in loop.clients():
            y = x.copy()
            for t in range(STEPS):
                y = y - ETA * (loop.gradient(i, y, t) - c_i[i] + c)
            plus = c_i[i] - c + (x - y) / (STEPS * ETA)
            if option == "I":
                plus = loop.gradient(i, x, STEPS)
            moves.append(y - x)
            changes.append(plus - c_i[i])
        changes = loop.sent(changes, 1)
        c_i[loop.clients()] += changes
        x = x + ETA_G * np.mean(loop.sent(moves), axis=0)
        c = c + np.sum(changes, axis=0) / N
    return x


CASES = {
    "fedavg": (fedavg, {}),
    "fedprox": (fedavg, {"mu": 0.3}),
    "scaffold": (scaffold, {}),
    "scaffold I": (scaffold, {"option": "I"}),
}


def tables(name, keys, **run):
    method = {"name": name.split()[0]} | KEYS | keys
    return loops.tables(method, l2=L2, **{"rounds": ROUNDS} | run)


@pytest.mark.parametrize("K", [None, 90])
@pytest.mark.parametrize("part", [{}, PART], ids=["all", "some"])
@pytest.mark.parametrize("name", CASES)
def test_trajectory_and_bits_of_those_who_take_part(name, part, K):
    """With messages as they are, and compressed by RandK."""
    (function, keys), loop = CASES[name], Loop(**part, K=K)
    compressor = {"compressor": {"name": "randk", "k": K}} if K else {}
    end = run_tables(tables(name, keys | part) | compressor)
    d, r = loop.d, part.get("participants", N)
    assert near(end.x, function(loop, **keys))
    vectors = 1 + name.startswith("scaffold")
    assert end.row["bits_up"] == ROUNDS * r * vectors * 64 * (K or d)
    assert end.row["bits_down"] == ROUNDS * r * vectors * 64 * d
    if part and name != "scaffold I":  # which computes one gradient more
        assert end.row["oracle_calls"] == ROUNDS * r * STEPS * 7


def test_another_optimizer_takes_the_mean_move_for_a_gradient():
    """FedAdam's first step: eta_g m / (sqrt(v) + nu), bias-corrected, is eta_g sign(move)."""
    end = run_tables(tables("fedavg", {"optimizer": "adam", "nu": 1e-300}, rounds=1))
    assert np.allclose(np.abs(end.x[end.x != 0]), ETA_G, rtol=1e-12)


def only_the_server_knows(name):
    estimator = ESTIMATORS[METHODS[name].estimator]
    return estimator.server_point and not estimator.on_events


AT_SERVER = list(filter(only_the_server_knows, METHODS))


@pytest.mark.parametrize("name", [*AT_SERVER, "gd"])
def test_a_worker_cannot_compute_with_what_only_the_server_knows(name):
    """On other ranks the server's point is NaN until it is sent; all know the x^k of the others."""
    keys = {"name": name, "stepsize": ETA} | KEYS_OF.get(name, {})
    compressor = COMPRESSORS.get(name, [None])[0]
    setup = set_up(table(keys, compressor, problem={"name": "logistic"}))
    star = copy.copy(setup.star)
    star.is_server = False
    assert setup.new_state(star).hidden == (name in AT_SERVER)
    state = setup.state
    state.hidden = name in AT_SERVER
    state.step(ETA)
    gradients = setup.problem.gradients(state.x)
    assert np.isnan(gradients).all() == np.isnan(gradients).any() == (name in AT_SERVER)


@pytest.mark.parametrize("name", ["fedavg", "scaffold"])
def test_a_round_allocates_nothing_for_clients_that_do_not_take_part(name):
    n = 100_000
    settings = tables(name, {"participants": 20, "batch": 1})
    settings["problem"] = {"name": "quadratic", "workers": n, "dimension": 10, "noise": 0.1}
    setup = set_up(settings)
    setup.state.step(ETA)  # makes what stays
    tracemalloc.start()
    setup.state.step(ETA)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n
