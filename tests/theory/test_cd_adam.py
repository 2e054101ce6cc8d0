"""CD-Adam's Theorem 6.4 and Lemmas B.5 and B.6: by hand, and on Algorithm 1 in NumPy."""

from __future__ import annotations

import dataclasses
from math import inf, sqrt

import numpy as np
import pytest

from mpisim.cli import main
from mpisim.theory.cd_adam import Theorem64
from tests.helpers import dense

ONE = Theorem64(
    n=4, N=50, d=9, L=2.0, delta_f=3.0, pi=0.25, G=5.0, G_inf=2.0, sigma=1.5, beta1=0.5, nu=0.04
)


def test_constants_by_hand():
    """sqrt(pi) = 1/2: C_2 = 9, G~ = 45, G~_inf = 18; beta_1 / (1 - beta_1) = 1."""
    assert (ONE.C_2, ONE.G_tilde) == (9.0, 45.0)
    C = 2 * sqrt(18**2 + 0.04)
    assert pytest.approx(C) == ONE.C and pytest.approx(4 + 6) == ONE.C_1
    expected = {
        "M_1": 3 * C,
        "M_2": C * 5 * 45 / (0.5 * 0.2),
        "M_3": 32 * C * 10 * 45**2 / 0.04 + C * 2 * 5 * 45 * 3 / (0.04 * 0.25),
        "M_4": 4 * C * 10 / 0.04,
        "M_5": 2 * C * 5 / (0.2 * 0.25),
    }
    for name, value in expected.items():
        assert getattr(ONE, name) == pytest.approx(value), name
    assert ONE.alpha(0.1) == pytest.approx(
        4 * 0.1 / (24 * expected["M_3"] + 6 * expected["M_4"] * 1.5**2)
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("sigma", [0.0, 1e-5, 1.5])
@pytest.mark.parametrize("pi", [0.0, 0.25, 0.9])
def test_alpha_tau_and_T_guarantee_epsilon(epsilon, sigma, pi):
    """(B.22) <= epsilon; each is the limit of its own third: (6.1)."""
    one = dataclasses.replace(ONE, sigma=sigma, pi=pi)
    alpha, tau, T = one.alpha(epsilon), one.tau(epsilon), one.T(epsilon)
    assert one.bound(T, alpha, tau) <= epsilon * (1 + 1e-9)
    assert alpha <= one.nu / (4 * one.C * one.C_1)
    steady = alpha * (one.M_3 + one.M_4 * sigma**2 / one.n)
    assert steady == pytest.approx(epsilon / 6)
    assert one.M_5 * one.noise(tau) <= epsilon / 3 * (1 + 1e-9)
    if tau > 1:
        assert one.M_5 * one.noise(tau - 1) > epsilon / 3
    assert one.M_1 / (0.99 * T * alpha) + steady > epsilon / 3 or 0.01 * T * epsilon < 3 * one.M_2


def test_extremes():
    assert ONE.noise(50) == 0.0
    assert dataclasses.replace(ONE, N=1).noise(1) == 0.0
    worst = dataclasses.replace(ONE, pi=1 - 1e-12, nu=1e-300)
    assert worst.T(1e-9) == inf and worst.tau(1e-9) == 50
    exact = dataclasses.replace(ONE, pi=0.0)
    assert exact.worker_error(0.1, 5) == exact.server_error(0.1, 5) == exact.M_5 == 0.0


def test_orders_of_table_1():
    """The exponents of 1 - pi that Table 1 states are those of the constants as pi goes to 1."""
    exponents = {"M_1": 2, "M_2": 4, "M_3": 6, "M_4": 2, "M_5": 4}
    near, nearer = (dataclasses.replace(ONE, pi=1 - x) for x in (1e-6, 1e-8))
    for name, exponent in exponents.items():
        growth = getattr(nearer, name) / getattr(near, name)
        assert growth == pytest.approx(100.0**exponent, rel=1e-3), name
        stated = nearer.orders(0.1)[name] / near.orders(0.1)[name]
        assert stated == pytest.approx(100.0**exponent, rel=1e-6), name
    assert nearer.T(0.1) / near.T(0.1) == pytest.approx(100.0**8, rel=1e-2)
    assert nearer.orders(0.1)["T"] / near.orders(0.1)["T"] == pytest.approx(100.0**8, rel=1e-2)
    values = ONE.orders(0.1)
    assert values["M_1"] == pytest.approx(3 * 2 / 0.75**2)
    assert values["M_3"] == pytest.approx((50 + 2 * 3 * 50) / 0.75**6)


def top(v: np.ndarray, k: int) -> np.ndarray:
    """Top-k: pi = 1 - k / d."""
    out = np.zeros_like(v)
    largest = np.argsort(-np.abs(v))[:k]
    out[largest] = v[largest]
    return out


class Regression:
    """f_i(x) = mean_t log(1 + exp(-a_t . x)): 3 workers, 8 samples, d = 6; Algorithm 1 in NumPy."""

    n, N, d, k = 3, 8, 6, 4

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.a = rng.standard_normal((self.n, self.N, self.d))
        self.rng = rng

    def theorem(self, beta1: float, nu: float) -> Theorem64:
        norms = np.linalg.norm(self.a, axis=2)
        L = max(np.linalg.eigvalsh(a.T @ a / (4 * self.N))[-1] for a in self.a)
        largest, sigma = np.abs(self.a).max(), sqrt((norms**2).mean(axis=1).max())
        pi = 1 - self.k / self.d
        return Theorem64(
            self.n, self.N, self.d, L, np.log(2), pi, norms.max(), largest, sigma, beta1, nu
        )

    def gradients(self, x: np.ndarray, tau: int) -> np.ndarray:
        out = []
        for a in self.a:
            rows = a[self.rng.permutation(self.N)[:tau]]
            out.append(-(rows / (1 + np.exp(rows @ x))[:, None]).mean(axis=0))
        return np.array(out)

    def errors(self, T: int, alpha: float, tau: int, beta1: float, nu: float, markov=True):
        """|g^_t - g_t| and |g~_t - g^_t| of each round, shape (T, 2)."""
        x = np.zeros(self.d)
        hats, hat, tilde = np.zeros((self.n, self.d)), np.zeros(self.d), np.zeros(self.d)
        m, v, v_hat = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)
        out = []
        for _ in range(T):
            g = self.gradients(x, tau)
            if not markov:  # every gradient is compressed afresh
                hats, hat, tilde = 0 * hats, 0 * hat, 0 * tilde
            c = np.array([top(row, self.k) for row in g - hats])
            hats, hat = hats + c, hat + c.mean(axis=0)
            tilde = tilde + top(hat - tilde, self.k)
            out.append([np.linalg.norm(hat - g.mean(axis=0)), np.linalg.norm(tilde - hat)])
            m, v = beta1 * m + (1 - beta1) * tilde, 0.99 * v + 0.01 * tilde**2
            v_hat = np.maximum(v_hat, v)
            x = x - alpha * m / np.sqrt(v_hat + nu)
        return np.array(out)


