"""VR-MARINA, VR-DIANA, PP-MARINA and DASHA: plain loops, what is sent and asked for, parameters."""

from functools import partial
from math import sqrt

import numpy as np
import pytest

from mpisim.core.rng import Draw, Streams
from mpisim.problems.quadratic import QuadraticGradients
from tests.helpers import run_tables, set_up, some_of, table
from tests.methods.loops import SEED, Loop, near

ROUNDS, GAMMA = 30, 0.7


mean, median = partial(np.mean, axis=0), partial(np.median, axis=0)


def vr_marina(f, p, batch, big_batch=0, first_batch=0):
    """Algorithm 2, with ``big_batch`` Algorithm 3; with n = 1 it is PAGE (Li et al., 2020)."""

    def full(x, size):
        return f.every(x, f.samples(size, "big batch") if size else None).mean(axis=0)

    x = np.zeros(f.d)
    g = full(x, first_batch)
    for f.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(p):
            g = full(x, big_batch)
        else:
            rows = f.samples(batch) if big_batch else f.batch(batch)
            g = g + (f.every(x, rows) - f.every(old, rows)).mean(axis=0)
    return x


def vr_diana(f, p, batch, alpha):
    x = w = np.zeros(f.d)
    h = np.zeros((f.n, f.d))
    for f.k in range(ROUNDS):
        g = f.every(w)
        if f.k > 0:
            rows = f.batch(batch)
            g = f.every(x, rows) - f.every(w, rows) + g
            if f.coin(p):
                w = x
        m = g - h
        x = x - GAMMA * (h + m).mean(axis=0)
        h = h + alpha * m
    return x


def drawn_clients(seed, k, n, r):
    """With replacement."""
    return np.sort(Draw(Streams(seed), "sample", k, 0, 1).samples(np.array([n]), r)[0])


def pp_marina(f, p, participants, K=None):
    """With RandK of each message, also of the several of a client, unless K is None."""
    x, g = np.zeros(f.d), f.every(np.zeros(f.d)).mean(axis=0)
    for f.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * g
        if f.coin(p):
            g = f.every(x).mean(axis=0)
        else:
            drawn = drawn_clients(SEED, f.k, f.n, participants)
            changes = (f.every(x) - f.every(old))[drawn]
            sent = changes if K is None else f.randk(changes, "up", K, clients=drawn)
            g = g + sent.mean(axis=0)
    return x


def dasha(f, a, following=None, first=None, start="dense", sent=lambda v: v, rule=mean):
    """All methods, ``following`` giving h_i^{t+1} and whether g_i is h_i; ``sent``: C(v_i)."""
    x = np.zeros(f.d)
    h = (first or f.every)(x)
    g = h if start == "dense" else 0 * h
    for f.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * rule(g)
        before, (h, full) = h, following(x, old, h) if following else (f.every(x), False)
        g = h if full else g + sent(h - before - a * (g - before))
    return x


def dasha_page(f, p, batch, **keys):
    def following(x, old, h):
        rows = f.samples(batch)
        if f.coin(p):
            return f.every(x), False
        return h + f.every(x, rows) - f.every(old, rows), False

    return dasha(f, following=following, **keys)


def dasha_mvr(f, batch, big_batch, p=0.0, b=0.0, first_batch=None, **keys):
    def large(x):
        size = big_batch if f.k else first_batch or big_batch
        return f.every(x, f.samples(size, "big batch"))

    def following(x, old, h):
        if f.coin(p):
            return large(x), True
        rows = f.samples(batch)
        return f.every(x, rows) + (1 - b) * (h - f.every(old, rows)), False

    return dasha(f, following=following, first=large, **keys)


DASHA, ONLINE = {"start": "zero", "a": 0.3}, {"batch": 11, "big_batch": 50}
CASES = {  # the loop, and the method's keys
    "dasha": (dasha, DASHA),
    "dasha-page": (dasha_page, {"p": 0.2, "batch": 11} | DASHA),
    "dasha-mvr": (dasha_mvr, {"b": 0.1} | ONLINE | DASHA),
    "dasha-sync-mvr": (dasha_mvr, {"p": 0.2, "first_batch": 70} | ONLINE | DASHA),
    "vr-marina": (vr_marina, {"p": 0.2, "batch": 11}),
    "vr-marina-online": (vr_marina, {"p": 0.2, "first_batch": 70} | ONLINE),
    "vr-diana": (vr_diana, {"p": 0.1, "batch": 11, "alpha": 0.3}),
    "pp-marina": (pp_marina, {"p": 0.1, "participants": 4}),
}


