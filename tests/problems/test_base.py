"""What every problem, of mpisim or of a plugin, can rely on."""

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.schema import build
from mpisim.problems import PROBLEMS, Problem, problem
from tests.helpers import columns, run_tables

TABLES = {
    "quadratic": {"dimension": 6, "noise": 0.3},
    "autoencoder": {"data": "sample", "images": 40, "code_size": 2},
    "torch": {"data": "generated", "samples": 40, "model": "linear", "device": "cpu"},
}


@pytest.fixture
def shifted():
    """A problem of a plugin: f_i(x) = |x - i|^2 / 2, defined by losses and gradients."""

    @problem("shifted")
    class Shifted(Problem):
        size: int = 3

        def load(self, n, first, count, seed, dtype):
            self.n, self.first, self.m, self.d, self.dtype = n, first, count, self.size, dtype
            self.rows, self.identical, self.identity = np.ones(count, np.int64), n == 1, "shifted"
            self.shifts = np.arange(first, first + count)[:, None]

        def losses(self, x):
            return ((x - self.shifts) ** 2).sum(axis=1) / 2

        def gradients(self, x):
            return x - self.shifts

        def batch_gradients(self, x, batch):
            return self.gradients(x)

    yield Shifted
    del PROBLEMS["shifted"]


def test_losses_and_gradients_make_a_problem(shifted, tmp_path):
    gd = {"name": "gd", "stepsize": 1.0}
    tables = {"problem": {"name": "shifted", "size": 5}, "method": gd, "run": {"rounds": 1}}
    assert run_tables(tables, tmp_path / "log.h5").x.tolist() == [0.0] * 5
    assert columns(tmp_path / "log.h5")["loss"].tolist() == [0.0, 0.0]
    one = shifted().loaded(4, 1, 2, 0, np.dtype(float))
    assert one.losses_and_gradients(np.zeros(3))[0].tolist() == [1.5, 6.0]
    assert not one.explicit and not one.tested


def test_a_problem_without_gradients_is_refused():
    with pytest.raises(TypeError, match="'bare': Bare must define losses and gradients"):

        @problem("bare")
        class Bare(Problem):
            def losses(self, x):
                return np.zeros(1)

    assert "bare" not in PROBLEMS


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_load_leaves_the_keys_alone(name):
    if name == "torch":
        pytest.importorskip("torch")
    spec = PROBLEMS[name](**TABLES.get(name, {"data": "sample"}))
    before = dict(vars(spec))
    made = spec.loaded(3, 1, 2, 7, np.dtype("float32"))
    assert made.options() == spec.options() and vars(spec) == before
    assert (made.n, made.first, made.m, made.seed, made.dtype) == (3, 1, 2, 7, np.float32)
    assert made.double().options() == spec.options() and made.double().dtype == np.float64


def test_keys_of_the_table():
    table = {"data": "sample", "lambda": 0.5}
    problem = build(PROBLEMS["logistic-nonconvex-reg"], table, "problem")
    assert problem.lambda_ == 0.5 and problem.name == "logistic-nonconvex-reg"
    with pytest.raises(InputError, match=r"^problem\.data: missing"):
        build(PROBLEMS["logistic"], {}, "problem")
