"""Gradients that are worked out when needed give what the dense arrays give, to the bit."""

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core import lazy_rows as vectors
from mpisim.methods.oracle import LazyGradients
from mpisim.problems import PROBLEMS
from mpisim.wire.base import Precision
from tests.compressors.cases import draw
from tests.helpers import columns, run_tables
from tests.wire.messages import contents

COMPRESSORS = [
    {"name": "permk"},
    {"name": "permk", "groups": 2},
    {"name": "block-permutation", "blocks": 3},
    {"name": "randk", "k": 4},
    {"name": "bernoulli", "p": 0.4},
    {"name": "topk", "k": 4},
    {"name": "topk", "k": 17},
    {"name": "qsgd", "s": 5},
    {"name": "compose", "outer": {"name": "permk"}, "inner": {"name": "natural"}},
]


def quadratic(n, d, dtype, first=0, count=None):
    problem = PROBLEMS["quadratic"](dimension=d, noise=0.4, lambda_=0.01)
    problem.load(n, first, n if count is None else count, 5, np.dtype(dtype))
    return problem


def both(problem, seed=0):
    """Dense and lazy gradients at one point, and those at another."""
    random = np.random.default_rng(seed)
    points = [random.standard_normal(problem.d).astype(problem.dtype) for _ in range(2)]
    return [problem.gradients(x) for x in points], [LazyGradients(problem, x) for x in points]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(vectors, "BLOCK", 70)  # two or three workers at a time


@pytest.mark.drawn(12)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("table", [c for c in COMPRESSORS if c["name"] not in ("qsgd", "compose")])
@pytest.mark.parametrize(("n", "d"), [(6, 30), (30, 18)])
def test_messages(table, n, d, dtype, small_blocks):
    problem = quadratic(n, d, dtype)
    (new, old), (later, before) = both(problem)
    compressor = make(table).bind(d, n, Precision(np.dtype("float32"), np.dtype(dtype)))
    assert compressor.lazy
    shifts = np.random.default_rng(1).standard_normal((n, d)).astype(dtype)
    pairs = [
        (new, later),
        (new - old, later - before),
        (new - shifts, later - shifts),
        (0.3 * (shifts - old), 0.3 * (shifts - before)),
        (new - old - 0.3 * (shifts - old), later - before - 0.3 * (shifts - before)),
    ]
    for dense, lazy in pairs:
        assert lazy.shape == dense.shape and lazy.dtype == dense.dtype
        assert lazy.dense().tobytes() == dense.tobytes()
        one, other = compressor.compress(dense, draw(n)), compressor.compress(lazy, draw(n))
        assert contents(one) == contents(other)
        assert one.decoded().tobytes() == other.decoded().tobytes()


METHODS = [
    ({"name": "marina", "p": 0.3}, COMPRESSORS),
    ({"name": "ef21"}, [{"name": "topk", "k": 2}, {"name": "topk", "k": 17}]),
    ({"name": "ef21", "start": "compressed"}, [{"name": "topk", "k": 2}]),
    ({"name": "dasha", "a": 0.3}, COMPRESSORS),
    ({"name": "dasha", "start": "zero"}, [{"name": "randk", "k": 3}]),
]


@pytest.mark.drawn(12)
@pytest.mark.parametrize(
    ("method", "compressor"), [(m, c) for m, every in METHODS for c in every], ids=str
)
@pytest.mark.parametrize("wire", ["float32", "float64"])
def test_runs(method, compressor, wire, tmp_path, monkeypatch, small_blocks):
    """The same run with arrays: but for how f and its gradient are summed, the same log."""
    tables = {
        "problem": {"name": "quadratic", "workers": 6, "dimension": 30, "noise": 0.3},
        "method": method | {"stepsize": 0.3},
        "compressor": compressor,
        "run": {"rounds": 25, "wire": wire},
    }
    later = run_tables(tables, tmp_path / "later.h5")
    monkeypatch.setattr(PROBLEMS["quadratic"], "explicit", False)
    dense = run_tables(tables, tmp_path / "dense.h5")
    assert later.x.tobytes() == dense.x.tobytes()
    one, other = columns(tmp_path / "later.h5"), columns(tmp_path / "dense.h5")
    for name in one:
        if name in ("loss", "grad_norm_sq"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-12)
        elif not name.startswith("time_"):
            assert np.array_equal(one[name], other[name]), name