PARAMETERS = [(0.9, 0.01), (0.0, 1.0)]


@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 0.1])
@pytest.mark.parametrize(("beta1", "nu"), PARAMETERS)
def test_lemmas_B5_and_B6_with_full_gradients(alpha, beta1, nu):
    """Without noise they hold in every round and run, with what they leave out of the start."""
    T = 60
    t = np.arange(1, T + 1)
    for seed in range(5):
        f = Regression(seed)
        one = f.theorem(beta1, nu)
        errors = f.errors(T, alpha, f.N, beta1, nu)
        first = np.linalg.norm(f.gradients(np.zeros(f.d), f.N), axis=1).mean()
        start = one.root**t * first
        assert (errors[:, 0] <= one.worker_error(alpha, f.N) + start).all()
        server = one.server_error(alpha, f.N) + t * (1 + one.root) * start
        assert (errors[:, 1] <= server).all()
        assert first <= one.G


def test_the_lemmas_leave_out_the_start():
    """With a tiny step the lemmas say nearly 0; |g^_1 - g_1| is that of C(g_1)."""
    f = Regression(0)
    one, errors = f.theorem(0.9, 1.0), f.errors(400, 1e-9, f.N, 0.9, 1.0)
    assert errors[0, 0] > 1e3 * one.worker_error(1e-9, f.N)
    assert errors[-1, 0] < one.worker_error(1e-9, f.N)
    assert errors[-1, 1] < one.server_error(1e-9, f.N)


@pytest.mark.parametrize("pi", [0.01, 0.25, 0.99])
@pytest.mark.parametrize("beta1", [0.0, 0.9])
def test_the_start_adds_little_to_the_theorem(pi, beta1):
    """Summed as in (B.16), what the lemmas leave out is below (1 - beta_1) / 2 of M_2."""
    one = dataclasses.replace(ONE, pi=pi, beta1=beta1)
    t = np.arange(1, 20000)
    start = one.root**t * one.G * (1 + t * (1 + one.root))
    extra = one.C * one.G / sqrt(one.nu) * start.sum()
    assert extra <= (1 - beta1) / 2 * one.M_2
    assert pi < 0.9 or extra > 0.9 * (1 - beta1) / 2 * one.M_2


