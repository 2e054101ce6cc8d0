"""VR-MARINA, VR-DIANA, PP-MARINA and DASHA: plain loops, reductions, what is sent and asked for."""

from functools import partial
from math import sqrt

import numpy as np
import pytest
from mpi4py import MPI

from mpisim.core.rng import Draw, Streams, purpose_key
from mpisim.methods.estimators import ESTIMATORS, estimator
from mpisim.problems.quadratic import QuadraticGradients
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import columns, run_tables, some_of, table
from tests.methods.loops import SEED, Loop, near

ROUNDS, GAMMA = 60, 0.7


def vr_marina(f, p, b, big=0, start=0):
    """Algorithm 2, with ``big`` Algorithm 3; with n = 1 it is PAGE (Li et al., 2020)."""

    def full(x, size):
        return f.every(x, f.samples(size, "big batch") if big else None).mean(axis=0)

    x = np.zeros(f.d)
    g = full(x, start)
    for f.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(p):
            g = full(x, big)
        else:
            batch = f.samples(b) if big else f.batch(b)
            g = g + (f.every(x, batch) - f.every(old, batch)).mean(axis=0)
    return x


def vr_diana(f, p, b, alpha=0.3):
    x = w = np.zeros(f.d)
    h = np.zeros((f.n, f.d))
    for f.k in range(ROUNDS):
        g = f.every(w)
        if f.k > 0:
            batch = f.batch(b)
            g = f.every(x, batch) - f.every(w, batch) + g
            if f.coin(p):
                w = x
        m = g - h
        x = x - GAMMA * (h + m).mean(axis=0)
        h = h + alpha * m
    return x


