"""Trajectories against plain, independent NumPy loops; and how long a round is to read."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import mpisim
from mpisim.comm.communicators import OneProcess
from mpisim.core.rng import Draw, Streams
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import run_tables, table
from tests.methods.loops import Loop, near, top

ROUNDS = 100
PACKAGE = f"{Path(mpisim.__file__).parent}/"


def gd(loop):
    x = np.zeros(loop.d)
    for _ in range(ROUNDS):
        x = x - 0.5 * loop.every(x).mean(axis=0)
    return x


def ef21(loop):
    x = np.zeros(loop.d)
    g_i = loop.every(x)
    for _ in range(ROUNDS):
        x = x - 0.5 * g_i.mean(axis=0)
        g_i = g_i + top(loop.every(x) - g_i, 5)
    return x


def ef(loop):
    x = e_i = np.zeros(loop.d)
    for _ in range(ROUNDS):
        v = e_i + loop.every(x)
        c = top(v, 5)
        x, e_i = x - 0.5 * c.mean(axis=0), v - c
    return x


def diana(loop):
    x = h_i = np.zeros(loop.d)
    for _ in range(ROUNDS):
        gradients = loop.every(x)
        x = x - 0.5 * gradients.mean(axis=0)
        h_i = h_i + 0.25 * (gradients - h_i)
    return x


CASES = {
    "gd": (gd, {}, None),
    "ef21": (ef21, {}, {"name": "topk", "k": 5}),
    "ef": (ef, {}, {"name": "topk", "k": 5}),
    "diana": (diana, {"alpha": 0.25}, {"name": "identity"}),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("data", ["sample", "mushrooms", "a9a"])
@pytest.mark.parametrize("name", CASES)
def test_trajectory(name, data, need_data):
    need_data(data)
    function, keys, compressor = CASES[name]
    loop = Loop(0, data, 5, "nonconvex-loss")
    end = loop.run({"name": name, "stepsize": 0.5} | keys, compressor, rounds=ROUNDS)
    assert near(end.x, function(loop), 1e-9)


GD = {"name": "gd", "stepsize": 0.5}


def test_float32_wire_changes_little_but_something():
    wide, narrow = (run_tables(table(GD, rounds=30, wire=w)).x for w in ("float64", "float32"))
    assert 0 < np.linalg.norm(wide - narrow) < 1e-6 * np.linalg.norm(wide)


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
    assert near(result.x, x)


def test_stochastic_gradients_are_addressed_by_the_round():
    problem, x, streams = loaded(), np.zeros(123), Streams(1)
    for k in range(20):
        batch = Draw(streams, "batch", k, 0, 6).batches(problem.rows, 7)
        x = x - 0.5 * problem.batch_gradients(x, batch).mean(axis=0)
    result = run_tables(table(GD | {"batch": 7}, wire="float64"))
    assert near(result.x, x)


MOST = 40  # functions of the package; a compiled one is one call, whatever it calls


RANDK = {"name": "randk", "k": 5}


@pytest.mark.parametrize("problem", ["nonconvex-loss", "quadratic"])
def test_a_compressed_round_of_marina_enters_few_functions(problem):
    """70 once. Fewer are less to read, to step through and to wait for."""
    tables = table({"name": "marina", "p": 1e-9, "stepsize": 0.1}, RANDK, rounds=9)
    if problem == "quadratic":
        tables["problem"] = {"name": problem, "workers": 6, "dimension": 30, "noise": 0.3}
    setup = Setup(parse(tables), OneProcess())
    for _ in range(3):
        setup.state.step(0.1)
    compiled = {
        (module.__file__, name)
        for title, module in list(sys.modules.items())
        if title.startswith("mpisim.") and "__file__" in vars(module)
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher) and value.__module__ == title
    }
    entered = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        setup.state.step(0.1)
    finally:
        sys.setprofile(None)
    names = sorted(f"{file.removeprefix(PACKAGE)}: {name}" for file, name in entered - compiled)
    assert len(names) <= MOST, "\n".join(names)
