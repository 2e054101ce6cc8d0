"""VR-MARINA, VR-DIANA, PP-MARINA and DASHA against plain NumPy loops that share only the draws."""

import numpy as np
import pytest

from mpisim.core.rng import Draw, Streams, purpose_key
from tests.helpers import columns, dense, run_tables, table

ROUNDS, SEED, GAMMA = 60, 1, 0.7


class Shards:
    """The non-convex loss of n contiguous dense shards, with minibatches; no code of mpisim."""

    def __init__(self, data, n):
        rows, labels = dense(data)
        self.n, self.m, self.d = n, len(rows) // n, rows.shape[1]
        cut = n * self.m
        self.a = rows[:cut].reshape(n, self.m, self.d)
        self.y = labels[:cut].reshape(n, self.m)
        self.streams = Streams(SEED)

    def gradients(self, x, batch=None):
        out = []
        for i in range(self.n):
            chosen = np.arange(self.m) if batch is None else batch[i]
            a, y = self.a[i][chosen], self.y[i][chosen]
            s = 1 / (1 + np.exp(-y * (a @ x)))
            out.append(a.T @ (-2 * s * (1 - s) ** 2 * y) / len(chosen))
        return np.array(out)

    def coin(self, k, p):
        return (int(self.streams.raw("coin", k, 0, 1, 1)[0, 0]) >> 11) * 2.0**-53 < p

    def batch(self, k, b):
        return Draw(self.streams, "batch", k, 0, self.n).batches(np.full(self.n, self.m), b)

    def samples(self, purpose, k, b):
        return Draw(self.streams, purpose, k, 0, self.n).samples(np.full(self.n, self.m), b)


def vr_marina(f, p, b):
    """Algorithm 2; with n = 1 it is PAGE (Li et al., 2020)."""
    x, g = np.zeros(f.d), f.gradients(np.zeros(f.d)).mean(axis=0)
    for k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(k, p):
            g = f.gradients(x).mean(axis=0)
        else:
            batch = f.batch(k, b)
            g = g + (f.gradients(x, batch) - f.gradients(old, batch)).mean(axis=0)
    return x


def online(f, p, b, big, start):
    x = np.zeros(f.d)
    g = f.gradients(x, f.samples("big batch", 0, start)).mean(axis=0)
    for k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(k, p):
            g = f.gradients(x, f.samples("big batch", k, big)).mean(axis=0)
        else:
            batch = f.samples("batch", k, b)
            g = g + (f.gradients(x, batch) - f.gradients(old, batch)).mean(axis=0)
    return x


def vr_diana(f, p, b, alpha=0.3):
    x = w = np.zeros(f.d)
    h = np.zeros((f.n, f.d))
    for k in range(ROUNDS):
        g = f.gradients(w)
        if k > 0:
            batch = f.batch(k, b)
            g = f.gradients(x, batch) - f.gradients(w, batch) + g
            if f.coin(k, p):
                w = x
        m = g - h
        x = x - GAMMA * (h + m).mean(axis=0)
        h = h + alpha * m
    return x


