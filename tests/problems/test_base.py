"""What every problem can rely on; no bit depends on who computes it, for how many points."""

import sys
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI

from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows, coordinates, innovations, row_blocks
from mpisim.core.numerics.select import largest
from mpisim.core.registry import table_of
from mpisim.core.schema import build
from mpisim.problems import PROBLEMS, ExplicitProblem, Problem
from mpisim.problems import problem as registered
from mpisim.problems.explicit import LazyGradients
from mpisim.problems.torch.samples import SAMPLES, Samples
from mpisim.runs.sweep.executor import sweep
from tests.helpers import some_of
from tests.problems.support import FORMS, MULTINOMIAL, NAMES, SMALL, C, make_rows, part
from tests.problems.test_autoencoder import KEYS, autoencoder

N = 6
RANGES = [(0, 300), (300, 303), (303, 1170), (1170, 1173), (1173, 1950), (1950, 2100)]
NETWORK = {"model": "small-cnn", "data": "generated", "samples": 90, "width": 0.1, "pool": 4}
NETWORK |= {"chunk": 8, "augment": True, "device": "cpu"}


class Bowls(Problem):
    """A plugin's problem for points (d,) alone: f_i(x) = |x - i|^2 / 2."""

    def load(self, n, first, count, seed, dtype):
        self.n, self.first, self.m, self.d, self.dtype = n, first, count, 4, dtype
        self.rows, self.identical, self.identity = np.full(count, 3), n == 1, "bowls"
        self.centres = np.arange(first, first + count)[:, None]

    def losses_and_gradients(self, x):
        assert x.shape == (4,)
        return ((x - self.centres) ** 2).sum(axis=1) / 2, x - self.centres

    def batch_gradients(self, x, batch):
        return (x - self.centres) * (1 + batch.sum(axis=1, keepdims=True))

    def batch_changes(self, x, y, batch):
        assert x.shape == y.shape == (4,)
        return (x - y) * (1 + batch.sum(axis=1, keepdims=True))


class Members(Bowls):
    """The same for some workers at their cost alone."""

    def gradients(self, x, members=None):
        assert x.shape == (4,)
        return x - (self.centres if members is None else self.centres[members])

    def batch_gradients(self, x, batch, members=None):
        return self.gradients(x, members=members) * (1 + batch.sum(axis=1, keepdims=True))


class Rows(Bowls, rows_of_points=True):
    """The same for rows of points, but not for some workers."""

    def gradients(self, x):
        return x - self.centres

    def batch_gradients(self, x, batch):
        assert len(batch) == self.m
        return self.gradients(x) * (1 + batch.sum(axis=1, keepdims=True))


class Explicit(ExplicitProblem, Bowls):
    """The same by single coordinates."""

    loss_and_gradient = NotImplemented

    def lazy_gradients(self, x):
        return LazyBowls(self, x)


class LazyBowls(LazyGradients):
    def fill(self, first, out):
        rows = np.broadcast_to(self.x, self.shape) - self.problem.centres[self.workers]
        out[:] = rows[first : first + len(out)]

    def coordinates(self, ptr, indices, before):
        owner = np.repeat(np.arange(self.shape[0]), np.diff(ptr))
        centres = self.problem.centres[self.workers][owner, 0]
        at_x, at_before = (
            np.broadcast_to(0.0 if x is None else x, self.shape)[owner, indices] - centres
            for x in (self.x, before)
        )
        return at_x if before is None else at_x - at_before


def glm(name, form, **keys):
    """Of rows by hand, so many that a worker has several chunks."""
    a, y = (np.tile(v, reps) for v, reps in zip(make_rows(form), ((3, 1), 3), strict=True))
    y = np.arange(len(y)) % C if name == MULTINOMIAL else y
    ranges = [(0, 700)] * N if keys.get("split") else RANGES
    keys |= {"dense": form == "dense", "l2": 0.1}
    return lambda *block, dtype: part(name, a, y, ranges, *block, dtype=dtype, **keys)


def loaded(kind, **keys):
    def load(first, count, *, dtype):
        if kind == "torch":
            pytest.importorskip("torch")
        spec = PROBLEMS[kind](**keys) if isinstance(kind, str) else kind()
        return spec.loaded(N, first, count, 3, np.dtype(dtype))

    return load


MADE = {  # workers first, ..., first + count - 1 of N
    **{f"{name} {form}": glm(name, form) for name in (*NAMES, MULTINOMIAL) for form in FORMS},
    **{f"autoencoder {keys}": partial(autoencoder, N, **keys) for keys in KEYS},
    "homogeneous": glm("logistic", "sparse", split="homogeneous"),
    "quadratic": loaded("quadratic", dimension=9, noise=0.8),
    "torch": loaded("torch", **NETWORK),
    "tested": loaded("logistic", data="sample", test_="sample", split="shuffled"),
}
PLUGINS = {kind.__name__: loaded(kind) for kind in (Bowls, Members, Rows, Explicit)}


