"""Clients that drop out, come too late or are not drawn, against plain loops and all clients."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.comm.clock import Clock
from mpisim.core.rng import Draw, Streams
from mpisim.methods.oracle import Oracle
from mpisim.problems import PROBLEMS, autoencoder_codes, design, quadratic
from tests.helpers import calls_of, run_tables, some_of
from tests.methods import loops
from tests.methods.loops import LATENCY, LINKS, SEED, N, TimedLoop

ROUNDS, L2, GAMMA = 40, 0.02, 0.3
FACTORS = [1.0, 1.5, 2.25, 3.0, 10.0, 400.0]  # the last one is late in every round but the first
SECONDS = 2e-4
FLEET = {"links": LINKS, "devices": FACTORS, "seconds": SECONDS, "simulate": True}
LOSSY = FLEET | {"availability": 0.8, "dropout": 0.25, "deadline": 1.0}


def tables(name, keys, fleet=None, compressor=None, l2=L2, **run):
    run, compressor = {"rounds": ROUNDS} | run, compressor or {"name": "identity"}
    return loops.tables({"name": name} | keys, compressor, l2, fleet, **run)


class Loop(TimedLoop):
    """Rounds with messages that are exact, and their seconds."""

    def __init__(self):
        super().__init__(L2)
        self.pass_ = SECONDS * self.m * np.array(FACTORS)
        self.links = self.up + self.down

    def arrived(self, invited, passes):
        """Who comes in time, of those who do not drop out."""
        u = Draw(Streams(SEED), "uniforms", self.k, 0, 1).uniforms(N)[0]
        taken = {i: self.links + passes * self.pass_[i] for i in invited}
        come, lasts = [], 0.0
        for i in invited:
            if self.k == 0 or (u[i] >= 1 - 0.8 * 0.75 and taken[i] <= 1.0):
                come.append(i)
                lasts = max(lasts, taken[i])
            elif u[i] >= 0.2 and self.k:
                lasts = np.inf  # the server waits for one that it believes to be there
        self.now += 1.0 if np.isinf(lasts) or (self.k and lasts > 1.0) else lasts
        return come

    def step(self, g):
        super().step(GAMMA * g)


def fedavg(loop):
    for _ in range(ROUNDS):
        total, come = 0, loop.arrived(loop.clients(4), 2)
        for i in come:
            y = loop.x
            for _ in range(2):
                y = y - GAMMA * loop.gradient(i, y)
            total = total + (loop.x - y) / GAMMA
        loop.step(total / max(len(come), 1))


def pp_marina(loop):
    loop.arrived(range(N), 1)
    g = np.mean([loop.gradient(i, loop.x) for i in range(N)], axis=0)
    loop.step(g)
    for k in range(1, ROUNDS):
        old = loop.x + GAMMA * g
        if loop.coin(0.3):
            come = loop.arrived(range(N), 1)
            g = np.mean([loop.gradient(i, loop.x) for i in come], axis=0) if come else g
        else:
            drawn = Draw(Streams(SEED), "sample", k, 0, 1).samples(np.array([N]), 4)[0]
            come = _repeated(loop, drawn)
            changes = [loop.gradient(i, loop.x) - loop.gradient(i, old) for i in come]
            g = g + np.mean(changes, axis=0) if come else g
        loop.step(g)


def _repeated(loop, drawn):
    """As `arrived`; each message of a client passes its link, and the latency passes once."""
    links, more = loop.links, loop.up - LATENCY
    pass_ = loop.pass_
    loop.pass_ = pass_ + more * (np.bincount(drawn, minlength=N) - 1) / 2
    come = loop.arrived(sorted(set(drawn.tolist())), 2)
    loop.links, loop.pass_ = links, pass_
    return [i for i in sorted(drawn.tolist()) if i in come]


def diana(loop):
    h_i, h = np.zeros((N, loop.d)), 0
    for _ in range(ROUNDS):
        come = loop.arrived(range(N), 1)
        m = {i: loop.gradient(i, loop.x) - h_i[i] for i in come}
        g = h + sum(m.values()) / max(len(come), 1)
        for i in come:
            h_i[i] += 0.4 * m[i]
        h = h_i.mean(axis=0)  # at the server, too
        loop.step(g)


def dasha(loop):
    loop.arrived(range(N), 1)
    h_i = np.array([loop.gradient(i, loop.x) for i in range(N)])
    g_i, p_a = h_i.copy(), 0.8 * 0.75
    loop.step(g_i.mean(axis=0))
    for _ in range(1, ROUNDS):
        old = loop.x + GAMMA * g_i.mean(axis=0)
        for i in loop.arrived(range(N), 2):
            new, before = loop.gradient(i, loop.x), loop.gradient(i, old)
            k_i = new - before - p_a / (2 - p_a) * (h_i[i] - before)
            g_i[i] += k_i / p_a - 0.6 * (g_i[i] - h_i[i])
            h_i[i] += k_i / p_a
        loop.step(g_i.mean(axis=0))


METHODS = {
    "fedavg": (fedavg, {"local_steps": 2, "participants": 4}),
    "pp-marina": (pp_marina, {"p": 0.3, "participants": 4}),
    "diana": (diana, {"alpha": 0.4}),
    "dasha": (dasha, {"a": 0.6}),
}


@pytest.mark.parametrize("name", METHODS)
def test_rounds_and_seconds_are_those_of_a_plain_loop(name):
    (plain, keys), loop = METHODS[name], Loop()
    end = run_tables(tables(name, keys, LOSSY), keep=True)
    plain(loop)
    rows = end.columns
    assert end.x == pytest.approx(loop.x, rel=1e-9, abs=1e-12)
    assert rows["simulated_seconds"] == pytest.approx(loop.times, rel=1e-12)
    assert rows["messages_up"][-1] < rows["round"][-1] * N * 0.7
    assert 0 < rows["idle_share"][-1] < 1


@pytest.mark.parametrize("start", ["dense", "zero"])
def test_a_start_in_which_nothing_is_sent_takes_no_time_on_links(start):
    given = tables("dasha", {"a": 0.6, "start": start}, FLEET, rounds=2)
    rows, loop = run_tables(given, keep=True).columns, Loop()
    sent = start == "dense"
    assert (rows["bits_up"][1] > 0) == (rows["bits_down"][1] > 0) == sent
    expected = max(loop.pass_) + sent * loop.links
    assert rows["simulated_seconds"][1] == pytest.approx(expected, rel=1e-12)
    share = 1 - sent * loop.pass_.mean() / expected
    assert rows["idle_share"][1] == pytest.approx(share, rel=1e-12)


IMAGES = {"data": "sample", "images": 40, "code_size": 2, "homogeneity": 1.0}
GLM = design.row_kernels, "sweep", lambda form, kind, want, ids, *_: len(ids)
QUADRATIC = quadratic.kernels, "write_gradients", lambda out, *_: len(out)
AUTOENCODER = (
    autoencoder_codes.gradients,
    "encode_shards",
    lambda shards, *arguments: np.diff(shards[3])[arguments[4]].sum(),
)
PROBLEM_CASES = [  # with the kernel, and how many sample gradients a call of it computes
    ("logistic", {"data": "sample", "l2": 0.1}, 1, GLM),
    # once for both clients
    ("nonconvex-loss", {"data": "sample", "split": "homogeneous"}, 1 / 2, GLM),
    ("quadratic", {"dimension": 20, "noise": 0.3}, 1, QUADRATIC),
    ("autoencoder", IMAGES, 1 / 2, AUTOENCODER),
]


@pytest.mark.parametrize(("name", "keys", "share", "kernel"), PROBLEM_CASES)
@some_of(4, dtype=["float64", "float32"])
def test_only_gradients_of_participants_are_computed(name, keys, share, kernel, dtype, monkeypatch):
    module, function, samples = kernel
    calls = calls_of(monkeypatch, module, function)
    problem, full = (PROBLEMS[name](**keys).loaded(9, 0, 7, 1, np.dtype(dtype)) for _ in range(2))
    x = np.random.default_rng(0).standard_normal(problem.d).astype(dtype)
    every = full.gradients(x)
    oracle = Oracle(problem, Clock(), 1)
    for clients in (np.array([1, 4]), np.array([], np.int64)):
        calls.clear()
        before = oracle.calls
        some = oracle.gradients(x, clients)
        assert some.tobytes() == every[clients].tobytes() and some.shape == (len(clients), x.size)
        assert sum(samples(*call) for call in calls) == share * (oracle.calls - before)
