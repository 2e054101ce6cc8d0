"""What every problem, of mpisim or of a plugin, can rely on."""

from __future__ import annotations

import subprocess
import sys

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
    tables = {
        "problem": {"name": "shifted", "size": 5},
        "method": {"name": "gd", "stepsize": 1.0},
        "run": {"rounds": 1},
    }
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


BAD = [  # of a problem's table, and how the message goes on
    ("logistic", {"l2": -1.0}, "finite and at least 0"),
    ("logistic", {"l2": float("inf")}, "finite and at least 0"),
    ("logistic", {"lambda": 0.1}, "any_content, bias, data"),
    ("nonconvex-loss", {"workers": 0}, "at least 1"),
    ("nonconvex-loss", {"split": "odd"}, "'contiguous'"),
    ("logistic-nonconvex-reg", {"lambda": -0.1}, "finite and at least 0"),
    ("least-squares", {"reduction": "max"}, "'mean' or 'sum'"),
    ("quadratic", {"dimension": 0}, "at least 1"),
    ("quadratic", {"noise": -1.0}, "finite and at least 0"),
    ("quadratic", {"noise": float("nan")}, "finite and at least 0"),
    ("quadratic", {"noise_b": -1.0}, "finite and at least 0"),
    ("quadratic", {"lambda": 0.0}, "finite and above 0"),
    ("quadratic", {"factors": []}, "a list of finite numbers > 0"),
    ("quadratic", {"factors": [1.0, 0.0]}, "a list of finite numbers > 0"),
    ("quadratic", {"factors": [1.0] * 5}, "a list of at most n = 4 numbers"),
    ("autoencoder", {"homogeneity": 1.5}, "a number from 0 to 1"),
    ("autoencoder", {"code_size": 0}, "at least 1"),
    ("autoencoder", {"code_size": 785}, "at most d_f = 784"),
    ("autoencoder", {"lambda": -1.0}, "finite and at least 0"),
    ("autoencoder", {"images": 4}, "from n + 1 = 5 to the 1200 images of sample"),
    ("autoencoder", {"images": 2000}, "from n + 1 = 5 to the 1200 images of sample"),
    ("autoencoder", {"mix": "rows"}, "'workers' or 'samples'"),
]


@pytest.mark.parametrize(("name", "keys", "allowed"), BAD)
def test_bad_keys_are_one_line(name, keys, allowed):
    data = {"data": "sample"} if "data" in PROBLEMS[name].__dataclass_fields__ else {}
    with pytest.raises(InputError) as error:
        spec = build(PROBLEMS[name], {"workers": 4} | data | keys, "problem")
        spec.loaded(4, 0, 4, 1, np.dtype(float))
    [key] = keys
    assert str(error.value).startswith(f"problem.{key}: ") and "\n" not in str(error.value)
    assert "allowed" in str(error.value) and allowed in str(error.value)


def test_keys_of_the_table():
    table = {"data": "sample", "lambda": 0.5}
    problem = build(PROBLEMS["logistic-nonconvex-reg"], table, "problem")
    assert problem.lambda_ == 0.5 and problem.name == "logistic-nonconvex-reg"
    with pytest.raises(InputError, match=r"^problem\.data: missing"):
        build(PROBLEMS["logistic"], {}, "problem")


def test_importing_the_room_does_not_import_pytorch():
    code = "import sys, mpisim.problems; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
