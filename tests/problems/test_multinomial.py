"""Multinomial logistic regression: Hessians, flipped labels and runs; formulas are in test_glm."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.comm.clock import Clock
from mpisim.core.errors import InputError
from mpisim.core.numerics.eigen import unpacked
from mpisim.methods.oracle import Oracle
from mpisim.problems import PROBLEMS
from tests.helpers import run_tables
from tests.problems.data.conftest import to_text
from tests.problems.support import FORMS, MULTINOMIAL, C, made
from tests.problems.test_glm import reference

D, L2 = 7, 0.3
RANGES = [(0, 300), (300, 301), (301, 690), (690, 700)]


@pytest.mark.parametrize("form", FORMS)
def test_hessians(form):
    a, _, problem = made(MULTINOMIAL, form, RANGES, D, l2=L2)
    assert problem.d == C * D and problem.shapes == ((C, D),)
    x = np.random.default_rng(2).normal(size=C * D)
    matrices, bound = problem.hessian(x), problem.largest_hessian()
    v = np.random.default_rng(4).normal(size=(len(RANGES), C * D))
    for i, (start, stop) in enumerate(RANGES):
        rows = a[start:stop]
        p = np.exp(rows @ x.reshape(C, D).T)
        p /= p.sum(axis=1, keepdims=True)
        weights = np.einsum("tc,cd->tcd", p, np.eye(C)) - np.einsum("tc,td->tcd", p, p)
        H = np.einsum("tcd,tj,tk->cjdk", weights, rows, rows).reshape(C * D, -1) / len(rows)
        H += L2 * np.eye(C * D)
        M = np.kron(np.eye(C), rows.T @ rows / (2 * len(rows))) + L2 * np.eye(C * D)
        for expected, one in ((H, matrices), (M, bound)):
            np.testing.assert_allclose(one.rows(i, 0, C * D), expected, atol=1e-13)
            np.testing.assert_allclose(one.rows(i, 5, 16), expected[5:16], atol=1e-13)
            np.testing.assert_allclose(one.times(v)[i], expected @ v[i], atol=1e-12)
            np.testing.assert_allclose(one.times(v[0])[i], expected @ v[0], atol=1e-12)
            np.testing.assert_allclose(one.diagonals()[i], expected.diagonal(), atol=1e-13)
        assert np.linalg.eigvalsh(M - H).min() > -1e-12
        assert bound.norms()[i] == pytest.approx(np.linalg.eigvalsh(M).max(), rel=1e-12)
        triangle = problem.hessian_triangles(x)[i]
        np.testing.assert_allclose(unpacked(triangle, C * D), H, atol=1e-13)
    nobody = made(MULTINOMIAL, form, [], D)[2].largest_hessian()
    assert nobody.times(np.zeros((0, C * D))).shape == (0, C * D) and nobody.norms().shape == (0,)


def test_flipped_labels():
    """The attack's class c becomes C - 1 - c, for workers 1 and 3 of the four."""
    a, y, problem = made(MULTINOMIAL, "dense", RANGES, D, l2=L2)
    for bad in (RANGES[1], RANGES[3]):
        y[slice(*bad)] = C - 1 - y[slice(*bad)]
    oracle = Oracle(problem, Clock(), 1, np.array([False, True, False, True]))
    x, other = np.random.default_rng(5).normal(size=(2, C * D))
    batch, members = np.array([[5, 7], [0, 0], [388, 1], [9, 3]]), np.array([1, 2])
    losses, gradients = oracle.losses(x), oracle.gradients(x)
    drawn, changes = oracle.batch_gradients(x, batch), oracle.batch_changes(x, other, batch)
    for i, (start, stop) in enumerate(RANGES):
        loss, gradient = reference(MULTINOMIAL, a[start:stop], y[start:stop], x, l2=L2)
        assert losses[i] == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(gradients[i], gradient, atol=1e-12)
        rows = start + batch[i]
        g, h = (reference(MULTINOMIAL, a[rows], y[rows], at, l2=L2)[1] for at in (x, other))
        np.testing.assert_allclose(drawn[i], g, atol=1e-12)
        np.testing.assert_allclose(changes[i], g - h, atol=1e-12)
    assert np.array_equal(oracle.batch_gradients(x, batch[members], members), drawn[members])
    assert np.array_equal(oracle.gradients(x, members), gradients[members])


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Keys of three classes in a training and a test set, and their rows."""
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    y = rng.choice([2.0, 5.0, 7.5], 120)
    x = rng.normal(size=(120, 6)) + 2 * np.eye(6)[(y / 2).astype(int)]
    (tmp_path / "train").write_text(to_text(x[:90], y[:90]))
    (tmp_path / "test").write_text(to_text(x[90:], y[90:]))
    keys = {"data": str(tmp_path / "train"), "test": str(tmp_path / "test")}
    return keys | {"name": MULTINOMIAL, "workers": 9, "l2": 1e-2, "bias": True}, x, y


def test_a_run_and_its_test_set(data, tmp_path):
    keys, x, y = data
    tables = {"method": {"name": "gd", "stepsize": "theory"}, "run": {"rounds": 30, "seed": 2}}
    tables["problem"] = keys | {"split": "dirichlet", "alpha": 0.5}
    end = run_tables(tables)
    scores = np.column_stack([np.ones(120), x]) @ end.x.reshape(3, -1).T
    right = np.array([2, 5, 7.5])[scores.argmax(axis=1)] == y
    assert end.row["train_accuracy"] == pytest.approx(right[:90].mean(), rel=1e-12)
    assert end.row["test_accuracy"] == pytest.approx(right[90:].mean(), rel=1e-12)
    assert right.mean() > 0.8 and end.row["loss"] < np.log(3)
    shares = PROBLEMS[MULTINOMIAL](keys["data"], split="pathological").loaded(
        9, 0, 9, 1, np.dtype(float)
    ).label_shares()  # fmt: skip
    assert shares.shape == (9, 3) and np.allclose(shares.sum(axis=1), 1)
    (tmp_path / "test").write_text(to_text(x[90:], y[90:] + 1))
    with pytest.raises(InputError, match=r"test: labels 3, 6, 8\.5 are not among"):
        run_tables(tables)


def test_newton_and_its_reference(data):
    """FedNL with all of the Hessian is Newton's method, and ends at the minimiser."""
    problem = {k: v for k, v in data[0].items() if k != "test"}
    method = {"name": "fednl", "hessian": {"name": "identity"}, "stepsize": 1.0}
    run = {"rounds": 30, "reference": True, "wire": "float64"}
    end = run_tables({"problem": problem, "method": method, "run": run})
    assert end.row["distance_sq"] < 1e-20 and end.row["grad_norm_sq"] < 1e-24
