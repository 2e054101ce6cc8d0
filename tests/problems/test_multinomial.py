"""Multinomial logistic regression against plain formulas, and as two-class logistic regression."""

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
from tests.problems.support import FORMS, attach, make_rows

NAME, C, D, L2 = "multinomial-logistic", 4, 7, 0.3
RANGES = [(0, 300), (300, 301), (301, 690), (690, 700)]


def made(form, ranges=RANGES, first=0, dtype=np.float64):
    a, _ = make_rows(form, d=D)
    y = np.random.default_rng(3).integers(0, C, len(a)).astype(float)
    how = {"dense": form == "dense", "labels": np.arange(C), "l2": L2}
    problem = attach(NAME, a, y, ranges, len(RANGES), first, dtype, **how)
    return problem, a, y.astype(int)


def reference(a, y, x):
    """f_i and its gradient by the book, in long double."""
    a, W = np.asarray(a, np.longdouble), np.asarray(x, np.longdouble).reshape(C, D)
    z = a @ W.T
    top = z.max(axis=1, keepdims=True)
    total = np.exp(z - top).sum(axis=1, keepdims=True)
    p = np.exp(z - top) / total
    loss = np.mean(np.log(total[:, 0]) + top[:, 0] - z[np.arange(len(y)), y])
    loss += L2 / 2 * np.sum(W**2)
    gradient = (p - np.eye(C)[y]).T @ a / len(y) + L2 * W
    return float(loss), gradient.ravel().astype(float), p.astype(float)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 3e-6)])
@pytest.mark.parametrize("form", FORMS)
def test_formulas(form, dtype, tolerance):
    problem, a, y = made(form, dtype=dtype)
    assert problem.d == C * D and problem.shapes == ((C, D),)
    for scale in (0, 0.1, 1, 30):
        x = (scale * np.random.default_rng(0).normal(size=C * D)).astype(dtype)
        losses, gradients = problem.losses_and_gradients(x)
        for i, (start, stop) in enumerate(RANGES):
            loss, gradient, _ = reference(a[start:stop], y[start:stop], x)
            assert losses[i] == pytest.approx(loss, rel=tolerance)
            away = np.abs(gradients[i] - gradient).max()
            assert away <= tolerance * max(1, np.abs(gradient).max())


@pytest.mark.parametrize("form", FORMS)
def test_batches_and_points(form):
    problem, a, y = made(form)
    rng = np.random.default_rng(1)
    xs, batch = rng.normal(size=(len(RANGES), C * D)), np.array([[5, 5], [0, 0], [388, 1], [9, 3]])
    result = problem.batch_gradients(xs, batch)
    changes = problem.batch_changes(xs, xs[::-1].copy(), batch)
    for i, (start, _) in enumerate(RANGES):
        rows = start + batch[i]
        gradient = reference(a[rows], y[rows], xs[i])[1]
        other = reference(a[rows], y[rows], xs[-1 - i])[1]
        np.testing.assert_allclose(result[i], gradient, atol=1e-12)
        np.testing.assert_allclose(changes[i], gradient - other, atol=1e-12)
        alone = made(form, [RANGES[i]], i)[0]
        assert np.array_equal(alone.gradients(xs[i])[0], problem.gradients(xs)[i])
    overflow = problem.losses_and_gradients(np.full(C * D, 1e308))
    assert not np.isfinite(overflow[0]).any()


@pytest.mark.parametrize("form", FORMS)
def test_hessians(form):
    problem, a, y = made(form)
    x = np.random.default_rng(2).normal(size=C * D)
    matrices, bound = problem.hessian(x), problem.largest_hessian()
    v = np.random.default_rng(4).normal(size=(len(RANGES), C * D))
    for i, (start, stop) in enumerate(RANGES):
        rows, p = a[start:stop], reference(a[start:stop], y[start:stop], x)[2]
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
    nobody = made(form, ranges=[])[0].largest_hessian()
    assert nobody.times(np.zeros((0, C * D))).shape == (0, C * D) and nobody.norms().shape == (0,)


