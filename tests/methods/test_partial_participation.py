"""Some clients take part: the results of all, to the bit, at the cost of these clients alone."""

import numpy as np
import pytest

from mpisim.comm.clock import Clock
from mpisim.methods.oracle import Oracle
from mpisim.problems import PROBLEMS, autoencoder_codes, design, quadratic

SAMPLE = {"data": "sample"}
IMAGES = SAMPLE | {"images": 100, "code_size": 2}
CASES = [
    ("logistic", SAMPLE | {"l2": 0.1}, 1),
    ("nonconvex-loss", SAMPLE | {"split": "homogeneous"}, 1 / 2),  # once for both clients
    ("least-squares", SAMPLE | {"any_content": True, "reduction": "sum"}, 1),
    ("quadratic", {"dimension": 20, "noise": 0.3}, 1),
    ("autoencoder", IMAGES, 1),
    ("autoencoder", IMAGES | {"homogeneity": 1.0}, 1 / 2),
]


@pytest.fixture
def computed(monkeypatch):
    """Appends the sample gradients of each call of a kernel."""
    counts = []

    def watch(module, name, samples):
        kernel = getattr(module, name)

        def counting(*arguments):
            counts.append(samples(*arguments))
            return kernel(*arguments)

        monkeypatch.setattr(module, name, counting)

    watch(design.row_kernels, "sweep", lambda form, kind, want, ids, *_: len(ids))
    watch(quadratic.kernels, "write_gradients", lambda out, *_: len(out))
    watch(autoencoder_codes.kernels, "encode_shards", images_of)
    return counts


def images_of(shards, levels, weights, b, start_q, which, *_):
    return np.diff(shards[3])[which].sum()


@pytest.mark.drawn(6)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "keys", "share"), CASES)
def test_only_theirs_are_computed(name, keys, share, dtype, computed):
    problem, whole = (PROBLEMS[name](**keys).loaded(9, 0, 7, 1, np.dtype(dtype)) for _ in range(2))
    x = np.random.default_rng(0).standard_normal(problem.d).astype(dtype)
    every = whole.gradients(x)
    oracle = Oracle(problem, Clock(), 1)
    for clients in (np.array([1, 4]), np.array([], np.int64)):
        computed.clear()
        before = oracle.calls
        some = oracle.gradients(x, clients)
        assert some.tobytes() == every[clients].tobytes() and some.shape == (len(clients), x.size)
        assert sum(computed) == share * (oracle.calls - before)
