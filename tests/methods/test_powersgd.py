"""PowerSGD against a plain loop of the paper's scheme; its bits; matrices of low rank."""

import numpy as np
import pytest
from scipy.stats import norm

from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators.powersgd import PowerSGD, orthonormal
from tests.helpers import run_tables, set_up, table

SEED, ROUNDS, GAMMA, N = 5, 12, 0.05, 6
AUTOENCODER = {"name": "autoencoder", "code_size": 4, "reduction": "mean", "data": "sample"}
AUTOENCODER |= {"images": 30, "homogeneity": 0.4}
SHAPES = (784, 4), (4, 784)
LOGISTIC = {"name": "logistic", "data": "sample", "l2": 0.1}


def tables(rank, problem=AUTOENCODER, **run):
    method = {"name": "powersgd", "rank": rank, "stepsize": GAMMA}
    run = {"rounds": ROUNDS, "seed": SEED, "wire": "float64"} | run
    return table(method, workers=N, problem=problem, **run)


def plain(setup, rank):
    """The last point: QR by LAPACK, errors of the published code, and the mean of the matrices."""
    draws = (Draw(Streams(SEED), "uniforms", 0, 0, 1, None, j) for j in range(2))
    Q = [norm.ppf(next(draws).uniforms(b * rank)[0]).reshape(b, rank) for a, b in SHAPES]
    x, e = setup.problem.initial_point(), 0
    for _ in range(ROUNDS):
        M_i = setup.problem.gradients(x) + e
        parts, at = [], 0
        for j, (a, b) in enumerate(SHAPES):
            M = M_i[:, at : at + a * b].mean(axis=0).reshape(a, b)
            P = np.linalg.qr(M @ Q[j])[0]
            Q[j], at = M.T @ P, at + a * b
            parts.append((P @ Q[j].T).ravel())
        g = np.concatenate(parts)
        e, x = M_i - g, x - GAMMA * g
    return x


@pytest.mark.parametrize("rank", [1, 3])
def test_trajectory(rank):
    """Columns of P have other signs than LAPACK's, which no product P Q^T sees."""
    end, x = run_tables(tables(rank)), plain(set_up(tables(rank)), rank)
    assert np.linalg.norm(end.x - x) <= 1e-9 * np.linalg.norm(x)
    values = rank * sum(a + b for a, b in SHAPES)
    assert end.row["bits_up"] == end.row["bits_down"] == 64 * N * ROUNDS * values


def test_what_is_smaller_than_its_factors_is_sent_itself():
    """123 = 3 x 41 numbers: of rank 3 these are all, in one exchange, and the method is GD."""
    end = run_tables(tables(3, LOGISTIC))
    gd = run_tables(tables(3, LOGISTIC) | {"method": {"name": "gd", "stepsize": GAMMA}})
    assert end.x.tobytes() == gd.x.tobytes()
    assert end.row["bits_up"] == gd.row["bits_up"] == 64 * N * ROUNDS * 123


def of_rank(rng, rank):
    """Matrices of the autoencoder's shapes."""
    parts = [rng.standard_normal((a, rank)) @ rng.standard_normal((rank, b)) for a, b in SHAPES]
    return np.concatenate([part.ravel() for part in parts])


def test_the_first_round_keeps_rank_over_the_shorter_side():
    """E|P P^T M|^2 >= r / min(a, b) |M|^2, with equality if all singular values are equal."""
    for values in (np.ones(4), np.array([3.0, 1, 1, 0.5])):
        rng, M = np.random.default_rng(1), np.diag(values) @ np.eye(4, 9)
        P = [orthonormal(M @ rng.standard_normal((9, 2))) for _ in range(4000)]
        kept = np.array([((p.T @ M) ** 2).sum() for p in P]) / (M**2).sum()
        if values[0] == 1:
            np.testing.assert_allclose(kept, 2 / 4, rtol=1e-12)
        else:
            assert kept.mean() - 5 * kept.std() / 4000**0.5 > 2 / 4 > kept.min()


def test_a_column_without_use_comes_back(monkeypatch):
    """Gradients of rank 0, 1 and 2 are exact in their first round, of rank 3 in none."""
    rng, estimator = np.random.default_rng(3), set_up(tables(2)).estimator
    for rank in (0, 1, 2, 3):
        g = of_rank(rng, rank)
        monkeypatch.setattr(PowerSGD, "gradients", lambda self, x, g=g: np.tile(g, (N, 1)))
        sent = (estimator.estimate if rank else estimator.start)(np.zeros(g.size))
        if rank < 3:
            np.testing.assert_allclose(sent, g, atol=1e-9)
    assert np.linalg.norm(sent - g) > 0.1 * np.linalg.norm(g)


def test_orthonormal():
    p = np.random.default_rng(0).standard_normal((30, 4))
    p[:, 2] = p[:, 0] + 1e-9 * p[:, 2]
    q = orthonormal(p.copy())
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(q @ (q.T @ p), p, atol=1e-12)
    assert not orthonormal(np.zeros((5, 2))).any()
    assert np.isnan(orthonormal(np.full((5, 2), np.nan))).all()
    for u, v in zip(p.reshape(-1, 4), np.abs(p[::-1, :3]), strict=True):
        q = orthonormal(np.outer(u, v))  # of rank 1: what is left of two columns is rounding
        np.testing.assert_allclose(q @ (q.T @ u), u, atol=1e-12)
        assert not q[:, 1:].any()
