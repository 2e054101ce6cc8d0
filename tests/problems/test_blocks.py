"""No bit depends on how many workers a rank holds, in every problem."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.problems import PROBLEMS
from tests.problems.support import FORMS, NAMES, make_rows, part
from tests.problems.test_autoencoder import KEYS, autoencoder

N = 6
RANGES = [(0, 300), (300, 303), (303, 1170), (1170, 1173), (1173, 1950), (1950, 2100)]


def glm(name, form):
    a, y = (np.tile(v, reps) for v, reps in zip(make_rows(form), ((3, 1), 3), strict=True))
    keys = {"dense": form == "dense", "l2": 0.1}  # several chunks a worker
    return lambda first, count, dtype: part(
        name, a, y, RANGES, first, count, dtype=np.dtype(dtype), **keys
    )


def named(name, **keys):
    def load(first, count, dtype):
        if name == "torch":
            pytest.importorskip("torch")
        return PROBLEMS[name](**keys).loaded(N, first, count, 3, np.dtype(dtype))

    return load


NETWORK = {"model": "small-cnn", "data": "generated", "samples": 90, "width": 0.1, "pool": 4}
NETWORK |= {"chunk": 8, "augment": True, "device": "cpu"}
MADE = {
    **{f"{name} {form}": glm(name, form) for name in NAMES for form in FORMS},
    **{
        f"autoencoder {keys}": lambda first, count, dtype, keys=keys: autoencoder(
            N, first, count, dtype, **keys
        )
        for keys in KEYS
    },
    "quadratic": named("quadratic", dimension=30, noise=0.8),
    "torch": named("torch", **NETWORK),
    "tested": named("logistic", data="sample", test_="sample", split="shuffled"),
}


@pytest.mark.drawn(12)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_blocks_do_not_change_a_bit(make, dtype):
    everyone = make(0, N, dtype)
    x = everyone.initial_point() + everyone.arrays.placed(
        0.1 * np.random.default_rng(0).standard_normal(everyone.d).astype(dtype), ""
    )
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
        parts = [make(sum(blocks[:i]), count, dtype) for i, count in enumerate(blocks)]
        for one, *others in zip(expected, *map(results, parts), strict=True):
            assert np.concatenate(others).tobytes() == one.tobytes()
        for problem in parts:
            assert np.array_equal(problem.initial_point(), everyone.initial_point())
            assert (problem.identical, problem.convex) == (everyone.identical, everyone.convex)
            assert not problem.explicit or problem.whole(x)[0] == everyone.whole(x)[0]
            assert not problem.explicit or np.array_equal(problem.whole(x)[1], everyone.whole(x)[1])