@pytest.fixture(params=MADE | PLUGINS)
def problem(request):
    dtype = "float32" if request.param == "torch" else "float64"
    return (MADE | PLUGINS)[request.param](0, N, dtype=dtype)


def points(problem, seed=0):
    """(m, d), as the problem has its vectors."""
    xs = 0.1 * np.random.default_rng(seed).standard_normal((problem.m, problem.d))
    return problem.arrays.placed(xs.astype(problem.dtype))


def diagonal(results):
    """Row i of result i."""
    return np.array([np.asarray(one)[i] for i, one in enumerate(results)])


def same(result, expected):
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.dtype == expected.dtype and result.tobytes() == expected.tobytes()


@pytest.mark.drawn(10)
def test_rows_have_the_bits_of_single_points(problem):
    xs, ys = points(problem), points(problem, 1)
    batch = np.random.default_rng(2).integers(0, problem.rows.min(), (N, 3))
    members = np.array([3, 0])
    for call in (
        *(problem.losses, problem.gradients, lambda x: problem.batch_gradients(x, batch)),
        *(lambda x, which=which: problem.losses_and_gradients(x)[which] for which in (0, 1)),
    ):
        same(call(xs), diagonal(call(x) for x in xs))
        same(call(0 * xs + xs[1]), call(xs[1]))
    some = problem.gradients(xs[members], members=members)
    same(some, np.asarray(problem.gradients(xs))[members])
    for start, end in ((xs, ys), (xs, ys[2]), (xs[2], ys)):  # between two points, from or to one
        pairs = zip(start + 0 * xs, end + 0 * xs, strict=True)
        changes = [problem.batch_changes(x, y, batch) for x, y in pairs]
        same(problem.batch_changes(start, end, batch), diagonal(changes))
    some = problem.batch_gradients(xs[members], batch[members], members=members)
    same(some, np.asarray(problem.batch_gradients(xs, batch))[members])
    some = problem.batch_gradients(xs[1], batch[members], members=members)
    same(some, np.asarray(problem.batch_gradients(xs[1], batch))[members])
    nobody = np.arange(0)
    none = problem.batch_gradients(xs[nobody], batch[nobody], members=nobody)
    assert none.shape == problem.gradients(xs[nobody], members=nobody).shape == (0, problem.d)


EXPLICIT = [name for name in MADE | PLUGINS if name.startswith(("autoenc", "quadr", "Explicit"))]
SOME = np.array([0, 2, 3])


