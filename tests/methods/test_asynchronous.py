"""Methods on an event clock against a plain loop with a heap, and against each other."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators.asynchronous import allocation, equilibrium_time
from tests.helpers import run_tables
from tests.methods import loops
from tests.methods.loops import LATENCY, LINKS, SEED, N, TimedLoop

ROUNDS, L2, GAMMA, BATCH = 40, 0.02, 0.3, 7
FACTORS = [1.0, 1.5, 2.25, 3.0, 10.0, 40.0]
SECONDS = 0.002
FLEET = {"links": LINKS, "devices": FACTORS, "seconds": SECONDS}


def tables(name, keys, fleet=FLEET, rounds=ROUNDS, **more):
    return loops.tables({"name": name} | keys, l2=L2, fleet=fleet, rounds=rounds, **more)


class Loop(TimedLoop):
    """The event clock with a heap: (arrival, worker, round of its point, point)."""

    def __init__(self, factors=FACTORS, steps=1, late=1.0):
        super().__init__(L2)
        self.heap, self.delays = [], []
        self.computing = SECONDS * BATCH * steps * np.array(factors)
        self.steps, self.spent, self.drawn = steps, 0.0, 0
        self.late = late  # the multiple of GAMMA of those who begin in the second half

    def sampled_gradient(self, i, x):
        draw = Draw(Streams(SEED), "batch", self.k, i, 1, None, self.drawn)
        self.drawn += 1
        return self.gradient(i, x, draw.batches(np.array([self.m]), BATCH)[0])

    def give(self, *workers, sent=True):
        for i in workers:
            arrival = self.now + self.down * sent + self.computing[i] + self.up
            heapq.heappush(self.heap, (arrival, i, self.k, self.x))

    def receive(self):
        self.now, i, k, x = heapq.heappop(self.heap)
        self.spent += self.computing[i]
        y, gamma = x.copy(), GAMMA * (self.late if k >= ROUNDS / 2 else 1)
        for _ in range(self.steps):
            y = y - gamma * self.sampled_gradient(i, y)
        return i, self.k - k, x - y

    def step(self, change, delay=0):
        super().step(change)
        self.drawn = 0
        self.delays.append(delay)

    def stop(self, workers):
        self.heap = [task for task in self.heap if task[1] not in workers]
        heapq.heapify(self.heap)


def asynchronous(loop):
    loop.give(*range(N))
    for _ in range(ROUNDS):
        i, tau, v = loop.receive()
        loop.step(v * N / max(N, tau), tau)
        loop.give(i)


def rennala(loop):
    for _ in range(ROUNDS):
        loop.stop(range(N))
        loop.give(*range(N))
        total = 0
        for _ in range(4):
            i, _, v = loop.receive()
            total = total + v
            loop.give(i, sent=False)
        loop.step(total / 4)


def ringmaster(loop):
    loop.give(*range(N))
    for _ in range(ROUNDS):
        i, tau, v = loop.receive()
        loop.step(v, tau)
        old = [task[1] for task in loop.heap if loop.k - task[2] >= 5]
        loop.stop(old)
        loop.give(*sorted([i, *old]))


def fedbuff(loop):
    loop.give(*range(N))
    last = None
    for _ in range(ROUNDS):
        total, ages = 0, 0
        for _ in range(3):
            if last is not None:
                loop.give(last)
            last, tau, v = loop.receive()
            total, ages = total + v, ages + tau
        loop.step(0.8 * total / 3, ages / 3)


CASES = {
    "asynchronous-sgd": (asynchronous, {}),
    "rennala": (rennala, {"collected": 4}),
    "ringmaster": (ringmaster, {"threshold": 5}),
    "fedbuff": (fedbuff, {"buffer": 3, "local_steps": 2, "server_stepsize": 0.8}),
}
# local steps have the size with which a client began
CASES["fedbuff, late"] = fedbuff, CASES["fedbuff"][1] | {"schedule": {"at": [0.5], "factor": 0.1}}


@pytest.mark.parametrize("name", CASES)
def test_every_step_and_time_is_that_of_a_heap(name):
    plain, keys = CASES[name]
    end = run_tables(tables(name.split(",")[0], keys | {"batch": BATCH}), keep=True)
    loop = Loop(
        steps=keys.get("local_steps", 1), late=keys.get("schedule", {"factor": 1})["factor"]
    )
    plain(loop)
    rows = end.columns
    assert end.x == pytest.approx(loop.x, rel=1e-9, abs=1e-12)
    assert rows["simulated_seconds"] == pytest.approx(loop.times, rel=1e-12)
    assert rows["delay"][1:] == pytest.approx(loop.delays)
    assert max(rows["delay"]) > 0 or name == "rennala"
    assert rows["idle_share"][-1] == pytest.approx(1 - loop.spent / (N * loop.now))


def test_collecting_from_all_equal_clients_is_gradient_descent():
    collected = run_tables(tables("rennala", {"collected": N}, None))
    assert collected.x == pytest.approx(run_tables(tables("gd", {}, None)).x, rel=1e-9)


@pytest.mark.parametrize(
    ("h", "tau", "omega", "s", "t", "b", "m", "share"),
    [  # what the authors' code makes of the first three: t, b, m, and w b / sum of w b m
        (
            *([1, 2, 3, 4, 5, 6], [3, 1, 4, 1, 5, 9], 9.0, 20.0, 42.88181917277124),
            *([42, 21, 14, 10, 8, 7], [10, 10, 10, 10, 8, 4]),
            [0.033487, 0.022305, 0.016722, 0.012859, 0.011735, 0.013098],
        ),
        (
            *([1, 1, 2, 3, 5, 8, 13, 21], [21, 13, 8, 5, 3, 2, 1, 1], 4.0, 0.0, 8.0),
            *([8, 8, 4, 2, 1, 1, 0, 0], [0, 0, 1, 1, 2, 4, 5, 5], [0, 0, *[0.125] * 4, 0, 0]),
        ),
        ([0.1, 0.2, 7], [1, 2, 3], 0.0, 30.0, 4.0, [40, 20, 0], [1] * 3, [2 / 3, 1 / 3, 0]),
        ([1], [2], 0.0, 0.0, 2.0, [2], [1], [1]),
    ],
)
def test_who_does_what_in_shadowheart_is_as_in_the_published_code(h, tau, omega, s, t, b, m, share):
    h, tau = np.array(h, float), np.array(tau, float)
    assert equilibrium_time(h, tau, omega, s) == pytest.approx(t, rel=1e-9)
    active, b_i, m_i, w_i = allocation(h, tau, omega, s)
    assert active.tolist() == np.flatnonzero(np.multiply(b, m)).tolist()
    assert (b_i.tolist(), m_i.tolist()) == ([b[i] for i in active], [m[i] for i in active])
    result = w_i * b_i / (w_i * b_i * m_i).sum()
    assert result == pytest.approx(np.array(share)[active], abs=1e-6)


def test_shadowheart_by_hand():
    """Dense messages: omega = 0, m_i = 1, and the slowest clients rest."""
    end = run_tables(tables("shadowheart", {"noise": 9.0}), keep=True)
    loop, h, s = Loop(), SECONDS * np.array(FACTORS), 9.0
    links = loop.up - LATENCY
    t = equilibrium_time(h, np.full(N, links), 0.0, s)
    b = np.floor(t / h).astype(int)
    active = [i for i in range(N) if b[i] and t >= links]
    assert 1 < len(active) < N or max(b) > 1
    for k in range(ROUNDS):
        total = 0
        for number, i in enumerate(active):
            draw = Draw(Streams(SEED), "batch", k, i, 1, None, number)
            rows = draw.samples(np.array([loop.m]), b[i])[0]
            total = total + b[i] * loop.gradient(i, loop.x, rows)
        loop.now += max(loop.down + LATENCY + links + b[i] * h[i] for i in active)
        loop.step(GAMMA * total / sum(b[i] for i in active))
    assert end.x == pytest.approx(loop.x, rel=1e-9, abs=1e-12)
    assert end.columns["simulated_seconds"] == pytest.approx(loop.times, rel=1e-12)
    assert end.columns["oracle_calls"][-1] == ROUNDS * sum(b[i] for i in active)


def test_more_messages_of_a_client_are_no_more_bias():
    """RandK: m_i up to 1 + omega messages; their mean is the gradient in expectation.

    With a tiny step x stays where it is, and a run adds up independent estimates.
    """
    gamma, rounds = 1e-9, 300
    given = tables("shadowheart", {"noise": 5.0, "stepsize": gamma}, rounds=rounds)
    mean = run_tables(given | {"compressor": {"name": "randk", "k": 20}}).x / (gamma * rounds)
    full = run_tables(tables("gd", {"stepsize": 1.0}, None, rounds=1)).x
    assert np.linalg.norm(mean - full) < 0.15 * np.linalg.norm(full)
