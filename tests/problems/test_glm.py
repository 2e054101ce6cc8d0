"""Losses and gradients against independent formulas, and the contract of `Problem`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import some_of
from tests.problems.support import FORMS, NAMES, RANGES, attach, make_rows, part


def reference(name, a, y, x, l2=0.0, lambda_=0.1, reduction="mean"):
    """f_i and its gradient by the book, in long double."""
    a, y, x = (np.asarray(v, np.longdouble) for v in (a, y, x))
    z, one = a @ x, np.longdouble(1)
    if name == "least-squares":
        loss, slope = (z - y) ** 2 / 2, z - y
    elif name == "nonconvex-loss":
        s, rest = one / (1 + np.exp(-y * z)), one / (1 + np.exp(y * z))  # rest = 1 - s
        loss, slope = rest**2, -2 * y * s * rest**2
    else:
        loss, slope = np.logaddexp(0, -y * z), -y / (1 + np.exp(y * z))
    mean = np.sum if reduction == "sum" else np.mean
    value = mean(loss) + l2 / 2 * (x @ x)
    gradient = a.T @ slope / (1 if reduction == "sum" else len(a)) + l2 * x
    if name == "logistic-nonconvex-reg":
        value += lambda_ * np.sum(x**2 / (1 + x**2))
        gradient += lambda_ * 2 * x / (1 + x**2) ** 2
    return float(value), gradient.astype(float)


def check(problem, a, y, ranges, x, tolerance=1e-13, **keys):
    losses, gradients = problem.losses_and_gradients(x)
    assert np.array_equal(losses, problem.losses(x))
    assert np.array_equal(gradients, problem.gradients(x))
    assert losses.shape == (len(ranges),) and gradients.shape == (len(ranges), len(x))
    for i, (start, stop) in enumerate(ranges):
        value, gradient = reference(problem.name, a[start:stop], y[start:stop], x, **keys)
        size = np.abs(a[start:stop]).sum(axis=0).max() / (stop - start) + np.abs(gradient).max()
        assert losses[i] == pytest.approx(value, rel=tolerance)
        assert np.abs(gradients[i] - gradient).max() <= tolerance * max(size, 1)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 3e-6)])
@some_of(8, form=FORMS, name=NAMES)
def test_formulas(name, form, dtype, tolerance):
    a, y = make_rows(form)
    for scale, l2 in ((0.1, 0.7), (1, 0.0), (10, 0.7 if dtype == "float64" else 0.0)):
        problem = attach(name, a, y, RANGES, dtype=dtype, dense=form == "dense", l2=l2)
        assert problem.design.form == {"ones": 0, "sparse": 1, "dense": 2}[form]
        x = (scale * np.random.default_rng(0).normal(size=a.shape[1])).astype(dtype)
        x.flags.writeable = False
        check(problem, a, y, RANGES, x, l2=l2, tolerance=tolerance)
        assert problem.gradients(x).dtype == dtype == problem.initial_point().dtype
        strided = np.repeat(x, 2)[::2]
        assert np.array_equal(problem.gradients(strided), problem.gradients(x))


def test_sums_over_rows():
    a, y = make_rows("dense")
    problem = attach("least-squares", a, y, RANGES, dense=True, reduction="sum", l2=0.1)
    x = np.random.default_rng(1).normal(size=a.shape[1])
    check(problem, a, y, RANGES, x, l2=0.1, reduction="sum", tolerance=1e-11)
    alone = part("least-squares", a, y, RANGES, 2, 1, dense=True, reduction="sum", l2=0.1)
    singles = [alone.batch_gradients(x, np.array([[row]])) for row in range(alone.rows[0])]
    assert np.allclose(np.mean(singles, axis=0), problem.gradients(x)[2:3], rtol=1e-11)  # unbiased


@some_of(8, form=FORMS, name=NAMES)
def test_diagonals_of_hessians(name, form):
    a, y = make_rows(form)
    problem = attach(name, a, y, RANGES, dense=form == "dense", l2=0.2)
    matrices = [problem.largest_hessian()]
    if problem.convex:
        matrices.append(problem.hessian(np.linspace(-1, 1, a.shape[1])))
    for one in matrices:
        expected = [one.rows(i, 0, a.shape[1]).diagonal() for i in range(problem.m)]
        np.testing.assert_allclose(one.diagonals(), expected, rtol=1e-14)


BOUNDED = ("logistic", "nonconvex-loss", "logistic-nonconvex-reg")


@some_of(8, form=FORMS, name=BOUNDED)
def test_gradient_bounds(name, form):
    """No sample's gradient at any x is above G and G_inf, nor its variance above sigma^2."""
    a, y = make_rows(form, d=5)
    bounds = attach(name, a, y, RANGES, dense=form == "dense").gradient_bounds()
    assert bounds.shape == (len(RANGES), 3)
    rng = np.random.default_rng(0)
    for (start, stop), (G, G_inf, variance) in zip(RANGES, bounds, strict=True):
        worst = int(np.argmax(np.linalg.norm(a[start:stop], axis=1)))
        row, sign = a[start + worst], y[start + worst]
        # where phi' of the longest row is steepest, and anywhere
        steepest = {"nonconvex-loss": np.log(0.5)}.get(name, -40.0) * sign * row
        points = [steepest / max(row @ row, 1e-9), *(3 * rng.standard_normal((4, 5)))]
        largest = np.zeros(2)
        for x in points:
            rows = range(start, stop)
            g = np.array([reference(name, a[t : t + 1], y[t : t + 1], x)[1] for t in rows])
            norms = [np.linalg.norm(g, axis=1).max(), np.abs(g).max()]
            assert norms[0] <= G * (1 + 1e-12) and norms[1] <= G_inf * (1 + 1e-12)
            assert ((g - g.mean(axis=0)) ** 2).sum(axis=1).mean() <= variance * (1 + 1e-12)
            largest = np.maximum(largest, norms)
        if name != "logistic-nonconvex-reg" and row.any():
            assert largest[0] == pytest.approx(G, rel=1e-9)
            assert largest[1] > 0.5 * G_inf