def randk(f, i, again, K):
    """RandK's coordinates of a client in round f.k that was drawn ``again`` times before."""
    key = np.array([SEED, purpose_key("up")], np.uint64)
    counter = np.array([-(-K // 4) * i, again, f.k, 0], np.uint64)
    pool, words = list(range(f.d)), np.random.Philox(key=key, counter=counter).random_raw(K)
    for t, word in enumerate(words.tolist()):  # Fisher-Yates
        j = t + (word * (f.d - t) >> 64)
        pool[t], pool[j] = pool[j], pool[t]
    return pool[:K]


def pp_marina(f, p, r, K=None):
    x, g = np.zeros(f.d), f.every(np.zeros(f.d)).mean(axis=0)
    for f.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(p):
            g = f.every(x).mean(axis=0)
        else:
            drawn = Draw(Streams(SEED), "sample", f.k, 0, 1).samples(np.array([f.n]), r)[0]
            difference, total = f.every(x) - f.every(old), np.zeros(f.d)
            for t, i in enumerate(drawn):
                kept = slice(None) if K is None else randk(f, i, list(drawn[:t]).count(i), K)
                total[kept] += difference[i][kept] * (f.d / K if K else 1)
            g = g + total / r
    return x


def dasha(f, a, first, following):
    """All four methods with g_i^0 = 0, ``following`` giving h_i^{t+1} and whether g_i is h_i."""
    x = np.zeros(f.d)
    h, g = first(x), np.zeros((f.n, f.d))
    for f.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g.mean(axis=0)
        before, (h, full) = h, following(x, old, h)
        g = h if full else g + h - before - a * (g - before)
    return x


def dasha_page(f, a, p, b):
    def following(x, old, h):
        batch = f.samples(b)
        if f.coin(p):
            return f.every(x), False
        return h + f.every(x, batch) - f.every(old, batch), False

    return dasha(f, a, f.every, following)


def dasha_mvr(f, a, p, momentum, b, big, start):
    def large(x):
        return f.every(x, f.samples(big if f.k else start, "big batch"))

    def following(x, old, h):
        if f.coin(p):
            return large(x), True
        batch = f.samples(b)
        h = f.every(x, batch) + (1 - momentum) * (h - f.every(old, batch))
        return h, False

    return dasha(f, a, large, following)


def dasha_exact(f, a):
    return dasha(f, a, f.every, lambda x, old, h: (f.every(x), False))


DASHA = {"start": "zero", "a": 0.3}
ONLINE = {"batch": 11, "big_batch": 50}
CASES = {  # the loop, with its arguments, and the method's other keys
    "dasha": (partial(dasha_exact, a=0.3), DASHA),
    "dasha-page": (partial(dasha_page, a=0.3, p=0.2, b=11), {"p": 0.2, "batch": 11} | DASHA),
    "dasha-mvr": (
        partial(dasha_mvr, a=0.3, p=0.0, momentum=0.1, b=11, big=50, start=50),
        {"b": 0.1} | ONLINE | DASHA,
    ),
    "dasha-sync-mvr": (
        partial(dasha_mvr, a=0.3, p=0.2, momentum=0.0, b=11, big=50, start=70),
        {"p": 0.2, "first_batch": 70} | ONLINE | DASHA,
    ),
    "vr-marina": (partial(vr_marina, p=0.2, b=11), {"p": 0.2, "batch": 11}),
    "vr-marina-online": (
        partial(vr_marina, p=0.2, b=11, big=50, start=70),
        {"p": 0.2, "first_batch": 70} | ONLINE,
    ),
    "vr-diana": (partial(vr_diana, p=0.1, b=11), {"p": 0.1, "batch": 11, "alpha": 0.3}),
    "pp-marina": (partial(pp_marina, p=0.1, r=4), {"p": 0.1, "participants": 4}),
}


@some_of(10, n=[1, 6], data=["sample", "mushrooms"], name=CASES)
def test_trajectory(name, data, n, need_data):
    """With n = 1, VR-MARINA is PAGE (Li et al., 2020)."""
    need_data(data)
    function, keys = CASES[name]
    if name == "pp-marina" and n == 1:
        function, keys = partial(function, r=1), keys | {"participants": 1}
    loop = Loop(0, data, n, "nonconvex-loss")
    method = {"name": name, "stepsize": GAMMA} | keys
    assert near(loop.run(method, {"name": "identity"}, rounds=ROUNDS).x, function(loop), 1e-9)


RANDK = {"name": "randk", "k": 7}
N, M, D = 6, 1600 // 6, 123  # the sample among 6 workers
BITS = 32 * 7  # of a compressed message


def logged(method, tmp_path, compressor=RANDK, **options):
    run_tables(table(method | {"stepsize": 0.1}, compressor, **options), tmp_path / "log.h5")
    return columns(tmp_path / "log.h5")


def test_pp_marina_compresses_each_draw_of_a_client_anew():
    method = {"name": "pp-marina", "p": 0.1, "participants": 6, "stepsize": GAMMA}
    loop = Loop(0, loss="nonconvex-loss")
    end = loop.run(method, {"name": "randk", "k": 90}, rounds=ROUNDS)
    assert near(end.x, pp_marina(loop, 0.1, 6, K=90), 1e-9)


def test_pp_marina_charges_only_drawn_clients(tmp_path):
    n, m, r = N, M, 3
    method = {"name": "pp-marina", "p": 0.2, "participants": r}
    c = logged(method, tmp_path, {"name": "randk", "k": 10}, rounds=60)
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


SENT = [
    ({"name": "dasha"}, {N * BITS}, {N * M}),
    ({"name": "dasha-page", "batch": 4, "p": 0.2}, {N * BITS}, {N * M, 2 * N * 4}),
    ({"name": "dasha-mvr", "batch": 4, "big_batch": 50}, {N * BITS}, {2 * N * 4}),
    (
        {"name": "dasha-sync-mvr", "batch": 4, "big_batch": 50, "p": 0.2},
        {N * BITS, N * 32 * D},
        {2 * N * 4, N * 50},
    ),
]


@pytest.mark.parametrize("start", ["dense", "zero"])
@pytest.mark.parametrize(("method", "bits", "calls"), SENT, ids=[m["name"] for m, _, _ in SENT])
def test_what_a_round_sends_and_asks_for(method, bits, calls, start, tmp_path):
    c = logged(method | {"start": start}, tmp_path, rounds=60)
    assert set(np.diff(c["bits_up"][1:])) == bits
    assert set(np.diff(c["oracle_calls"][1:])) == calls
    assert c["bits_up"][1] == (N * 32 * D if start == "dense" else 0)
    assert c["oracle_calls"][1] == N * method.get("big_batch", M)


def bound(**method):
    return Setup(parse(table(method | {"stepsize": 0.1}, RANDK)), MPI.COMM_SELF).estimator


def test_parameters_of_the_theory():
    omega = D / 7 - 1
    assert bound(name="dasha").a == pytest.approx(1 / (2 * omega + 1), rel=1e-14)
    assert bound(name="dasha-page", batch=4).p == pytest.approx(4 / (4 + M), rel=1e-14)
    # the floors of DASHA-MVR and DASHA-SYNC-MVR with the same B', over sigma^2 / n
    b = bound(name="dasha-mvr", batch=4, big_batch=50).b
    floor = (96 * omega * (2 * omega + 1) * b**2 + 4 * b) / 4
    assert floor == pytest.approx(2 / 50, rel=1e-13)
    sync = {"name": "dasha-sync-mvr", "batch": 4}
    assert bound(**sync, big_batch=50).p == pytest.approx(7 / D, rel=1e-14)
    assert bound(**sync, big_batch=200).p == pytest.approx(4 / 200, rel=1e-14)


def configured(name, omega, mega):
    """b, p or nothing, and the first batch: `generate_yaml` of config_libsvm_zero_marina.py."""
    if name == "dasha-mvr":
        noise_momentum = min(1 / float(mega), 1 / (omega * sqrt(mega)))
        return {"b": noise_momentum}, int(max(mega, omega * sqrt(mega)))
    prob_sync = {"p": min(1 / float(mega), 1 / (omega + 1))}
    return prob_sync if name == "dasha-sync-mvr" else {}, int(max(mega, omega))


@pytest.mark.parametrize("B", [1, 4])  # there, mega counts gradients of B samples
@pytest.mark.parametrize("mega", [10, 50])
@pytest.mark.parametrize("name", ["dasha-mvr", "dasha-sync-mvr", "vr-marina-online"])
def test_published_parameters(name, mega, B, tmp_path):
    values, first = configured(name, D / 7 - 1, mega)
    assert first > mega or name != "dasha-mvr"
    method = {"name": name, "batch": B, "big_batch": B * mega, "first_batch": "published"}
    method |= {"b": "published"} if name == "dasha-mvr" else {}
    used = bound(**method)
    for key, value in values.items():
        assert getattr(used, key) == pytest.approx(value, rel=1e-14)
    assert logged(method, tmp_path, rounds=1)["oracle_calls"][1] == N * B * first
    estimator("copy")(type("Copy", (ESTIMATORS[name],), {}))
    copy = method | {"name": "copy+gd", "estimator": "copy", "optimizer": "gd"}
    assert logged(copy, tmp_path / "copy", rounds=1)["oracle_calls"][1] == N * B * first


def test_a_round_on_the_quadratic_computes_what_is_sent(monkeypatch):
    """No gradient is worked out as a whole, and of g_i no more than what was sent is set."""

    def full(*_):
        raise AssertionError("a whole gradient")

    monkeypatch.setattr(QuadraticGradients, "fill", full)
    monkeypatch.setattr(QuadraticGradients, "fill_less", full)
    method = {"name": "dasha", "start": "zero", "stepsize": 0.3}
    tables = table(method, {"name": "randk", "k": 2}, rounds=25)
    quadratic = {"name": "quadratic", "workers": 40, "dimension": 300, "noise": 0.3}
    setup = Setup(parse(tables | {"problem": quadratic}), MPI.COMM_SELF)
    for _ in range(26):
        setup.state.step(0.3)
    assert 0 < np.count_nonzero(setup.estimator.g_i) <= 25 * 2 * 40
