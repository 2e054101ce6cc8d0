"""Steps against their constraints and optimality; bounds against the true values."""

from itertools import pairwise, product
from math import sqrt

import numpy as np
import pytest

from mpisim.theory import quantization as q
from tests.helpers import some_of

SCHEMES = [0.0, 0.004, 1.0, 50.0]  # n mu; 0: DCGD+


def diagonal(d: int, seed: int = 0, zeros: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = np.exp(2 * rng.standard_normal(d))
    out[:zeros] = 0
    return out


def test_blocks_are_those_of_the_published_code():
    assert q.block_starts(54, 6).tolist() == [0, 9, 18, 27, 36, 45, 54]
    assert q.block_starts(10, 4).tolist() == [0, 2, 4, 6, 10]
    assert q.block_starts(3, 1).tolist() == [0, 3]


@pytest.mark.parametrize("n_mu", SCHEMES)
def test_varying_steps_are_the_best(n_mu):
    """Of all h with |h^-1| = beta, those minimise |Diag(L) h|, or sum (1 + A_j^2) h_j^2."""
    L, beta, rng = diagonal(9), 3.0, np.random.default_rng(1)
    weights = 1 + (L / n_mu) ** 2 if n_mu else L**2
    h = q.varying_steps(L, beta, n_mu)
    best = (weights * h**2).sum()
    for size in (1e-3, 0.3):
        for _ in range(200):
            other = h * np.exp(size * rng.standard_normal(9))
            other *= np.linalg.norm(1 / other) / beta
            assert (weights * other**2).sum() > best
    if n_mu:  # (27), with 1 + A_j in place of 1 + A_j^2, has another solution
        first = 1 + L / n_mu
        squares = np.sqrt(first).sum() / np.sqrt(first) / beta**2
        assert (first * squares).sum() < (first * h**2).sum()


def test_fixed_steps():
    """Varying ones are checked in test_saq.py, against (25) and (28)."""
    assert q.fixed_step(100, 100 / 5) == pytest.approx(5 / sqrt(100))  # n / sqrt(d)


def constraint(h, starts):
    return (1 / h**2 + np.sqrt(np.diff(starts)) / h).sum() + h.size


@some_of(6, n_mu=SCHEMES, blocks=[1, 3, 4, 13])
def test_block_steps(n_mu, blocks):
    L, beta = diagonal(13), blocks + 13 / 4
    starts = q.block_starts(13, blocks)
    h = {rule: q.block_steps(L, starts, beta, n_mu, rule) for rule in ("root", "stated", "bound")}
    assert constraint(h["root"], starts) == pytest.approx(beta, rel=1e-12)
    assert constraint(h["stated"], starts) <= beta * (1 + 1e-12)
    assert constraint(h["bound"], starts) < beta
    assert (h["root"] <= h["stated"] * (1 + 1e-12)).all() and (h["stated"] < h["bound"]).all()
    if n_mu == 0 or blocks == 1:  # D.2's is exact
        np.testing.assert_allclose(h["stated"], h["root"], rtol=1e-12)
    elif blocks < 13:
        assert (h["root"] < h["stated"] * (1 - 1e-6)).all()
    # max_l h_l A_l is the same for all blocks, so no feasible h has a smaller one
    A = q.block_norms(L, starts) + n_mu * np.sqrt(np.diff(starts))
    np.testing.assert_allclose(h["root"] * A, (h["root"] * A)[0], rtol=1e-13)
    assert constraint(0.999 * h["root"], starts) > beta


def test_block_steps_of_the_published_code():
    """As FACTS of the code have it: "bound" for DCGD+, "stated" for DIANA+, h of a fixed step."""
    L, n, d, mu = diagonal(54), 6, 54, 1e-3
    starts, beta = q.block_starts(d, n), d / n + n
    sizes = np.diff(starts)
    norms = np.array([np.linalg.norm(L[a:b]) for a, b in pairwise(starts)])
    T_B, T_1 = (np.sqrt(sizes) * norms).sum() / d, np.linalg.norm(L) / sqrt(d)
    delta = d * T_B / (beta - n) + sqrt(d / (beta - n)) * T_1
    np.testing.assert_allclose(q.block_steps(L, starts, beta, 0.0, "bound"), delta / norms)
    A = np.sqrt(sizes) + norms / (n * mu)
    T_B, T_1 = (np.sqrt(sizes) * A).sum() / d, 1 + np.linalg.norm(L) / (n * mu * sqrt(d))
    half = d * T_B / (2 * (beta - n))
    delta = half + sqrt(half**2 + d * T_1**2 / (beta - n))
    np.testing.assert_allclose(q.block_steps(L, starts, beta, n * mu, "stated"), delta / A)
    room = beta / n - 1
    fixed = (3 + sqrt(9 + 4 * room)) / (2 * room)  # blocks of 9
    np.testing.assert_allclose(q.block_steps(L, starts, beta, n * mu, "fixed"), fixed)


@some_of(6, n_mu=SCHEMES, tau=[0.3, 2.0, 8.5, 11.0])
def test_probabilities(n_mu, tau):
    L = diagonal(11)
    p = q.probabilities(L, tau, n_mu)
    assert p.sum() == pytest.approx(tau, rel=1e-12) and (p > 0).all() and (p <= 1).all()
    rho = (1 / p - 1) * (n_mu + L)  # the same for all: no other p makes the largest smaller
    np.testing.assert_allclose(rho, rho[0], rtol=1e-8, atol=1e-9)


def test_where_nothing_is_sent():
    L = diagonal(12, zeros=5)
    h = q.varying_steps(L, 2.0)
    assert (h[:5] == 1).all()
    np.testing.assert_allclose(h[5:], q.varying_steps(L[5:], 2.0), rtol=1e-14)
    starts = q.block_starts(12, 3)  # the first block is all zero
    h = q.block_steps(L, starts, 9.0)
    assert h[0] == 1 and np.isfinite(h).all()
    p = q.probabilities(L, 3.0)
    assert (p[:5] == 0).all() and p.sum() == pytest.approx(3)
    assert q.probabilities(L, 8.0).tolist() == [0.0] * 5 + [1.0] * 7
    assert q.sent_ones(L).tolist() == [0.0] * 5 + [1.0] * 7
    assert (q.varying_steps(np.zeros(3), 2.0) == 1).all()
    assert q.cal_L_independent(L, p) == pytest.approx(((1 / p[5:] - 1) * L[5:]).max())


def test_cal_L_of_sparsifiers_by_enumeration():
    """lambda_max(E[C L C] - L) over all outcomes: SAQ, A.1."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 4))
    L, p = a @ a.T, np.array([0.2, 0.9, 0.5, 0.4])
    second = np.zeros((4, 4))
    for kept in product([0, 1], repeat=4):
        kept = np.array(kept)
        c = np.diag(kept / p)
        second += np.prod(np.where(kept, p, 1 - p)) * c @ L @ c
    top = np.linalg.eigvalsh(second - L)[-1]
    assert q.cal_L_independent(L.diagonal(), p) == pytest.approx(top)
    for k in (1, 2, 3, 4):
        sets = [s for s in product([0, 1], repeat=4) if sum(s) == k]
        second = np.mean([np.diag(s) @ L @ np.diag(s) for s in sets], axis=0) * (4 / k) ** 2
        top = np.linalg.eigvalsh(second - L)[-1]
        assert q.cal_L_subsets(L, k) == pytest.approx(max(top, 0), abs=1e-12)
        assert q.cal_L_subsets(L, k) <= (4 / k - 1) * np.linalg.eigvalsh(L)[-1] * (1 + 1e-12)