@some_of(10, n=[1, 6], data=["sample", "mushrooms"], name=CASES)
def test_trajectory(name, data, n, need_data):
    """With n = 1, VR-MARINA is PAGE (Li et al., 2020)."""
    need_data(data)
    function, keys = CASES[name]
    if name == "pp-marina" and n == 1:
        keys = keys | {"participants": 1}
    loop, method = Loop(0, data, n, "nonconvex-loss"), {"name": name, "stepsize": GAMMA}
    end = loop.run(method | keys, {"name": "identity"}, rounds=ROUNDS)
    assert near(end.x, function(loop, **keys), 1e-9)


def test_pp_marina_compresses_each_draw_of_a_client_anew():
    loop, keys = Loop(0, loss="nonconvex-loss"), {"p": 0.1, "participants": 6}
    method = {"name": "pp-marina", "stepsize": GAMMA} | keys
    end = loop.run(method, {"name": "randk", "k": 90}, rounds=ROUNDS)
    assert near(end.x, pp_marina(loop, K=90, **keys), 1e-9)


@pytest.mark.parametrize("rule", [mean, median], ids=["mean", "median"])
def test_byz_dasha_page(rule):
    loop, keys = Loop(0, loss="nonconvex-loss"), {"p": 0.3, "batch": 7, "a": 0.2}
    method = {"name": "byz-dasha-page", "stepsize": GAMMA} | keys
    server = {"server": {"aggregate": rule.func.__name__}}
    run = {"problem": loop.problem, "rounds": ROUNDS, "seed": SEED, "wire": "float64"}
    end = run_tables(table(method, {"name": "randk", "k": 20}, **run) | server)
    sent = lambda v: loop.randk(v, "up")  # noqa: E731
    assert near(end.x, dasha_page(loop, sent=sent, rule=rule, **keys), 1e-9)


RANDK = {"name": "randk", "k": 7}
N, M, D = 6, 1600 // 6, 123  # the sample among 6 workers
BITS = 32 * 7  # of a compressed message


def logged(method, compressor=RANDK, **options):
    tables = table(method | {"stepsize": 0.1}, compressor, **options)
    return run_tables(tables, keep=True).columns


def test_pp_marina_charges_only_drawn_clients():
    r, again, dense = 3, 0, 32 * D
    c = logged({"name": "pp-marina", "p": 0.2, "participants": r}, rounds=60)
    bits, calls = np.diff(c["bits_up"][1:]), np.diff(c["oracle_calls"][1:])
    most, synchronised = np.diff(c["bits_up_max"][1:]), bits == N * dense
    for k in range(1, 60):
        times = np.unique(drawn_clients(1, k, N, r), return_counts=True)[1]
        again += times.max() > 1
        if synchronised[k - 1]:
            expected = N * dense, dense, N * M
        else:  # a client that is drawn twice sends twice, and computes once
            expected = r * BITS, times.max() * BITS, 2 * times.size * M
        assert (bits[k - 1], most[k - 1], calls[k - 1]) == expected
    assert again > 10 and 3 <= synchronised.sum() <= 24


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
def test_what_a_round_sends_and_asks_for(method, bits, calls, start):
    c = logged(method | {"start": start}, rounds=60)
    assert set(np.diff(c["bits_up"][1:])) == bits
    assert set(np.diff(c["oracle_calls"][1:])) == calls
    assert c["bits_up"][1] == (N * 32 * D if start == "dense" else 0)
    assert c["oracle_calls"][1] == N * method.get("big_batch", M)


def bound(**method):
    return set_up(table(method | {"stepsize": 0.1}, RANDK)).estimator


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
def test_published_parameters(name, mega, B):
    values, first = configured(name, D / 7 - 1, mega)
    assert first > mega or name != "dasha-mvr"
    method = {"name": name, "batch": B, "big_batch": B * mega, "first_batch": "published"}
    method |= {"b": "published"} if name == "dasha-mvr" else {}
    used = bound(**method)
    for key, value in values.items():
        assert getattr(used, key) == pytest.approx(value, rel=1e-14)
    assert logged(method, rounds=1)["oracle_calls"][1] == N * B * first


def test_a_round_on_the_quadratic_computes_what_is_sent(monkeypatch):
    """No gradient is worked out as a whole, and of g_i no more than what was sent is set."""
    for whole in ("fill", "fill_less"):
        monkeypatch.setattr(QuadraticGradients, whole, lambda *_: pytest.fail("whole gradients"))
    tables = table({"name": "dasha", "start": "zero", "stepsize": 0.3}, {"name": "randk", "k": 2})
    setup = set_up(tables | {"problem": {"name": "quadratic", "workers": 9, "dimension": 300}})
    for _ in range(6):
        setup.state.step(0.3)
    assert 0 < np.count_nonzero(setup.estimator.g_i) <= 5 * 2 * 9
