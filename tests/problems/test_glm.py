"""Generalized linear models against independent formulas; runs with several classes."""

import numpy as np
import pytest

from mpisim.comm.clock import Clock
from mpisim.core.errors import InputError
from mpisim.core.numerics.eigen import unpacked
from mpisim.methods.oracle import Oracle
from mpisim.problems import PROBLEMS
from tests.helpers import run_tables, some_of
from tests.problems.data.conftest import to_text
from tests.problems.support import FORMS, MULTINOMIAL, NAMES, RANGES, C, attach, made, part

ALL = (*NAMES, MULTINOMIAL)


def reference(name, a, y, x, l2=0.0, lambda_=0.1, reduction="mean"):
    """f_i and its gradient by the book, in long double."""
    a, y, x = (np.asarray(v, np.longdouble) for v in (a, y, x))
    classes = y.astype(int)
    z = a @ x.reshape(C, -1).T if name == MULTINOMIAL else a @ x
    one = np.longdouble(1)
    if name == "least-squares":
        loss, slope = (z - y) ** 2 / 2, z - y
    elif name == "nonconvex-loss":
        s, rest = one / (1 + np.exp(-y * z)), one / (1 + np.exp(y * z))  # rest = 1 - s
        loss, slope = rest**2, -2 * y * s * rest**2
    elif name == MULTINOMIAL:
        total = np.logaddexp.reduce(z, axis=1)
        loss = total - z[np.arange(len(y)), classes]
        slope = np.exp(z - total[:, None]) - np.eye(C)[classes]
    else:
        loss, slope = np.logaddexp(0, -y * z), -y / (1 + np.exp(y * z))
    mean = np.sum if reduction == "sum" else np.mean
    value = mean(loss) + l2 / 2 * (x @ x)
    gradient = (slope.T @ a).ravel() / (1 if reduction == "sum" else len(a)) + l2 * x
    if name == "logistic-nonconvex-reg":
        value += lambda_ * np.sum(x**2 / (1 + x**2))
        gradient += lambda_ * 2 * x / (1 + x**2) ** 2
    return float(value), gradient.astype(float)


def check(problem, a, y, ranges, x, tolerance, **keys):
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
@some_of(10, form=FORMS, name=ALL)
def test_formulas(name, form, dtype, tolerance):
    for scale, l2 in ((0.1, 0.7), (1, 0.0), (10, 0.7 if dtype == "float64" else 0.0)):
        a, y, problem = made(name, form, dtype=dtype, l2=l2)
        assert problem.design.form == {"ones": 0, "sparse": 1, "dense": 2}[form]
        x = (scale * np.random.default_rng(0).normal(size=problem.d)).astype(dtype)
        x.flags.writeable = False
        check(problem, a, y, RANGES, x, tolerance, l2=l2)
        assert problem.gradients(x).dtype == dtype == problem.initial_point().dtype
        strided = np.repeat(x, 2)[::2]
        assert np.array_equal(problem.gradients(strided), problem.gradients(x))


def test_sums_over_rows():
    a, y, problem = made("least-squares", "dense", reduction="sum", l2=0.1)
    x = np.random.default_rng(1).normal(size=problem.d)
    check(problem, a, y, RANGES, x, 1e-11, l2=0.1, reduction="sum")
    alone = part("least-squares", a, y, RANGES, 2, 1, dense=True, reduction="sum", l2=0.1)
    singles = [alone.batch_gradients(x, np.array([[row]])) for row in range(alone.rows[0])]
    assert np.allclose(np.mean(singles, axis=0), problem.gradients(x)[2:3], rtol=1e-11)  # unbiased


@some_of(8, form=FORMS, name=NAMES)
def test_diagonals_of_hessians(name, form):
    _, _, problem = made(name, form, l2=0.2)
    matrices = [problem.largest_hessian()]
    if problem.convex:
        matrices.append(problem.hessian(np.linspace(-1, 1, problem.d)))
    for one in matrices:
        expected = [one.rows(i, 0, problem.d).diagonal() for i in range(problem.m)]
        np.testing.assert_allclose(one.diagonals(), expected, rtol=1e-14)


BOUNDED = ("logistic", "nonconvex-loss", "logistic-nonconvex-reg")


@some_of(5, form=FORMS, name=BOUNDED)
def test_gradient_bounds(name, form):
    """No sample's gradient at any x is above G and G_inf, nor its variance above sigma^2."""
    a, y, problem = made(name, form, d=5)
    bounds = problem.gradient_bounds()
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