def test_the_lemmas_need_the_markov_sequence():
    f = Regression(1)
    one, errors = f.theorem(0.9, 1.0), f.errors(400, 1e-6, f.N, 0.9, 1.0, markov=False)
    assert errors[-1, 0] > 10 * one.worker_error(1e-6, f.N)


@pytest.mark.parametrize("tau", [1, 4])
def test_lemmas_B5_and_B6_with_minibatches(tau):
    """In the mean over runs, in the long run."""
    errors = np.array([_noisy(seed, tau) for seed in range(60)]).mean(axis=0)
    one = Regression(7).theorem(0.9, 1.0)
    assert errors[0] <= one.worker_error(1e-3, tau)
    assert errors[1] <= one.server_error(1e-3, tau)
    assert errors[0] > 0.02 * one.worker_error(1e-3, tau)


def _noisy(seed: int, tau: int) -> np.ndarray:
    f = Regression(7)
    f.rng = np.random.default_rng(seed)
    return f.errors(40, 1e-3, tau, 0.9, 1.0)[-1]


def report(capsys, *settings: str) -> str:
    data = ("problem.data=sample", "problem.workers=5", "run.rounds=1", "method.name=cd-adam")
    own = ("problem.name=logistic-nonconvex-reg", "method.stepsize=0.01", *data, *settings)
    flags = [flag for setting in own for flag in ("--set", setting)]
    assert main(["theory", "--epsilon", "0.1", *flags]) == 0
    return capsys.readouterr().out.split("PL\n", 1)[1]


def cells(text: str, start: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [start])


def test_command(capsys):
    """All numbers of the report from the data: 5 workers with 320 rows, Top-k, pi = 1 - k / d."""
    settings = ("compressor.name=topk", "compressor.k=60", "method.nu=0.5", "method.batch=64")
    text = report(capsys, *settings)
    a, _ = dense("sample")
    a = a.reshape(5, 320, 123)
    norms = np.linalg.norm(a, axis=2)
    penalty = 0.1 * 3 * sqrt(3) / 8
    L = max(np.linalg.eigvalsh(rows.T @ rows / 1280)[-1] for rows in a) + 0.2
    sigma = sqrt((norms**2).mean(axis=1).max())
    G, G_inf = norms.max() + penalty * sqrt(123), np.abs(a).max() + penalty
    one = Theorem64(5, 320, 123, L, np.log(2), 1 - 60 / 123, G, G_inf, sigma, 0.9, 0.5)
    expected = {"pi": one.pi, "G": G, "G_inf": G_inf, "sigma": sigma, "L": L, "G~": one.G_tilde}
    for name, value in expected.items():
        assert float(cells(text, name)[1]) == pytest.approx(value, rel=1e-5), name
    assert "Delta f  0.693147" in text and "epsilon = 0.01," in text
    orders = one.orders(0.01)
    for name in ("M_1", "M_2", "M_3", "M_4", "M_5"):
        value, order = (float(x) for x in cells(text, name)[1:3])
        assert value == pytest.approx(getattr(one, name), rel=1e-3), name
        assert order == pytest.approx(orders[name], rel=1e-3), name
    assert float(cells(text, "T")[1]) == pytest.approx(one.T(0.01), rel=1e-3)
    assert cells(text, "tau")[1] == str(one.tau(0.01))
    own = cells(text, "1.000e-02")
    assert own[1] == "64" and own[4:] == ["the", "experiment's"]
    assert float(own[2]) == pytest.approx(one.worker_error(0.01, 64), rel=1e-3)
    assert float(own[3]) == pytest.approx(one.server_error(0.01, 64), rel=1e-3)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("problem.l2=0.1", "it needs bounded gradients (Assumption 6.2)"),
        ("problem.name=least-squares", "it needs bounded gradients (Assumption 6.2)"),
        ("method.variant=code", "it is about Algorithm 1"),
        ("method.start=dense", "it is about Algorithm 1"),
        ("method.weight_decay=0.1", "it has no weight decay"),
        ("compressor={name='randk',k=5}", "compressor 'randk' is not contractive"),
    ],
)
def test_where_the_theorem_says_nothing(capsys, setting, reason):
    text = report(capsys, "compressor={name='topk',k=5}", setting)
    assert f"Theorem 6.4\n  none: {reason}" in text and "M_1" not in text


def test_only_cd_adam(capsys):
    for name in ("naive-amsgrad", "ef21-2way"):
        text = report(capsys, "compressor={name='topk',k=5}", f"method.name={name}")
        assert "CD-Adam" not in text
