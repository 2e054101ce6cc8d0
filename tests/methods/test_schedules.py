"""Step sizes that fall, weight decay, and stochastic gradients, against plain loops."""

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.runs.experiment import parse
from tests.helpers import run_tables, table

GD = {"name": "gd", "stepsize": 0.5}


def loaded():
    return parse(table(GD)).problem.loaded(6, 0, 6, 1, np.dtype(float))


def test_schedule_and_weight_decay_are_a_plain_loop():
    schedule = {"at": [0.25, 10], "factor": 0.1}  # of 20 rounds: at 5 and at 10
    method = GD | {"schedule": schedule, "weight_decay": 0.01}
    problem, x = loaded(), np.zeros(123)
    for k in range(20):
        gamma = 0.5 * (0.01 if k >= 10 else 0.1 if k >= 5 else 1)
        x = x - gamma * (problem.gradients(x).mean(axis=0) + 0.01 * x)
    result = run_tables(table(method, wire="float64"))
    assert np.linalg.norm(result.x - x) <= 1e-12 * np.linalg.norm(x)


@pytest.mark.parametrize("name", ["dcgd", "ef", "ef21"])
def test_a_batch_of_all_samples_is_the_full_gradient(name):
    method = {"name": name, "stepsize": 0.5}
    whole = run_tables(table(method, {"name": "topk", "k": 5})).x
    rows = int(loaded().rows.min())
    batch = run_tables(table(method | {"batch": rows}, {"name": "topk", "k": 5})).x
    assert np.linalg.norm(batch - whole) <= 1e-6 * np.linalg.norm(whole)
    few = run_tables(table(method | {"batch": 3}, {"name": "topk", "k": 5})).x
    assert np.linalg.norm(few - whole) > 1e-3 * np.linalg.norm(whole)


def test_stochastic_gradients_are_addressed_by_the_round():
    problem, x, streams = loaded(), np.zeros(123), Streams(1)
    for k in range(20):
        batch = Draw(streams, "batch", k, 0, 6).batches(problem.rows, 7)
        x = x - 0.5 * problem.batch_gradients(x, batch).mean(axis=0)
    result = run_tables(table(GD | {"batch": 7}, wire="float64"))
    assert np.linalg.norm(result.x - x) <= 1e-12 * np.linalg.norm(x)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("schedule", {"at": [0.5, 0.2]}, r"method\.schedule\.at: \[0\.5, 0\.2\]"),
        ("schedule", {"at": [2.5]}, r"method\.schedule\.at: \[2\.5\]"),
        ("schedule", {"at": [3], "factor": 0}, r"method\.schedule\.factor: 0"),
        ("schedule", {"when": [3]}, r"method\.schedule\.when: unknown key"),
        ("schedule", 3, r"method\.schedule: 3 is not allowed"),
        ("weight_decay", -1.0, r"method\.weight_decay: -1\.0"),
        ("batch", 100_000, r"method\.batch: 100000"),
        ("batch", 0, r"method\.batch: 0 "),
    ],
)
def test_bad_values_are_one_line(key, value, says):
    with pytest.raises(InputError, match=says):
        run_tables(table(GD | {key: value}))


def test_no_theorem_with_minibatches():
    with pytest.raises(InputError, match=r"method\.stepsize: there is no theorem"):
        run_tables(table(GD | {"batch": 3, "stepsize": "theory"}))
