"""FedNL: against a plain NumPy loop, and Hessians as vectors in every kernel."""

from itertools import product

import numpy as np
import pytest

from mpisim.comm.clock import SERVER, Clock
from mpisim.comm.network import Upload
from mpisim.core.numerics.eigen import packed, solve, triangle_size, unpacked
from mpisim.core.rng import Draw, Streams
from mpisim.problems import PROBLEMS
from tests.helpers import run_tables, some_of
from tests.methods.loops import SEED, Loop, N, near, top
from tests.methods.test_downlink import ROUNDS, tables
from tests.problems.support import FORMS, attach, make_rows

RANGES = [(0, 60), (60, 61), (61, 300), (300, 301), (301, 700)]
TOPK = {"name": "topk", "k": 400}
RANDK = {"name": "randk", "k": 1_000}
RANK = {"name": "symmetric-rank-k", "k": 4}


def symmetric(d, seed=0):
    a = np.random.default_rng(seed).standard_normal((d, d))
    return a + a.T


@pytest.mark.parametrize("d", [1, 6, 35])
def test_solve(d):
    a, b = symmetric(d), np.arange(1.0, d + 1)
    positive = a @ a + np.eye(d)
    assert np.allclose(solve(positive, b), np.linalg.solve(positive, b), rtol=1e-9)
    assert np.isnan(solve(-positive, b)).all()


@pytest.mark.parametrize(("form", "name"), list(product(FORMS, ["logistic", "least-squares"])))
def test_hessians_are_those_of_the_matrices(form, name):
    a, y = make_rows(form)
    problem = attach(name, a, y, RANGES, dense=form == "dense", l2=0.3)
    x = 0.1 * np.random.default_rng(1).standard_normal(problem.d)
    matrices = problem.hessian(x)
    for i, result in enumerate(problem.hessian_triangles(x)):
        expected = packed(matrices.rows(i, 0, problem.d))
        assert np.allclose(result, expected, rtol=1e-12, atol=1e-15)
    quadratic = PROBLEMS["quadratic"](dimension=6, noise=0.2).loaded(3, 0, 3, 1, np.dtype(float))
    first = unpacked(quadratic.hessian_triangles(np.zeros(6))[0], 6)
    assert np.allclose(first, quadratic.hessian(np.zeros(6)).rows(0, 0, 6), rtol=1e-14)


def test_clients_update_their_hessians_in_their_own_time(monkeypatch):
    """The clock is not the server's while H_i moves."""
    phases, at_update = [], []
    to, add_to = Clock.to, Upload.add_to

    def phase_of(clock, phase):
        phases.append(phase)
        to(clock, phase)

    def update(upload, *args):
        at_update.append(phases[-1])
        return add_to(upload, *args)

    monkeypatch.setattr(Clock, "to", phase_of)
    monkeypatch.setattr(Upload, "add_to", update)
    run_tables(tables({"name": "fednl", "hessian": RANDK, "stepsize": 1.0}, {"name": "identity"}))
    assert at_update and SERVER not in at_update


def hessians(loop, x):
    out = []
    for i in range(N):
        a, y = (part[i * loop.m : (i + 1) * loop.m] for part in (loop.a, loop.y))
        s = 1 / (1 + np.exp(y * (a @ x)))
        out.append((a.T * (s * (1 - s))) @ a / loop.m + loop.l2 * np.eye(loop.d))
    return np.array(out)


def natural(loop, rows):
    mantissa, exponent = np.frexp(np.abs(rows))  # mantissa in [1/2, 1)
    draw = Draw(Streams(SEED), "hessian", loop.k, 0, N)
    up = draw.uniforms(rows.shape[1]) < 2 * mantissa - 1
    return np.where(rows == 0, 0, np.sign(rows) * np.ldexp(1.0, exponent - 1 + up))


def rank(loop, rows):
    """The triangles of the matrices with the 4 largest eigenvalues."""
    out = []
    for row in rows:
        values, vectors = np.linalg.eigh(unpacked(row, loop.d))
        kept = np.argsort(-abs(values))[: RANK["k"]]
        out.append(packed((vectors[:, kept] * values[kept]) @ vectors[:, kept].T))
    return np.array(out)


D = triangle_size(Loop().d)
HESSIANS = {  # the compressor of triangles (N, D) in the loop's round, and alpha
    "topk": (TOPK, lambda loop, rows: top(rows, TOPK["k"]), 1 - np.sqrt(1 - TOPK["k"] / D)),
    "randk": (RANDK, lambda loop, rows: loop.randk(rows, "hessian", RANDK["k"]), RANDK["k"] / D),
    "natural": ({"name": "natural"}, natural, 8 / 9),
    "rank": (RANK, rank, 1 - np.sqrt(1 - RANK["k"] / Loop().d)),
}