def test_flipped_labels():
    """The attack's class c becomes C - 1 - c, for workers 1 and 3 of the four."""
    problem, a, y = made("dense")
    for bad in (RANGES[1], RANGES[3]):
        y[slice(*bad)] = C - 1 - y[slice(*bad)]
    flipped = np.array([False, True, False, True])
    oracle = Oracle(problem, Clock(), 1, flipped)
    x, other = np.random.default_rng(5).normal(size=(2, C * D))
    batch = np.array([[5, 7], [0, 0], [388, 1], [9, 3]])
    losses, members = oracle.losses(x), np.array([1, 2])
    for i, (start, stop) in enumerate(RANGES):
        loss, gradient, _ = reference(a[start:stop], y[start:stop], x)
        assert losses[i] == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(oracle.gradients(x)[i], gradient, atol=1e-12)
        rows = start + batch[i]
        g, h = (reference(a[rows], y[rows], at)[1] for at in (x, other))
        np.testing.assert_allclose(oracle.batch_gradients(x, batch)[i], g, atol=1e-12)
        np.testing.assert_allclose(oracle.batch_changes(x, other, batch)[i], g - h, atol=1e-12)
    some = oracle.batch_gradients(x, batch[members], members), oracle.gradients(x, members)
    assert np.array_equal(some[0], oracle.batch_gradients(x, batch)[members])
    assert np.array_equal(some[1], oracle.gradients(x)[members])


TABLES = {"method": {"name": "gd", "stepsize": "theory"}, "run": {"rounds": 30, "seed": 2}}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    y = rng.choice([2.0, 5.0, 7.5], 120)
    x = rng.normal(size=(120, 6)) + 2 * np.eye(6)[(y / 2).astype(int)]
    (tmp_path / "train").write_text(to_text(x[:90], y[:90]))
    (tmp_path / "test").write_text(to_text(x[90:], y[90:]))
    (tmp_path / "new").write_text(to_text(x[90:], y[90:] + 1))
    keys = {"name": NAME, "workers": 9, "l2": 1e-2, "bias": True}
    return keys | {"data": str(tmp_path / "train"), "test": str(tmp_path / "test")}, x, y


def test_a_run(data):
    keys, x, y = data
    end = run_tables(TABLES | {"problem": keys | {"split": "dirichlet", "alpha": 0.5}})
    scores = np.column_stack([np.ones(120), x]) @ end.x.reshape(3, -1).T
    right = np.array([2, 5, 7.5])[scores.argmax(axis=1)] == y
    assert end.row["train_accuracy"] == pytest.approx(right[:90].mean(), rel=1e-12)
    assert end.row["test_accuracy"] == pytest.approx(right[90:].mean(), rel=1e-12)
    assert right.mean() > 0.8
    assert end.row["loss"] < np.log(3)


def test_newton_and_its_reference(data):
    """FedNL with all of the Hessian is Newton's method, and ends at the minimiser."""
    problem = {k: v for k, v in data[0].items() if k != "test"}
    method = {"name": "fednl", "hessian": {"name": "identity"}, "stepsize": 1.0}
    run = {"rounds": 30, "reference": True, "wire": "float64"}
    end = run_tables({"problem": problem, "method": method, "run": run})
    assert end.row["distance_sq"] < 1e-20 and end.row["grad_norm_sq"] < 1e-24


def test_labels(data):
    keys, *_ = data
    with pytest.raises(InputError, match=r"new: labels 3, 6, 8\.5 are not among"):
        run_tables(TABLES | {"problem": keys | {"test": keys["test"][:-4] + "new"}})
    keys = {k: v for k, v in keys.items() if k not in ("name", "test")}
    loaded = PROBLEMS[NAME](**keys, split="pathological").loaded(9, 0, 9, 1, np.dtype(float))
    shares = loaded.label_shares()
    assert shares.shape == (9, 3) and np.allclose(shares.sum(axis=1), 1)