@some_of(14, name=EXPLICIT, members=[None, SOME], dtype=["float32", "float64"])
def test_lazy_rows_have_the_bits_of_gradients(name, members, dtype):
    problem = (MADE | PLUGINS)[name](0, N, dtype="float64" if name == "Explicit" else dtype)
    workers, twice = np.arange(N) if members is None else members, np.array([2, 0, 2])
    xs, ys = (points(problem, seed)[workers] for seed in (0, 1))
    rng = np.random.default_rng(3)
    rows = [np.sort(rng.choice(problem.d, k, replace=False)) for k in (3, 0, 2, 4, 1, 4)]
    for x, y in ((xs, ys), (xs[0], ys[0]), (xs, ys[0]), (xs[0], ys)):
        lazy, other = (problem.lazy_gradients(at, members=members) for at in (x, y))
        dense, less = (problem.gradients(at, members=members) for at in (x, y))
        minus, array = lazy - other, less.copy()
        pairs = [(lazy, dense), (minus, dense - less), (array - lazy, less - dense)]
        pairs += [(innovations(lazy, array), dense - less), (lazy - array, dense - less)]
        if isinstance(lazy, LazyRows):  # a plugin's may have been computed at once
            pairs += [(2.0 * minus, 2.0 * (dense - less))]
        for rows_, expected in [*pairs, *((some[twice], all_[twice]) for some, all_ in pairs)]:
            taken = rows[: len(expected)]
            ptr, indices = np.cumsum([0, *map(len, taken)]), np.concatenate(taken)
            owner = np.repeat(np.arange(len(expected)), np.diff(ptr))
            values = coordinates(rows_, ptr, indices, problem.dtype)
            same(values, expected[owner, indices])
            same(np.concatenate([part for _, part in row_blocks(rows_)]), expected)
            if isinstance(rows_, LazyRows):
                same(rows_.rows(1, 3), expected[1:3])
                for k in {1, 4, problem.d // 2}:
                    found, values = rows_.largest(k)
                    same(found, largest(expected, k))
                    same(values, np.take_along_axis(expected, found, axis=1))


@pytest.mark.parametrize("shape", [(3,), (N, 3), (N - 1, 9), (N, 9, 1), ()])
def test_other_shapes_are_one_line(shape):
    problem = loaded("quadratic", dimension=9)(0, N, dtype="float64")
    bowls = loaded(Bowls)(0, N, dtype="float64")
    x, batch, all_ = np.zeros(shape), np.zeros((N, 1), np.int64), {"members": np.arange(N)}
    for method, *arguments in (
        (problem.gradients, x),
        (problem.lazy_gradients, x),
        (problem.batch_gradients, x, batch),
        (problem.batch_changes, np.zeros(9), x, batch),
        (partial(problem.gradients, **all_), x),
        (partial(problem.batch_gradients, **all_), x, batch),
        (bowls.losses, x),
        (partial(bowls.gradients, **all_), x),
    ):
        with pytest.raises(ValueError, match=r"^points of shape .*; allowed: \(\d,\) for one, or"):
            method(*arguments)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@some_of(12, dtype=["float64", "float32"])
def test_blocks_do_not_change_a_bit(make, dtype):
    everyone = make(0, N, dtype=dtype)
    away = 0.1 * np.random.default_rng(0).standard_normal(everyone.d).astype(dtype)
    x = everyone.initial_point() + everyone.arrays.placed(away)
    batch = np.random.default_rng(1).integers(0, everyone.rows.min(), (N, 7))

    def results(problem):
        rows = batch[problem.first : problem.first + problem.m]
        out = [*problem.losses_and_gradients(x), problem.losses(x), problem.gradients(x)]
        out += [problem.batch_gradients(x, rows), problem.batch_changes(x, x / 2, rows)]
        if problem.name in (*NAMES, "quadratic"):
            hessian = problem.largest_hessian()
            out += [hessian.norms(), hessian.diagonals(), hessian.times(x), problem.sample_norms()]
        return out + (list(problem.test(x)) if problem.tested else [])

    expected = [np.asarray(one) for one in results(everyone)]
    assert expected[1].dtype == dtype and expected[0].dtype == np.float64
    for blocks in ([1] * N, [2, 4], [0, 3, 0, 3]):
        parts = [make(sum(blocks[:i]), count, dtype=dtype) for i, count in enumerate(blocks)]
        for one, *others in zip(expected, *map(results, parts), strict=True):
            assert np.concatenate(others).tobytes() == one.tobytes()
        for problem in parts:
            assert np.array_equal(problem.initial_point(), everyone.initial_point())
            assert (problem.identical, problem.convex) == (everyone.identical, everyone.convex)
            if problem.explicit:
                (f, gradient), (f_all, all_gradient) = (
                    one.loss_and_gradient(x) for one in (problem, everyone)
                )
                assert f == f_all and np.array_equal(gradient, all_gradient)


def test_losses_and_gradients_make_a_problem(tmp_path):
    """A problem of a plugin, without the key workers, of which a sweep does not set any."""

    @registered("shifted")
    class Shifted(Rows):
        losses_and_gradients = Problem.losses_and_gradients

        def losses(self, x):
            return ((x - self.centres) ** 2).sum(axis=1) / 2

    one = Shifted().loaded(4, 1, 2, 0, np.dtype(float))
    assert one.losses_and_gradients(np.zeros(4))[0].tolist() == [2.0, 8.0]
    assert not one.explicit and not one.tested and not Shifted.has_workers()
    tables = {"problem": {"name": "shifted"}, "method": {"name": "gd", "stepsize": 1.0}}
    grid = [tables | {"run": {"rounds": 1, "seed": seed}} for seed in (1, 2)]
    ended = sweep(tmp_path, grid, MPI.COMM_SELF)
    assert [point.status for point in ended] == ["done", "done"]


def test_a_problem_without_gradients_is_refused():
    with pytest.raises(TypeError, match="'bare': Bare must define losses and gradients"):

        @registered("bare")
        class Bare(Problem):
            def losses(self, x):
                return np.zeros(1)

    assert "bare" not in PROBLEMS


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_load_leaves_the_keys_alone(name):
    if name == "torch":
        pytest.importorskip("torch")
    spec = build(PROBLEMS[name], SMALL[name], "problem")
    before = dict(vars(spec))
    made = spec.loaded(3, 1, 2, 7, np.dtype("float32"))
    assert table_of(made) == table_of(spec) and vars(spec) == before
    assert (made.n, made.first, made.m, made.seed, made.dtype) == (3, 1, 2, 7, np.float32)
    assert table_of(made.double()) == table_of(spec) and made.double().dtype == np.float64


def test_without_pytorch_it_is_one_line(monkeypatch):
    images, labels = np.zeros((N, 3, 8, 8), np.uint8), np.zeros(N, np.int64)
    monkeypatch.setitem(SAMPLES, "tiny", lambda: Samples(images, labels, images, labels, 1))
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "mpisim.problems.torch.network", raising=False)
    with pytest.raises(InputError, match=r"needs torch: pip install 'mpisim\[torch\]'"):
        PROBLEMS["torch"](data="tiny", model="linear").loaded(N, 0, N, 3, np.dtype("float32"))
