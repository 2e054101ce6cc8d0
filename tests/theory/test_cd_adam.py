"""CD-Adam's Theorem 6.4 and Table 1 by hand, and as `mpisim theory` prints them."""

import dataclasses
from math import sqrt

import numpy as np
import pytest

from mpisim.theory.cd_adam import Theorem64
from tests.helpers import dense, some_of
from tests.theory.support import SAMPLE, theory

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
    assert ONE.worker_error(0.1, 50) == pytest.approx(2 * 45 * 0.1 * 3 / 0.2)
    assert ONE.server_error(0.1, 50) == pytest.approx(3 * 2 * 45 * 0.1 * 3 / 0.2)
    alpha = 4 * 0.1 / (24 * expected["M_3"] + 6 * expected["M_4"] * 1.5**2)
    assert ONE.alpha(0.1) == pytest.approx(alpha)


@some_of(8, epsilon=[1e-3, 0.1, 10.0], sigma=[0.0, 1e-5, 1.5], pi=[0.0, 0.25, 0.9])
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


def report(capsys, *settings: str) -> str:
    flags = ("method.name=cd-adam", "problem.name=logistic-nonconvex-reg", "method.stepsize=0.01")
    return theory(capsys, *SAMPLE, *flags, *settings, epsilon="0.1").split("PL\n", 1)[1]


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
    orders = {name: one.orders(0.01)[name] for name in ("M_1", "M_2", "M_3", "M_4", "M_5")}
    for name, order in orders.items():
        printed = [float(x) for x in cells(text, name)[1:3]]
        assert printed == pytest.approx([getattr(one, name), order], rel=1e-3), name
    assert float(cells(text, "T")[1]) == pytest.approx(one.T(0.01), rel=1e-3)
    assert cells(text, "tau")[1] == str(one.tau(0.01))
    flags = cells(text, "1.000e-02")
    assert flags[1] == "64" and flags[4:] == ["the", "experiment's"]
    errors = one.worker_error(0.01, 64), one.server_error(0.01, 64)
    assert [float(x) for x in flags[2:4]] == pytest.approx(errors, rel=1e-3)


def test_N_is_the_largest_shard(capsys):
    """Of 266 and 267 rows. A minibatch's variance grows with N, and the least batch with it."""
    unequal = "problem.workers=6", "problem.remainder=spread"
    assert "of N = 267:" in report(capsys, *unequal, "compressor={name='topk',k=60}")
    assert ONE.noise(10) == pytest.approx(1.5 * sqrt(40 / (10 * 49))) and ONE.noise(50) == 0
    assert all(dataclasses.replace(ONE, N=51).tau(x) >= ONE.tau(x) for x in (0.1, 10.0, 1e4))


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("problem.l2=0.1", "it needs bounded gradients (Assumption 6.2)"),
        ("problem.name=least-squares", "it needs bounded gradients (Assumption 6.2)"),
        ("method.variant=code", "it is about Algorithm 1"),
        ("method.start=dense", "it is about Algorithm 1"),
        ("method.weight_decay=0.1", "it is about Algorithm 1"),
        ("compressor={name='randk',k=5}", "compressor 'randk' is not contractive"),
    ],
)
def test_where_the_theorem_says_nothing(capsys, setting, reason):
    text = report(capsys, "compressor={name='topk',k=5}", setting)
    assert f"Theorem 6.4\n  none: {reason}" in text and "M_1" not in text
