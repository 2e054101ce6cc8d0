"""Trajectories of methods without local steps, coins and draws against plain NumPy loops.

And how long a round is to read.
"""

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

PACKAGE = f"{Path(mpisim.__file__).parent}/"
ROUNDS, GAMMA, LAMBDA, N, WARMUP = 50, 0.01, 0.1, 5, 7


class Regularised(Loop):
    """With lambda sum x^2 / (1 + x^2)."""

    def __init__(self, data):
        super().__init__(0, data, N)
        self.problem = {"name": "logistic-nonconvex-reg", "lambda": LAMBDA}

    def penalty(self, x):
        return LAMBDA * 2 * x / (1 + x * x) ** 2


def top5(v):
    return top(np.atleast_2d(v), 5).reshape(v.shape)


def gd(loop, c):
    x = np.zeros(loop.d)
    for _ in range(ROUNDS):
        x = x - GAMMA * loop.every(x).mean(axis=0)
    return x


def ef21(loop, c):
    x = np.zeros(loop.d)
    g_i = loop.every(x)
    for _ in range(ROUNDS):
        x = x - GAMMA * g_i.mean(axis=0)
        g_i = g_i + c(loop.every(x) - g_i)
    return x


def ef(loop, c):
    x = e_i = np.zeros(loop.d)
    for _ in range(ROUNDS):
        v = e_i + loop.every(x)
        sent = c(v)
        x, e_i = x - GAMMA * sent.mean(axis=0), v - sent
    return x


def adaptive(exchange):
    """AMSGrad on what is exchanged."""

    def loop(loop, c):
        rounds = amsgrad(loop.every, loop.d, exchange(c), GAMMA)
        return next(islice(rounds, ROUNDS - 1, None))[0]

    return loop


def ef21_two_way(loop, c):
    x = np.zeros(loop.d)
    g_i = loop.every(x)
    g = gt = g_i.mean(axis=0)
    for _ in range(ROUNDS):
        x = x - GAMMA * gt
        c_i = c(loop.every(x) - g_i)
        g_i, g = g_i + c_i, g + c_i.mean(axis=0)
        gt = gt + c(g - gt)
    return x


def one_bit_adam(loop, c, beta1=0.9, beta2=0.99, nu=1e-8):
    x, m, v = np.zeros(loop.d), np.zeros(loop.d), np.zeros(loop.d)
    e_i, e = np.zeros((N, loop.d)), np.zeros(loop.d)
    for k in range(ROUNDS):
        g = loop.every(x)
        if k < WARMUP:
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


def one_bit_adam_code(loop, c, beta1=0.9, beta2=0.99, nu=1e-8):
    """main.py of the CD-Adam code: `updateLocalModel` and, in `run` and `main`, error feedback.

    There a worker that has the message of iteration j steps with iteration j + 1, and compresses
    its next gradient with iteration j, as the server does. The first gradient is sent with 0.
    """
    x, m, v = np.zeros(loop.d), np.zeros(loop.d), np.zeros(loop.d)
    error_i, error = np.zeros((N, loop.d)), np.zeros(loop.d)
    for sent in range(ROUNDS):
        one_bit = max(sent - 1, 0) >= WARMUP  # ONEBIT_SIGN_COMPRESSOR
        tmp = loop.every(x) + error_i
        signal = c(tmp) if one_bit else tmp
        error_i = tmp - signal
        tmp = error + signal.mean(axis=0)
        grad = c(tmp) if one_bit else tmp
        error = tmp - grad
        iteration = sent + 1
        m = m * beta1 + grad * (1 - beta1)
        if iteration < WARMUP:
            v = v * beta2 + grad * grad * (1 - beta2)
        denominator = np.sqrt(v) / np.sqrt(1 - beta2**iteration) + nu
        x = x - GAMMA / (1 - beta1**iteration) * m / denominator
    return x


CASES = {
    "gd": (gd, {}),
    "ef21": (ef21, {}),
    "ef": (ef, {}),
    "amsgrad": (adaptive(plain), {}),
    "naive-amsgrad": (adaptive(naive), {}),
    "ef-amsgrad": (adaptive(Feedback), {}),
    "cd-adam": (adaptive(Markov), {}),
    "ef21-2way": (ef21_two_way, {}),
    "1bit-adam": (one_bit_adam, {"warmup": WARMUP}),
    "1bit-adam code": (one_bit_adam_code, {"warmup": WARMUP, "variant": "code"}),
}
COMPRESSORS = {"scaled-sign": (sign, {}), "topk": (top5, {"k": 5})}


@some_of(12, data=["sample", "mushrooms"], compressor=COMPRESSORS, name=CASES)
def test_trajectory(name, compressor, data, need_data):
    need_data(data)
    if (name, compressor, data) == ("1bit-adam code", "topk", "mushrooms"):
        pytest.skip("coordinates tie, so rounding decides which are sent")
    (function, keys), (c, of_c) = CASES[name], COMPRESSORS[compressor]
    spec = {"name": "identity"} if name in ("gd", "amsgrad") else {"name": compressor} | of_c
    loop, method = Regularised(data), {"name": name.split()[0], "stepsize": GAMMA}
    assert near(loop.run(method | keys, spec, rounds=ROUNDS).x, function(loop, c), 1e-9)


def test_schedule_weight_decay_and_batches_are_a_plain_loop():
    schedule = {"at": [0.25, 10], "factor": 0.1}  # of 20 rounds: at 5 and at 10
    method = {"name": "gd", "stepsize": 0.5, "weight_decay": 0.01, "batch": 7}
    settings = table(method | {"schedule": schedule}, wire="float64")
    problem, x = loaded(settings), np.zeros(123)
    for k in range(20):
        gamma = 0.5 * (0.01 if k >= 10 else 0.1 if k >= 5 else 1)
        batch = Draw(Streams(1), "batch", k, 0, 6).batches(problem.rows, 7)
        x = x - gamma * (problem.batch_gradients(x, batch).mean(axis=0) + 0.01 * x)
    assert near(run_tables(settings).x, x)


@pytest.mark.parametrize("method", [{"name": "cd-adam"}, {"name": "1bit-adam", "warmup": 0.3}])
def test_table_2_bits(method):
    """CD-Adam paper, Table 2: in each direction (32 + d) T, or 32 d T1 + (32 + d) (T - T1)."""
    d, T_1 = 123, 3 if "warmup" in method else 0
    tables = table(method | {"stepsize": GAMMA}, {"name": "scaled-sign"}, workers=N, rounds=10)
    row = run_tables(tables).row
    assert row["bits_up"] == row["bits_down"] == N * (32 * d * T_1 + (32 + d) * (10 - T_1))


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