@some_of(8, form=FORMS, name=NAMES)
def test_batches(name, form):
    a, y = make_rows(form)
    problem = attach(name, a, y, RANGES, dense=form == "dense", l2=0.2)
    x = np.random.default_rng(0).normal(size=a.shape[1])
    batch = np.random.default_rng(2).integers(0, problem.rows[:, None], (6, 9))
    batch[:, 1] = batch[:, 0]  # counts twice
    result = problem.batch_gradients(x, batch)
    for i, (start, _) in enumerate(RANGES):
        rows = start + batch[i]
        _, expected = reference(name, a[rows], y[rows], x, l2=0.2)
        assert np.allclose(result[i], expected, rtol=1e-12, atol=1e-13)
    w = np.random.default_rng(3).normal(size=a.shape[1])
    changes = problem.batch_changes(x, w, batch)
    assert np.allclose(changes, result - problem.batch_gradients(w, batch), rtol=1e-12, atol=1e-13)
    assert not problem.batch_changes(x, x.copy(), batch).any()


@pytest.mark.parametrize("bad", [-1, 1, 2**40])
def test_rows_that_are_not_there(bad):
    a, y = make_rows("sparse")
    problem = attach("logistic", a, y, RANGES)
    batch = np.zeros((6, 2), np.int64)
    batch[1, 1] = bad  # worker 1 has one row
    with pytest.raises(IndexError):
        problem.batch_gradients(np.zeros(a.shape[1]), batch)
    with pytest.raises(IndexError):
        problem.batch_changes(np.zeros(a.shape[1]), np.ones(a.shape[1]), batch)


@pytest.mark.parametrize("name", ["logistic", "nonconvex-loss"])
def test_extreme_margins(name):
    z = np.array([0, 1e-300, 1e-3, 1, 30, 36.7, 40, 700, 708, 709, 745, 800, 1e4, 1e300])
    z = np.concatenate([z, -z])
    problem = attach(name, z[:, None], np.ones(len(z)), [(i, i + 1) for i in range(len(z))])
    with np.errstate(all="raise"):
        losses, gradients = problem.losses_and_gradients(np.ones(1))
    assert np.isfinite(losses).all() and np.isfinite(gradients).all()
    with np.errstate(all="ignore"):
        for t, loss, g in zip(z, losses, gradients[:, 0], strict=True):
            value, expected = reference(name, [[t]], [1.0], [1.0])
            assert loss == pytest.approx(value, rel=1e-14, abs=1e-300)
            if np.isfinite(expected[0]):
                assert g == pytest.approx(expected[0], rel=1e-14, abs=1e-290)


@pytest.mark.parametrize("name", NAMES)
def test_homogeneous(name):
    a, y = make_rows("sparse")
    problem = attach(name, a, y, [(0, 700)] * 3, split="homogeneous")
    alone = attach(name, a, y, [(0, 700)])
    overlap = attach(name, a, y, [(0, 400), (200, 700)])
    x = np.random.default_rng(0).normal(size=a.shape[1])
    pairs = zip(problem.losses_and_gradients(x), alone.losses_and_gradients(x), strict=True)
    for one, other in pairs:
        assert np.array_equal(one, np.repeat(other, 3, axis=0))
    check(overlap, a, y, [(0, 400), (200, 700)], x, tolerance=1e-12)
    v = np.random.default_rng(1).normal(size=(3, a.shape[1]))
    products = problem.largest_hessian().times(v)
    expected = [alone.largest_hessian().times(u)[0] for u in v]
    assert np.array_equal(products, expected)
    batch = np.array([[0, 5], [699, 3], [1, 2]])
    for i, gradient in enumerate(problem.batch_gradients(x, batch)):
        assert np.array_equal(gradient, alone.batch_gradients(x, batch[i : i + 1])[0])
