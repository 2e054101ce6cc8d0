"""Columns of compression errors and of v, against Algorithm 1 and error feedback in NumPy."""

import numpy as np
import pytest

from mpisim.runs.experiment import parse
from tests.helpers import columns, run_tables, table

NAMES = ("error_up", "error_down", "v_mean", "v_max")
SIGN, STEP = {"name": "scaled-sign"}, 0.05


def run(log, method, compressor=SIGN, rounds=8, **settings):
    settings = {"wire": "float64", "columns": ["estimates"]} | settings
    method = {"name": method, "stepsize": STEP} if isinstance(method, str) else method
    run_tables(table(method, compressor, rounds=rounds, **settings), log)
    return columns(log)


def sign(v):
    return np.abs(v).mean(axis=-1, keepdims=True) * np.where(v < 0, -1.0, 1.0)


class Loop:
    """AMSGrad with what ``exchange`` makes of g_i: (g^, g~)."""

    def __init__(self, exchange):
        problem = parse(table({"name": "amsgrad", "stepsize": STEP}, {"name": "identity"})).problem
        self.problem = problem.loaded(6, 0, 6, 1, np.dtype(float))
        self.exchange = exchange

    def rows(self, rounds):
        x = m = v = vhat = np.zeros(self.problem.d)
        for _ in range(rounds):
            g_i = self.problem.gradients(x)
            g_hat, g = self.exchange(g_i)
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            vhat = np.maximum(vhat, v)
            x = x - STEP * m / np.sqrt(vhat + 1e-8)
            up = np.linalg.norm(g_hat - g_i.mean(axis=0))
            yield up, np.linalg.norm(g - g_hat), v.mean(), v.max()


class Markov:
    """Algorithm 1, lines 5 to 12."""

    def __init__(self):
        self.hat_i = self.hat = self.tilde = 0.0

    def __call__(self, g_i):
        c_i = sign(g_i - self.hat_i)
        self.hat_i, self.hat = self.hat_i + c_i, self.hat + c_i.mean(axis=0)
        self.tilde = self.tilde + sign(self.hat - self.tilde)
        return self.hat, self.tilde


class Feedback:
    def __init__(self):
        self.e_i = self.e = 0.0

    def __call__(self, g_i):
        c_i = sign(g_i + self.e_i)
        self.e_i = self.e_i + g_i - c_i
        mean = c_i.mean(axis=0)
        c = sign(mean + self.e)
        self.e = self.e + mean - c
        return mean, c


def naive(g_i):
    mean = sign(g_i).mean(axis=0)
    return mean, sign(mean)


@pytest.mark.parametrize(
    ("method", "exchange"),
    [("cd-adam", Markov()), ("ef-amsgrad", Feedback()), ("naive-amsgrad", naive)],
    ids=["cd-adam", "ef-amsgrad", "naive-amsgrad"],
)
def test_errors_and_v_are_those_of_the_algorithm(method, exchange, tmp_path):
    c = run(tmp_path / "log.h5", method)
    wanted = np.array([*Loop(exchange).rows(8)]).T
    for name, values in zip(NAMES, wanted, strict=True):
        assert c[name][1:] == pytest.approx(values, rel=1e-9), name
    assert np.isnan(c["error_up"][0]) and np.isnan(c["error_down"][0])
    assert c["v_mean"][0] == c["v_max"][0] == 0


def test_a_method_that_estimates_otherwise_has_no_errors(tmp_path):
    c = run(tmp_path / "diana.h5", "diana", {"name": "randk", "k": 12})
    assert all(np.isnan(c[name]).all() for name in NAMES)
    one_bit = {"name": "1bit-adam", "stepsize": 0.01, "warmup": 3}
    c = run(tmp_path / "1bit.h5", one_bit)
    assert np.isfinite(c["error_up"][1:4]).all() and np.isnan(c["error_up"][4:]).all()
    assert (c["v_mean"][3:] == c["v_mean"][3]).all()  # frozen


@pytest.mark.parametrize("nu", [1e-8, 0.1])
def test_the_spread_of_the_denominators_is_that_of_amsgrad(nu, tmp_path):
    """sqrt(vhat + nu), largest over smallest; row k has round k - 1, and row 0 none."""
    method = {"name": "amsgrad", "stepsize": STEP, "nu": nu}
    found = run(tmp_path / "a.h5", method, {"name": "identity"}, columns=["denominators"])
    problem = Loop(None).problem
    x = m = v = vhat = np.zeros(problem.d)
    expected = []
    for _ in range(8):
        g = problem.gradients(x).mean(axis=0)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        vhat = np.maximum(vhat, v)
        root = np.sqrt(vhat + nu)
        x = x - STEP * m / root
        expected.append(root.max() / root.min())
    assert np.isnan(found["denominator_spread"][0])
    np.testing.assert_allclose(found["denominator_spread"][1:], expected, rtol=1e-12)
    # the larger nu is, the nearer AMSGrad is to heavy ball
    assert (expected[-1] < 1.01) == (nu == 0.1)