@some_of(8, form=FORMS, name=ALL)
def test_batches(name, form):
    a, y, problem = made(name, form, l2=0.2)
    x, w = np.random.default_rng(0).normal(size=(2, problem.d))
    batch = np.random.default_rng(2).integers(0, problem.rows[:, None], (6, 9))
    batch[:, 1] = batch[:, 0]  # counts twice
    result, changes = problem.batch_gradients(x, batch), problem.batch_changes(x, w, batch)
    for i, (start, _) in enumerate(RANGES):
        rows = start + batch[i]
        at_x, at_w = (reference(name, a[rows], y[rows], at, l2=0.2)[1] for at in (x, w))
        assert np.allclose(result[i], at_x, rtol=1e-12, atol=1e-13)
        assert np.allclose(changes[i], at_x - at_w, rtol=1e-12, atol=1e-13)
    assert name == MULTINOMIAL or not problem.batch_changes(x, x.copy(), batch).any()


@pytest.mark.parametrize("bad", [-1, 1, 2**40])
def test_rows_that_are_not_there(bad):
    _, _, problem = made("logistic", "sparse")
    batch, x = np.zeros((6, 2), np.int64), np.zeros(problem.d)
    batch[1, 1] = bad  # worker 1 has one row
    with pytest.raises(IndexError):
        problem.batch_gradients(x, batch)
    with pytest.raises(IndexError):
        problem.batch_changes(x, x + 1, batch)


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
def test_workers_that_have_the_same_rows(name):
    """If all rows are shared, each worker has what one alone would have; they are stored once."""
    _, _, problem = made(name, "sparse", [(0, 700)] * 3, split="homogeneous")
    a, y, alone = made(name, "sparse", [(0, 700)])
    overlap = attach(name, a, y, [(0, 400), (200, 700)])
    x, *v = np.random.default_rng(0).normal(size=(4, problem.d))
    for one, other in zip(
        problem.losses_and_gradients(x), alone.losses_and_gradients(x), strict=True
    ):
        assert np.array_equal(one, np.repeat(other, 3, axis=0))
    check(overlap, a, y, [(0, 400), (200, 700)], x, 1e-12)
    products = problem.largest_hessian().times(np.array(v))
    assert np.array_equal(products, [alone.largest_hessian().times(u)[0] for u in v])
    batch = np.array([[0, 5], [699, 3], [1, 2]])
    for i, gradient in enumerate(problem.batch_gradients(x, batch)):
        assert np.array_equal(gradient, alone.batch_gradients(x, batch[i : i + 1])[0])


D, L2 = 7, 0.3
OF_FOUR = [(0, 300), (300, 301), (301, 690), (690, 700)]


@pytest.mark.parametrize("form", FORMS)
def test_hessians_of_classes(form):
    a, _, problem = made(MULTINOMIAL, form, OF_FOUR, D, l2=L2)
    assert problem.d == C * D and problem.shapes == ((C, D),) and problem.label_shares() is None
    x = np.random.default_rng(2).normal(size=C * D)
    matrices, bound = problem.hessian(x), problem.largest_hessian()
    v = np.random.default_rng(4).normal(size=(len(OF_FOUR), C * D))
    for i, (start, stop) in enumerate(OF_FOUR):
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


def test_flipped_classes():
    """The attack's class c becomes C - 1 - c, for workers 1 and 3 of the four."""
    a, y, problem = made(MULTINOMIAL, "dense", OF_FOUR, D, l2=L2)
    for bad in (OF_FOUR[1], OF_FOUR[3]):
        y[slice(*bad)] = C - 1 - y[slice(*bad)]
    oracle = Oracle(problem, Clock(), 1, np.array([False, True, False, True]))
    x, other = np.random.default_rng(5).normal(size=(2, C * D))
    batch, members = np.array([[5, 7], [0, 0], [388, 1], [9, 3]]), np.array([1, 2])
    losses, gradients = oracle.losses(x), oracle.gradients(x)
    drawn, changes = oracle.batch_gradients(x, batch), oracle.batch_changes(x, other, batch)
    for i, (start, stop) in enumerate(OF_FOUR):
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
def classes(tmp_path, monkeypatch):
    """Keys of three classes in a training and a test set, and their rows."""
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    y = rng.choice([2.0, 5.0, 7.5], 120)
    x = rng.normal(size=(120, 6)) + 2 * np.eye(6)[(y / 2).astype(int)]
    (tmp_path / "train").write_text(to_text(x[:90], y[:90]))
    (tmp_path / "test").write_text(to_text(x[90:], y[90:]))
    keys = {"data": str(tmp_path / "train"), "test": str(tmp_path / "test")}
    return keys | {"name": MULTINOMIAL, "workers": 9, "l2": 1e-2, "bias": True}, x, y


def test_newton_of_classes_and_its_reference(classes):
    """FedNL with all of the Hessian is Newton's method, and ends at the minimiser."""
    problem = {key: value for key, value in classes[0].items() if key != "test"}
    method = {"name": "fednl", "hessian": {"name": "identity"}, "stepsize": 1.0}
    run = {"rounds": 30, "reference": True, "wire": "float64"}
    end = run_tables({"problem": problem, "method": method, "run": run})
    assert end.row["distance_sq"] < 1e-20 and end.row["grad_norm_sq"] < 1e-24


def test_a_run_of_classes_and_its_test_set(classes, tmp_path):
    keys, x, y = classes
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