def randk(f, k, i, again, K):
    """RandK's coordinates of a client in round k that was drawn ``again`` times before."""
    key = np.array([SEED, purpose_key("up")], np.uint64)
    counter = np.array([-(-K // 4) * i, again, k, 0], np.uint64)
    pool, words = list(range(f.d)), np.random.Philox(key=key, counter=counter).random_raw(K)
    for t, word in enumerate(words.tolist()):  # Fisher-Yates
        j = t + (word * (f.d - t) >> 64)
        pool[t], pool[j] = pool[j], pool[t]
    return pool[:K]


def pp_marina(f, p, r, K=None):
    x, g = np.zeros(f.d), f.gradients(np.zeros(f.d)).mean(axis=0)
    for k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(k, p):
            g = f.gradients(x).mean(axis=0)
        else:
            drawn = Draw(f.streams, "sample", k, 0, 1).samples(np.array([f.n]), r)[0]
            difference, total = f.gradients(x) - f.gradients(old), np.zeros(f.d)
            for t, i in enumerate(drawn):
                kept = slice(None) if K is None else randk(f, k, i, list(drawn[:t]).count(i), K)
                total[kept] += difference[i][kept] * (f.d / K if K else 1)
            g = g + total / r
    return x


def dasha(f, a, first, following):
    """All four methods with g_i^0 = 0, ``following`` giving h_i^{t+1} and whether g_i is h_i."""
    x = np.zeros(f.d)
    h, g = first(x), np.zeros((f.n, f.d))
    for k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g.mean(axis=0)
        before, (h, full) = h, following(k, x, old, h)
        g = h if full else g + h - before - a * (g - before)
    return x


def dasha_page(f, a, p, b):
    def following(k, x, old, h):
        batch = f.samples("batch", k, b)
        if f.coin(k, p):
            return f.gradients(x), False
        return h + f.gradients(x, batch) - f.gradients(old, batch), False

    return dasha(f, a, f.gradients, following)


def dasha_mvr(f, a, p, momentum, b, big, start):
    def large(k, x):
        return f.gradients(x, f.samples("big batch", k, big if k else start))

    def following(k, x, old, h):
        if f.coin(k, p):
            return large(k, x), True
        batch = f.samples("batch", k, b)
        h = f.gradients(x, batch) + (1 - momentum) * (h - f.gradients(old, batch))
        return h, False

    return dasha(f, a, lambda x: large(0, x), following)


DASHA = {"start": "zero", "a": 0.3}
CASES = [
    (
        {"name": "dasha"} | DASHA,
        lambda f: dasha(f, 0.3, f.gradients, lambda k, x, old, h: (f.gradients(x), False)),
    ),
    (
        {"name": "dasha-page", "p": 0.2, "batch": 11} | DASHA,
        lambda f: dasha_page(f, 0.3, 0.2, 11),
    ),
    (
        {"name": "dasha-mvr", "b": 0.1, "batch": 11, "big_batch": 50} | DASHA,
        lambda f: dasha_mvr(f, 0.3, 0.0, 0.1, 11, 50, 50),
    ),
    (
        {"name": "dasha-sync-mvr", "p": 0.2, "batch": 11, "big_batch": 50, "first_batch": 70}
        | DASHA,
        lambda f: dasha_mvr(f, 0.3, 0.2, 0.0, 11, 50, 70),
    ),
    ({"name": "vr-marina", "p": 0.2, "batch": 11}, lambda f: vr_marina(f, 0.2, 11)),
    (
        {"name": "vr-marina-online", "p": 0.2, "batch": 11, "big_batch": 50, "first_batch": 70},
        lambda f: online(f, 0.2, 11, 50, 70),
    ),
    (
        {"name": "vr-diana", "p": 0.1, "batch": 11, "alpha": 0.3},
        lambda f: vr_diana(f, 0.1, 11),
    ),
    ({"name": "pp-marina", "p": 0.1, "participants": 4}, lambda f: pp_marina(f, 0.1, 4)),
]


def test_pp_marina_compresses_each_draw_of_a_client_anew():
    method = {"name": "pp-marina", "p": 0.1, "participants": 6, "stepsize": GAMMA}
    tables = table(method, {"name": "randk", "k": 90}, "sample", 6, ROUNDS, wire="float64")
    x = pp_marina(Shards("sample", 6), 0.1, 6, K=90)
    assert np.linalg.norm(run_tables(tables).x - x) <= 1e-9 * np.linalg.norm(x)


@pytest.mark.drawn(10)
@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("data", ["sample", "mushrooms"])
@pytest.mark.parametrize(("method", "loop"), CASES, ids=[m["name"] for m, _ in CASES])
def test_trajectory(method, loop, data, n, need_data):
    need_data(data)
    if n == 1 and method["name"] == "pp-marina":
        method = method | {"participants": 1}
        loop = lambda f: pp_marina(f, 0.1, 1)  # noqa: E731
    tables = table(
        method | {"stepsize": GAMMA}, {"name": "identity"}, data, n, ROUNDS, wire="float64"
    )
    x = loop(Shards(data, n))
    assert np.linalg.norm(run_tables(tables).x - x) <= 1e-9 * np.linalg.norm(x)


def logged(method, tmp_path, compressor=None, **options):
    log = tmp_path / "log.h5"
    run_tables(table(method, compressor or {"name": "randk", "k": 10}, **options), log)
    return columns(log)


def test_pp_marina_charges_only_drawn_clients(tmp_path):
    n, m, r = 6, 1600 // 6, 3
    method = {"name": "pp-marina", "p": 0.2, "participants": r, "stepsize": 0.1}
    c = logged(method, tmp_path, rounds=60)
    bits, calls = np.diff(c["bits_up"][1:]), np.diff(c["oracle_calls"][1:])
    most, streams, again = np.diff(c["bits_up_max"][1:]), Streams(1), 0
    for k in range(1, 60):
        drawn = Draw(streams, "sample", k, 0, 1).samples(np.array([n]), r)[0]
        times = np.unique(drawn, return_counts=True)[1]  # a client drawn twice sends twice
        again += times.max() > 1
        synchronised = bits[k - 1] == n * 32 * 123
        assert synchronised or bits[k - 1] == r * 320
        assert most[k - 1] == (32 * 123 if synchronised else times.max() * 320)
        assert calls[k - 1] == (n * m if synchronised else 2 * times.size * m)  # and computes once
    assert again > 10
    assert 3 <= (bits == n * 32 * 123).sum() <= 24
