"""Gradients that are worked out when needed give what the dense arrays give, to the bit."""

import numpy as np
import pytest

from mpisim.core import lazy_rows as vectors
from mpisim.problems import PROBLEMS
from tests.helpers import run_tables, some_of

PERMK = {"name": "permk"}
COMPRESSORS = [PERMK, PERMK | {"groups": 2}, {"name": "block-permutation", "blocks": 3}]
COMPRESSORS += [{"name": "randk", "k": 4}, {"name": "topk", "k": 4}, {"name": "topk", "k": 17}]
COMPRESSORS += [{"name": "bernoulli", "p": 0.4}, {"name": "qsgd", "s": 5}]
COMPRESSORS += [{"name": "compose", "outer": PERMK, "inner": {"name": "natural"}}]
METHODS = [
    ({"name": "marina", "p": 0.3}, COMPRESSORS),
    ({"name": "ef21"}, [{"name": "topk", "k": 2}, {"name": "topk", "k": 17}]),
    ({"name": "ef21", "start": "compressed"}, [{"name": "topk", "k": 2}]),
    ({"name": "dasha", "a": 0.3}, COMPRESSORS),
    ({"name": "dasha", "start": "zero"}, [{"name": "randk", "k": 3}]),
]


@pytest.mark.parametrize(
    ("method", "compressor"), [(m, c) for m, every in METHODS for c in every], ids=str
)
@some_of(6, wire=["float32", "float64"])
def test_runs(method, compressor, wire, monkeypatch):
    """The same run with arrays: but for how f and its gradient are summed, the same log."""
    tables = {
        "problem": {"name": "quadratic", "workers": 6, "dimension": 30, "noise": 0.3},
        "method": method | {"stepsize": 0.3},
        "compressor": compressor,
        "run": {"rounds": 25, "wire": wire},
    }
    monkeypatch.setattr(vectors, "BLOCK", 70)  # two or three workers at a time
    later = run_tables(tables, keep=True)
    monkeypatch.setattr(PROBLEMS["quadratic"], "explicit", False)
    dense = run_tables(tables, keep=True)
    assert later.x.tobytes() == dense.x.tobytes()
    one, other = later.columns, dense.columns
    for name in one:
        if name in ("loss", "grad_norm_sq"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-12)
        elif not name.startswith("time_"):
            assert np.array_equal(one[name], other[name]), name
