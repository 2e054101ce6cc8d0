"""Messages down: compressed, one for all or another for each worker, against plain NumPy loops."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.comm.communicators import OneProcess
from mpisim.core.errors import InputError
from mpisim.core.numerics import philox
from mpisim.core.rng import Draw, Streams, purpose_key
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import dense, run_tables, table
from tests.methods.test_reference import top

N, ROUNDS, SEED, L2, GAMMA = 6, 25, 5, 0.1, 0.3
TOPK, RANDK = {"name": "topk", "k": 5}, {"name": "randk", "k": 20}


class Loop:
    """Logistic regression on the sample, with draws by their addresses."""

    def __init__(self):
        self.a, self.y = dense("sample")
        self.m, self.d, self.k = len(self.a) // N, self.a.shape[1], 0

    def gradients(self, xs):
        out = []
        for i, x in enumerate(xs):
            a, y = (part[i * self.m : (i + 1) * self.m] for part in (self.a, self.y))
            out.append(-a.T @ (y / (1 + np.exp(y * (a @ x)))) / self.m + L2 * x)
        return np.array(out)

    def coin(self, p, number=0):
        return philox.uniform(SEED, purpose_key("coin"), self.k, number) < p

    def randk(self, v, purpose, K=20, message=0):
        kept = Draw(Streams(SEED), purpose, self.k, 0, N, None, message).subsets(self.d, K)
        out = np.zeros((N, self.d))
        for i, row in enumerate(kept):
            out[i, row] = self.d / K * v[i, row]
        return out


def scaffnew(loop, p=0.3):
    x, h = np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        x_i, number, done = np.tile(x, (N, 1)), 0, False
        while not done:
            hat = x_i - GAMMA * (loop.gradients(x_i) - h)
            done = loop.coin(p, number)
            number += 1
            x_i = np.tile(hat.mean(axis=0), (N, 1)) if done else hat
            h = h + p / GAMMA * (x_i - hat)
        x = x_i[0]
    return x


def ef21_p(loop, alpha=0.1):
    x, w, h = np.zeros(loop.d), np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        w = w + top((x - w)[None], 5)[0]
        m = loop.randk(loop.gradients(np.tile(w, (N, 1))) - h, "up")
        x = x - GAMMA * (h + m).mean(axis=0)
        h = h + alpha * m
    return x


def marina_p(loop, p=0.2):
    x, w = np.zeros(loop.d), np.zeros((N, loop.d))
    old = x
    for loop.k in range(ROUNDS):
        if loop.k > 0:
            step = np.tile(x - old, (N, 1))
            w = np.tile(x, (N, 1)) if loop.coin(p) else w + loop.randk(step, "down")
        old, x = x, x - GAMMA * loop.gradients(w).mean(axis=0)
    return x


def masks(groups):
    """Who sends which coordinate, (N, d), in each round: what the wire says, not the method."""
    setup = Setup(
        parse(tables({"name": "marina"}, {"name": "permk", "groups": groups})), OneProcess()
    )
    ones = np.ones((N, setup.problem.d))
    draws = (Draw(Streams(SEED), "up", k, 0, N) for k in range(ROUNDS))
    return [setup.compressor.compress(ones, draw).decoded() != 0 for draw in draws]


@pytest.mark.parametrize("s", [2, 3, 6])
def test_compressed_scaffnew(s, p=0.3):
    """s workers send each coordinate: x is the mean of theirs, and they move their h_i there."""
    loop, sent = Loop(), masks(s)
    x, h = np.zeros(loop.d), np.zeros((N, loop.d))
    end = run_tables(tables({"name": "compressed-scaffnew", "p": p, "eta": 0.4},
                            {"name": "permk", "groups": s}))  # fmt: skip
    for loop.k in range(ROUNDS):
        x_i, number, done = np.tile(x, (N, 1)), 0, False
        while not done:
            x_i = x_i - GAMMA * (loop.gradients(x_i) - h)
            done = loop.coin(p, number)
            number += 1
        mask = sent[loop.k]
        assert (mask.sum(axis=0) == s).all()
        x = (mask * x_i).sum(axis=0) / s
        h = h + p * 0.4 / GAMMA * mask * (x - x_i)
    assert np.linalg.norm(end.x - x) <= 1e-12 * np.linalg.norm(x)
    assert end.row["bits_up"] == 64 * ROUNDS * s * loop.d


def test_compressed_scaffnew_converges_to_the_minimiser():
    method = {"name": "compressed-scaffnew", "p": 0.3}
    settings = tables(method, {"name": "permk", "groups": 3}, rounds=900, reference=True)
    assert run_tables(settings).row["distance_sq"] < 1e-20
    with pytest.raises(InputError, match=r"^compressor\.name: 'randk' .*as permk with groups"):
        run_tables(tables(method, RANDK))
    with pytest.raises(InputError, match=r"^compressor\.name: 'permk' .* twice or more"):
        run_tables(tables(method, {"name": "permk"}))


CASES = {
    "scaffnew": (scaffnew, {"p": 0.3}, None),
    "ef21-p": (ef21_p, {"down": TOPK, "alpha": 0.1}, RANDK),
    "marina-p": (marina_p, {"down": RANDK, "p": 0.2}, None),
}


def tables(method, compressor=None, **run):
    problem = {"name": "logistic", "l2": L2}
    run = {"rounds": ROUNDS, "seed": SEED, "wire": "float64"} | run
    return table({"stepsize": GAMMA} | method, compressor, workers=N, problem=problem, **run)


@pytest.mark.parametrize("name", CASES)
def test_trajectory(name):
    loop, keys, compressor = CASES[name]
    end = run_tables(tables({"name": name} | keys, compressor))
    x = loop(Loop())
    assert np.linalg.norm(end.x - x) <= 1e-12 * np.linalg.norm(x)


def test_scaffnew_is_as_fast_as_the_theorem_says():
    """T steps multiply its Lyapunov function by (1 - min(gamma mu, p^2))^T on average at most."""
    method = {"name": "scaffnew", "p": 0.4, "stepsize": "theory"}
    ends = [run_tables(tables(method, rounds=60, reference=True, seed=seed)) for seed in range(8)]
    rate = min(ends[0].attributes["stepsize"] * L2, 0.4**2)
    samples = len(dense("sample")[0]) // N * N
    first = [np.linalg.norm(end.x) for end in ends]
    steps = np.mean([end.row["oracle_calls"] for end in ends]) / samples
    assert steps > 2 * 60 and 0.05 < rate < 0.16
    assert np.mean([end.row["distance_sq"] for end in ends]) < np.exp(-0.5 * rate * steps) * max(
        first
    )


@pytest.mark.parametrize(
    ("compressor", "bits"),
    [
        ({"name": "permk"}, 64 * 20),  # all parts together are one vector
        ({"name": "randk", "k": 3}, 64 * 3 * N),
        ({"name": "identity"}, 64 * 20 * N),
        ({"name": "qsgd", "s": 3}, None),  # lengths cross
    ],
    ids=lambda own: own["name"] if isinstance(own, dict) else "",
)
def test_each_worker_is_sent_its_own_message(compressor, bits):
    """Rows of C_i(v): their mean over many rounds is v, and each is charged."""
    keys = {"name": "marina-p", "down": compressor, "stepsize": 0.1}
    quadratic = {"name": "quadratic", "workers": N, "dimension": 20}
    setup = Setup(parse(tables(keys) | {"problem": quadratic}), OneProcess())
    star, down, v = setup.star, setup.estimator.down, np.arange(1.0, 21.0)
    before = star.ledger.totals["bits_down"]
    rows = star.send(v, down)
    charged = star.ledger.totals["bits_down"] - before
    assert rows.shape == (N, 20) and (bits is None or charged == bits)
    other = star.send(np.tile(v, (N, 1)), down)
    same = compressor["name"] == "identity"
    assert np.array_equal(rows, other) == same == np.array_equal(rows[0], rows[1])
    if compressor["name"] == "permk":
        assert np.allclose(rows.mean(axis=0), v) and np.allclose(other.mean(axis=0), v)
    mean = sum(star.send(v, down) for _ in range(400)).mean(axis=0) / 400
    assert np.abs(mean - v).max() < 0.25 * v.max()


def test_permk_down_costs_one_vector_for_all():
    """In rounds without the coin, n workers get d numbers together."""
    method = {"name": "marina-p", "down": {"name": "permk"}, "p": 1e-9}
    end = run_tables(tables(method))
    assert end.row["bits_down"] == (ROUNDS - 1) * 64 * end.x.size
    assert end.row["bits_up"] == N * ROUNDS * 64 * end.x.size


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"down": {"name": "topk", "k": 500}}, r"^method\.down\.k: "),
        (
            {"down": {"name": "smooth", "inner": {"name": "rand-tau-plus"}}},
            r"^method\.down\.name: ",
        ),
        ({"down": {"name": "topkk"}}, r"^method\.down\.name: unknown name"),
        ({"down": 3}, r"^method\.down: 3 is not allowed"),
        ({}, r"^method\.down: missing"),
    ],
)
def test_what_is_not_allowed(keys, line):
    with pytest.raises(InputError, match=line):
        run_tables(tables({"name": "ef21-p"} | keys))
