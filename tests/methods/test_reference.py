"""Trajectories against plain, independent NumPy loops; and how long a round is to read."""

import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import mpisim
from mpisim.core.rng import Draw, Streams
from tests.helpers import loaded, run_tables, set_up, some_of, table
from tests.methods.loops import Feedback, Loop, Markov, amsgrad, naive, near, plain, sign, top

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


@some_of(6, data=["sample", "mushrooms", "a9a"], name=CASES)
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


def test_schedule_and_weight_decay_are_a_plain_loop():
    schedule = {"at": [0.25, 10], "factor": 0.1}  # of 20 rounds: at 5 and at 10
    method = GD | {"schedule": schedule, "weight_decay": 0.01}
    problem, x = loaded(table(GD)), np.zeros(123)
    for k in range(20):
        gamma = 0.5 * (0.01 if k >= 10 else 0.1 if k >= 5 else 1)
        x = x - gamma * (problem.gradients(x).mean(axis=0) + 0.01 * x)
    result = run_tables(table(method, wire="float64"))
    assert near(result.x, x)


def test_stochastic_gradients_are_addressed_by_the_round():
    problem, x, streams = loaded(table(GD)), np.zeros(123), Streams(1)
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
    setup = set_up(tables)
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


ADAPTIVE_ROUNDS, GAMMA, LAMBDA, N = 50, 0.01, 0.1, 5
PROBLEM = {"name": "logistic-nonconvex-reg", "lambda": LAMBDA}


class Regularised(Loop):
    """With lambda sum x^2 / (1 + x^2)."""

    def penalty(self, x):
        return LAMBDA * 2 * x / (1 + x * x) ** 2


def top5(v):
    return top(np.atleast_2d(v), 5).reshape(v.shape)


def adaptive(exchange):
    """AMSGrad on what is exchanged."""

    def loop(grads, d, c):
        rounds = amsgrad(grads, d, exchange(c), GAMMA)
        return next(islice(rounds, ADAPTIVE_ROUNDS - 1, None))[0]

    return loop


def ef21_two_way(grads, d, c):
    x = np.zeros(d)
    g_i = grads(x)
    g = gt = g_i.mean(axis=0)
    for _ in range(ADAPTIVE_ROUNDS):
        x = x - GAMMA * gt
        c_i = c(grads(x) - g_i)
        g_i, g = g_i + c_i, g + c_i.mean(axis=0)
        gt = gt + c(g - gt)
    return x


def one_bit_adam(grads, d, c, warmup=7, beta1=0.9, beta2=0.99, nu=1e-8):
    x, m, v = np.zeros(d), np.zeros(d), np.zeros(d)
    e_i, e = np.zeros((N, d)), np.zeros(d)
    for k in range(ADAPTIVE_ROUNDS):
        g = grads(x)
        if k < warmup:
            mean = g.mean(axis=0)
            m, v = beta1 * m + (1 - beta1) * mean, beta2 * v + (1 - beta2) * mean**2
        else:
            m_i = beta1 * m + (1 - beta1) * g + e_i
            c_i = c(m_i)
            e_i = m_i - c_i
            total = c_i.mean(axis=0) + e
            m = c(total)
            e = total - m
        x = x - GAMMA * m / (np.sqrt(v) + nu)
    return x


def one_bit_adam_code(grads, d, c, warmup=7, beta1=0.9, beta2=0.99, nu=1e-8):
    """main.py of the CD-Adam code: `updateLocalModel` and, in `run` and `main`, error feedback.

    There a worker that has the message of iteration j steps with iteration j + 1, and compresses
    its next gradient with iteration j, as the server does. The first gradient is sent with 0.
    """
    x, m, v = np.zeros(d), np.zeros(d), np.zeros(d)
    error_i, error, freeze = np.zeros((N, d)), np.zeros(d), warmup
    for sent in range(ADAPTIVE_ROUNDS):
        one_bit = max(sent - 1, 0) >= freeze  # ONEBIT_SIGN_COMPRESSOR
        tmp = grads(x) + error_i
        signal = c(tmp) if one_bit else tmp
        error_i = tmp - signal
        tmp = error + signal.mean(axis=0)
        grad = c(tmp) if one_bit else tmp
        error = tmp - grad
        iteration = sent + 1
        m = m * beta1 + grad * (1 - beta1)
        if iteration < freeze:
            v = v * beta2 + grad * grad * (1 - beta2)
        denominator = np.sqrt(v) / np.sqrt(1 - beta2**iteration) + nu
        x = x - GAMMA / (1 - beta1**iteration) * m / denominator
    return x


ADAPTIVE = [
    ("amsgrad", {"name": "amsgrad"}, adaptive(plain)),
    ("naive", {"name": "naive-amsgrad"}, adaptive(naive)),
    ("ef", {"name": "ef-amsgrad"}, adaptive(Feedback)),
    ("cd-adam", {"name": "cd-adam"}, adaptive(Markov)),
    ("ef21-2way", {"name": "ef21-2way"}, ef21_two_way),
    ("1bit-adam", {"name": "1bit-adam", "warmup": 7}, one_bit_adam),
    ("code", {"name": "1bit-adam", "warmup": 7, "variant": "code"}, one_bit_adam_code),
]
COMPRESSORS = [("sign", {"name": "scaled-sign"}, sign), ("top5", {"name": "topk", "k": 5}, top5)]


@pytest.mark.parametrize(("_", "compressor", "c"), COMPRESSORS, ids=[c[0] for c in COMPRESSORS])
@pytest.mark.parametrize(("name", "method", "loop"), ADAPTIVE, ids=[c[0] for c in ADAPTIVE])
@some_of(10, data=["sample", "mushrooms", "a9a"])
def test_trajectory_of_adaptive_methods(name, method, loop, _, compressor, c, data, need_data):
    need_data(data)
    if (name, _, data) == ("code", "top5", "mushrooms"):
        pytest.skip("coordinates tie, so rounding decides which are sent")
    compressor = {"name": "identity"} if name == "amsgrad" else compressor
    method = method | {"stepsize": GAMMA}
    tables = table(method, compressor, data, N, ADAPTIVE_ROUNDS, PROBLEM, wire="float64")
    shards = Regularised(0, data, N)
    assert near(run_tables(tables).x, loop(shards.every, shards.d, c), 1e-9)


@pytest.mark.parametrize("method", [{"name": "cd-adam"}, {"name": "1bit-adam", "warmup": 0.3}])
def test_table_2_bits(method):
    """CD-Adam paper, Table 2: in each direction (32 + d) T, or 32 d T1 + (32 + d) (T - T1)."""
    d, T_1 = 123, 3 if "warmup" in method else 0
    tables = table(method | {"stepsize": GAMMA}, {"name": "scaled-sign"}, workers=N, rounds=10)
    row = run_tables(tables).row
    assert row["bits_up"] == row["bits_down"] == N * (32 * d * T_1 + (32 + d) * (10 - T_1))
