"""Step sizes that fall, weight decay, and stochastic gradients, against plain loops."""

import numpy as np

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


def test_stochastic_gradients_are_addressed_by_the_round():
    problem, x, streams = loaded(), np.zeros(123), Streams(1)
    for k in range(20):
        batch = Draw(streams, "batch", k, 0, 6).batches(problem.rows, 7)
        x = x - 0.5 * problem.batch_gradients(x, batch).mean(axis=0)
    result = run_tables(table(GD | {"batch": 7}, wire="float64"))
    assert np.linalg.norm(result.x - x) <= 1e-12 * np.linalg.norm(x)
