"""FedNL: against a plain NumPy loop, and Hessians as vectors in every kernel."""

import numpy as np
import pytest

from mpisim.comm.clock import SERVER, Clock
from mpisim.comm.network import Upload
from mpisim.core.numerics.eigen import packed, solve, triangle_size, unpacked
from tests.helpers import calls_of, run_tables
from tests.methods.loops import Loop, N, near, top
from tests.methods.test_downlink import ROUNDS, tables
from tests.problems.support import FORMS, RANGES, attach, make_rows

TOPK = {"name": "topk", "k": 400}
RANDK = {"name": "randk", "k": 1_000}


@pytest.mark.parametrize("d", [1, 6, 35])
def test_solve(d):
    a, b = np.random.default_rng(0).standard_normal((d, d)), np.arange(1.0, d + 1)
    positive = a @ a.T + np.eye(d)
    assert np.allclose(solve(positive, b), np.linalg.solve(positive, b), rtol=1e-9)
    assert np.isnan(solve(-positive, b)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["logistic", "least-squares"])
def test_hessians_are_those_of_the_matrices(name, form):
    a, y = make_rows(form)
    problem = attach(name, a, y, RANGES, dense=form == "dense", l2=0.3)
    x = 0.1 * np.random.default_rng(1).standard_normal(problem.d)
    matrices = problem.hessian(x)
    for i, result in enumerate(problem.hessian_triangles(x)):
        expected = packed(matrices.rows(i, 0, problem.d))
        assert np.allclose(result, expected, rtol=1e-12, atol=1e-15)


def test_clients_update_their_hessians_in_their_own_time(monkeypatch):
    """The clock is not the server's while H_i moves."""
    phases, add_to, at_update = calls_of(monkeypatch, Clock, "to"), Upload.add_to, []

    def update(upload, *args):
        at_update.append(phases[-1][1])
        return add_to(upload, *args)

    monkeypatch.setattr(Upload, "add_to", update)
    keys = {"name": "fednl", "hessian": RANDK, "stepsize": 1.0}
    run_tables(tables(keys, {"name": "identity"}, rounds=3))
    assert at_update and SERVER not in at_update


def hessians(loop, x):
    out = []
    for i in range(N):
        a, y = (part[i * loop.m : (i + 1) * loop.m] for part in (loop.a, loop.y))
        s = 1 / (1 + np.exp(y * (a @ x)))
        out.append((a.T * (s * (1 - s))) @ a / loop.m + loop.l2 * np.eye(loop.d))
    return np.array(out)


def topk(loop, rows):
    return top(rows, TOPK["k"])


D = triangle_size(Loop().d)
ALPHA = 1 - np.sqrt(1 - TOPK["k"] / D)
HESSIANS = {  # the compressor of triangles (N, D) in the loop's round, and alpha
    "topk": (TOPK, topk, ALPHA),
    "randk": (RANDK, lambda loop, rows: loop.randk(rows, "hessian", RANDK["k"]), RANDK["k"] / D),
}


def moved(loop, H_i, now, C=topk, alpha=ALPHA):
    """H_i + alpha C(now - H_i)."""
    sent = C(loop, np.array([packed(h) for h in now - H_i]))
    return H_i + alpha * np.array([unpacked(row, loop.d) for row in sent])


def fednl(loop, C, alpha, mu=None, rounds=ROUNDS, factor=lambda x, d, gradient: 1.0):
    """Option A with mu, else B; ``factor``: of the step d."""
    x = np.zeros(loop.d)
    H_i = hessians(loop, x)
    for loop.k in range(rounds):
        now, gradient = hessians(loop, x), loop.every(x).mean(axis=0)
        H, shift = H_i.mean(axis=0), np.mean([np.linalg.norm(h) for h in now - H_i])
        if mu is None:
            H = H + shift * np.eye(loop.d)
        else:
            values, vectors = np.linalg.eigh(H)
            H = vectors @ np.diag(np.maximum(values, mu)) @ vectors.T
        d = -np.linalg.solve(H, gradient)
        x = x + factor(x, d, gradient) * d
        if loop.k > 0:  # in round 0 the differences are 0
            H_i = moved(loop, H_i, now, C, alpha)
    return x


@pytest.mark.parametrize("option", ["A", "B"])
@pytest.mark.parametrize("name", HESSIANS)
def test_trajectory(name, option):
    hessian, C, alpha = HESSIANS[name]
    mu = 0.2 if option == "A" else None
    keys = {"name": "fednl", "hessian": hessian, "option": option, "stepsize": 1.0}
    end = run_tables(tables(keys | ({"regularisation": mu} if mu else {})))
    assert near(end.x, fednl(Loop(), C, alpha, mu))
    assert end.row["grad_norm_sq"] < 1e-10


def test_line_search(mu=1e-3, c=0.49, gamma=0.5):
    """H_i that move all the way to what is sent are too small at times: factors fall below 1."""
    loop, taken = Loop(l2=1e-3), []
    a, y = (part[: N * loop.m] for part in (loop.a, loop.y))

    def f(x):
        return np.mean(np.log1p(np.exp(-y * (a @ x)))) + loop.l2 / 2 * x @ x

    def factor(x, d, gradient):
        s = 0
        while f(x + gamma**s * d) > f(x) + c * gamma**s * gradient @ d + 1e-15:
            s += 1
        taken.append(gamma**s)
        return taken[-1]

    keys = {"name": "fednl-ls", "hessian": TOPK, "alpha": 1.0, "stepsize": 1.0}
    end = run_tables(tables(keys | {"regularisation": mu}, l2=loop.l2, rounds=8))
    assert near(end.x, fednl(loop, topk, 1.0, mu, 8, factor))
    assert min(taken) < 0.2


@pytest.mark.parametrize("r", [2, N])
def test_some_clients(r):
    keys = {"name": "fednl-pp", "hessian": TOPK, "stepsize": 1.0}
    end = run_tables(tables(keys | ({"participants": r} if r < N else {})))
    loop, l = Loop(), np.zeros(N)  # noqa: E741
    x, d = np.zeros(loop.d), loop.d
    H = hessians(loop, x)
    g = np.einsum("ijk,k->ij", H, x) - loop.every(x)
    for loop.k in range(ROUNDS):
        if loop.k > 0:
            S = loop.clients(r) if r < N else range(N)
            now, gradients = hessians(loop, x), loop.every(x)
            new = moved(loop, H, now)
            for i in S:
                H[i] = new[i]
                l[i] = np.linalg.norm(H[i] - now[i])
                g[i] = (H[i] + l[i] * np.eye(d)) @ x - gradients[i]
        x = np.linalg.solve(H.mean(axis=0) + l.mean() * np.eye(d), g.mean(axis=0))
    assert near(end.x, x)
    index = end.row["bits_up"] - 64 * N * (D + d) - 64 * (ROUNDS - 1) * r * (d + 1 + TOPK["k"])
    assert 0 < index <= (ROUNDS - 1) * r * TOPK["k"] * np.ceil(np.log2(D))
    assert end.row["bits_down"] == 64 * (ROUNDS - 1) * r * d


VARIANTS = {"fednl": {}, "fednl-ls": {"regularisation": 0.2}, "fednl-pp": {"participants": 3}}


@pytest.mark.parametrize("name", VARIANTS)
def test_single_precision(name):
    keys = {"name": name, "hessian": TOPK, "stepsize": 1.0} | VARIANTS[name]
    single = run_tables(tables(keys, dtype="float32", wire="float32"))
    assert single.x.dtype == np.float32
    assert near(single.x, run_tables(tables(keys)).x, 1e-4)