def fednl(loop, option, C, alpha, mu=0.2):
    x = np.zeros(loop.d)
    H_i = hessians(loop, x)
    for loop.k in range(ROUNDS):
        now = hessians(loop, x)
        H, shift = H_i.mean(axis=0), np.mean([np.linalg.norm(h) for h in now - H_i])
        gradient = loop.every(x).mean(axis=0)
        if option == "A":
            values, vectors = np.linalg.eigh(H)
            H = vectors @ np.diag(np.maximum(values, mu)) @ vectors.T
        x = x - np.linalg.solve(H + (shift * np.eye(loop.d) if option == "B" else 0), gradient)
        if loop.k > 0:  # in round 0 the differences are 0
            sent = C(loop, np.array([packed(h) for h in now - H_i]))
            H_i = H_i + alpha * np.array([unpacked(row, loop.d) for row in sent])
    return x


@some_of(4, option=["A", "B"], name=HESSIANS)
def test_trajectory(name, option):
    hessian, C, alpha = HESSIANS[name]
    keys = {"name": "fednl", "hessian": hessian, "option": option, "stepsize": 1.0}
    end = run_tables(tables(keys | ({"regularisation": 0.2} if option == "A" else {})))
    x = fednl(Loop(), option, C, alpha)
    assert near(end.x, x)
    assert end.row["grad_norm_sq"] < 1e-10


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "fednl"},
        {"name": "fednl-ls", "regularisation": 0.2},
        {"name": "fednl-pp", "participants": 3},
    ],
    ids=lambda keys: keys["name"],
)
def test_single_precision(keys):
    keys = keys | {"hessian": TOPK, "stepsize": 1.0}
    single = run_tables(tables(keys, dtype="float32", wire="float32"))
    double = run_tables(tables(keys))
    assert single.x.dtype == np.float32
    assert near(single.x, double.x, 1e-4)


def test_line_search(mu=0.2, c=0.49, gamma=0.5):
    """From far away, where Newton's full step goes too far; factors below 1 are taken."""
    loop, size = Loop(), triangle_size(Loop().d)
    keys = {"name": "fednl-ls", "hessian": TOPK, "regularisation": 1e-3, "stepsize": 1.0}
    end = run_tables(tables(keys, rounds=8))
    alpha, x, H_i = 1 - np.sqrt(1 - TOPK["k"] / size), np.zeros(loop.d), None

    def f(x):
        a, y = (part[: N * loop.m] for part in (loop.a, loop.y))
        return np.mean(np.log1p(np.exp(-y * (a @ x)))) + loop.l2 / 2 * x @ x

    for r in range(8):
        now = hessians(loop, x)
        H_i = now if H_i is None else H_i
        values, vectors = np.linalg.eigh(H_i.mean(axis=0))
        gradient = loop.every(x).mean(axis=0)
        d = -vectors @ ((vectors.T @ gradient) / np.maximum(values, 1e-3))
        s = next(s for s in range(60) if f(x + gamma**s * d)
                 <= f(x) + c * gamma**s * gradient @ d + 1e-15)  # fmt: skip
        x = x + gamma**s * d
        if r > 0:
            sent = top(np.array([packed(h) for h in now - H_i]), TOPK["k"])
            H_i = H_i + alpha * np.array([unpacked(s, loop.d) for s in sent])
    assert near(end.x, x)
    assert f(x) < f(np.zeros(loop.d))


@pytest.mark.parametrize("r", [2, N])
def test_some_clients(r):
    keys = {"name": "fednl-pp", "hessian": TOPK, "stepsize": 1.0} | (
        {"participants": r} if r < N else {}
    )
    end, loop = run_tables(tables(keys)), Loop()
    size, x = triangle_size(loop.d), np.zeros(loop.d)
    alpha = 1 - np.sqrt(1 - TOPK["k"] / size)
    H, l = hessians(loop, x), np.zeros(N)  # noqa: E741
    g = np.einsum("ijk,k->ij", H, x) - loop.every(x)
    for loop.k in range(ROUNDS):
        if loop.k > 0:
            S = loop.clients(r) if r < N else range(N)
            now, gradients = hessians(loop, x), loop.every(x)
            for i in S:
                sent = top(packed(now[i] - H[i])[None], TOPK["k"])[0]
                H[i] += alpha * unpacked(sent, loop.d)
                l[i] = np.linalg.norm(H[i] - now[i])
                g[i] = (H[i] + l[i] * np.eye(loop.d)) @ x - gradients[i]
        x = np.linalg.solve(H.mean(axis=0) + l.mean() * np.eye(loop.d), g.mean(axis=0))
    assert near(end.x, x)
    d = loop.d
    index = end.row["bits_up"] - 64 * N * (size + d) - 64 * (ROUNDS - 1) * r * (d + 1 + TOPK["k"])
    assert 0 < index <= (ROUNDS - 1) * r * TOPK["k"] * np.ceil(np.log2(size))
    assert end.row["bits_down"] == 64 * (ROUNDS - 1) * r * d
