"""Derived steps: what each proof says falls does so in runs, but not at a multiple of the step."""

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.runs.setup import ProblemCache
from mpisim.theory.tables import Case
from tests.helpers import dense
from tests.theory.test_lyapunov import LEAST_SQUARES, LOGISTIC, at, engine, excess

NONCONVEX = {"name": "nonconvex-loss"}
RANDK, TOPK = {"name": "randk", "k": 30}, {"name": "topk", "k": 10}
MU = LOGISTIC["l2"]
KEPT = "w", "w_i", "z", "h_i", "c_i", "g_i", "v_i", "H_i"


def rounds_of(e, count):
    """x^k, f(x^k), grad f_i(x^k) and what the method keeps, before and after the round."""
    state = e.state
    for _ in range(count + 1):
        x = state.x
        losses, gradients = e.problem.losses_and_gradients(x)
        before = {name: getattr(state.estimator, name, 0.0) for name in KEPT}
        before = {name: np.array(value) for name, value in before.items()}
        state.step(e.step.gamma)
        after = SimpleNamespace(**{name: getattr(state.estimator, name, 0.0) for name in KEPT})
        square = np.sum(gradients.mean(axis=0) ** 2)
        yield SimpleNamespace(
            x=x, f=losses.mean(), grad=gradients, square=square,
            before=SimpleNamespace(**before), after=after,
        )  # fmt: skip


def squares(rows):
    """The mean of |row|^2."""
    return float(np.mean(np.sum(np.atleast_2d(rows) ** 2, axis=1)))


def theta(alpha):
    return 1 - sqrt(1 - alpha)


def marina_p(e, r, gamma, c):
    W = np.mean(c.L_i**2 * np.sum((r.after.w_i - r.x) ** 2, axis=1))
    return r.f + gamma / (2 * e.estimator.p) * W


def ef21_p(e, r, gamma, c):
    W = squares(r.after.w - r.x)
    return r.f + gamma * c.L**2 / (2 * theta(e.estimator.down.alpha)) * W


def ef21_sgdm(e, r, gamma, c):
    eta, alpha = e.estimator.eta, e.compressor.alpha
    weight = gamma / eta + 2 * gamma * (1 - alpha) / theta(alpha) ** 2 * eta
    errors = squares(r.after.g_i - r.after.v_i), squares(r.after.v_i - r.grad)
    return r.f + gamma / theta(alpha) * errors[0] + weight * errors[1]


def ef_bv(e, r, gamma, c):
    omega, lambda_, nu = e.compressor.omega, e.estimator.lambda_, e.estimator.nu
    r_av = (1 - nu) ** 2 + nu**2 * e.compressor.A
    root = sqrt((1 - lambda_) ** 2 + lambda_**2 * omega)
    return r.f + gamma * r_av / (2 * (1 - root)) * squares(r.before.h_i - r.grad)


def rand_diana(e, r, gamma, c):
    weight = gamma * e.compressor.A / (2 * theta(e.estimator.p))
    return r.f + weight * squares(r.before.h_i - r.grad)


def scaffold(e, r, gamma, c):
    return r.f + gamma / 4 * squares(r.grad - r.before.c_i)


LOCAL = {"local_steps": 5, "server_stepsize": 0.7}
SMOOTH = {  # method, compressor, Phi, gamma |grad f|^2 times this is what it falls by, what breaks
    "marina-p": ({"name": "marina-p", "down": RANDK}, None, marina_p, 1 / 2, 4),
    "marina-p, permk": ({"name": "marina-p", "down": {"name": "permk"}}, None, marina_p, 1 / 2, 4),
    "ef21-p": ({"name": "ef21-p", "down": TOPK}, None, ef21_p, 1 / 2, 40),
    "ef21-sgdm": ({"name": "ef21-sgdm", "eta": 0.3}, TOPK, ef21_sgdm, 1 / 2, 100),
    "ef-bv": ({"name": "ef-bv"}, RANDK, ef_bv, 1 / 2, 40),
    "ef-bv, permk": ({"name": "ef-bv", "lambda": 0.3}, {"name": "permk"}, ef_bv, 1 / 2, 40),
    "rand-diana": ({"name": "rand-diana"}, RANDK, rand_diana, 1 / 2, 10),
    "scaffold I": ({"name": "scaffold", "option": "I"} | LOCAL, None, scaffold, 1 / 4, 60),
    "scaffold II": ({"name": "scaffold"} | LOCAL, None, scaffold, 1 / 4, 60),
}


def fall(name, problem, multiple, count=8):
    """The excess of Phi^k + gamma times the share of sum_{j<k} |grad f(x^j)|^2 over Phi^0."""
    method, compressor, phi, share, _ = SMOOTH[name]
    loaded = ProblemCache()

    def run(seed):
        e = engine(at(method, multiple), compressor, problem, loaded, seed)
        gamma, c = e.step.gamma, loaded.constants(e.star)
        if name.startswith("scaffold"):
            gamma *= LOCAL["local_steps"] * LOCAL["server_stepsize"]
        rounds = list(rounds_of(e, count))
        values = np.array([phi(e, r, gamma, c) for r in rounds])
        spent = share * gamma * np.cumsum([0.0, *(r.square for r in rounds[:-1])])
        return (values + spent) / values[0]

    random = (compressor or method.get("down", TOPK))["name"] in ("randk", "permk")
    return excess(run, 40 if random else 2)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", SMOOTH)
def test_lyapunov_function(name):
    if name != "rand-diana":  # convex problems have another step
        assert fall(name, LEAST_SQUARES, 1.0) < 4
        assert fall(name, LEAST_SQUARES, SMOOTH[name][-1]) > 5
    assert fall(name, NONCONVEX, 1.0) < 4


def contraction(method, compressor, multiple, phi, rate, count=30):
    """The excess of Phi^k over (1 - rate)^k Phi^0, on a strongly convex problem."""
    loaded, at_star = ProblemCache(), []

    def run(seed):
        e = engine(at(method, multiple), compressor, LOGISTIC, loaded, seed)
        if not at_star:
            x, f = loaded.minimiser(e.star)[:2]
            at_star.extend([x, f, e.problem.gradients(x)])
        c = loaded.constants(e.star)
        values = np.array([phi(e, r, c, *at_star) for r in rounds_of(e, count)])
        return values / (values[0] * (1 - rate(e)) ** np.arange(count + 1))

    return excess(run)


def convex_rand_diana(e, r, c, x, f, grad):
    gamma, p, omega = e.step.gamma, e.estimator.p, e.compressor.omega
    sigma = np.mean(np.sum((r.before.h_i - grad) ** 2, axis=1) / c.L_i)
    return squares(r.x - x) + 4 * omega * c.L_i.max() / (p * 5) * gamma**2 * sigma


def convex_ef21_p(e, r, c, x, f, grad):
    """Of w^k, to which w moves in the round, and h_i^k, which moves behind it."""
    gamma, omega, its = e.step.gamma, e.compressor.omega, e.estimator
    a = 8 * gamma * c.L / theta(its.down.alpha)
    b = 4 * (1 + a) * gamma**2 * omega / (5 * its.alpha)
    return squares(r.x - x) + a * squares(r.after.w - r.x) + b * squares(r.before.h_i - grad)


def adiana(e, r, c, x, f, grad):
    gamma, th = adiana_steps(e)
    its, eta, k = e.estimator, e.step.gamma, int(np.ndim(r.before.z) > 0)
    w, z = (r.before.w, r.before.z) if k else (r.x, r.x)
    losses, gradients = e.problem.losses_and_gradients(w)
    weight = gamma * (1 - gamma * MU) / th
    H = squares(r.before.h_i - gradients)
    noise = 8 * gamma * eta * e.compressor.omega / (th * 5 * its.alpha)
    F = (1 + th) / its.p * (losses.mean() - f)
    return squares(z - x) + 2 * weight * (r.f - f) + weight * F + noise * H


def adiana_steps(e):
    eta, p = e.step.gamma, e.estimator.p
    th = min(1 / 4, sqrt(eta * MU / p))
    return eta / (2 * (th + eta * MU)), th


def adiana_rate(e):
    gamma, th = adiana_steps(e)
    its = e.estimator
    return min(gamma * MU, th / 2, its.p * th / (1 + th), its.alpha / 4)


def ef21_p_rate(e):
    its = e.estimator
    return min(e.step.gamma * MU / 8, theta(its.down.alpha) / 4, its.alpha / 2)


K10 = {"name": "randk", "k": 10}
CONVEX = {  # method, Phi, its share that falls; with this compressor, what breaks
    "rand-diana": ({"name": "rand-diana"}, convex_rand_diana,
                   lambda e: min(e.step.gamma * MU, e.estimator.p / 2), K10, 100),
    "ef21-p": ({"name": "ef21-p", "down": TOPK}, convex_ef21_p, ef21_p_rate, K10, 100),
    "adiana": ({"name": "adiana", "mu": MU}, adiana, adiana_rate, {"name": "identity"}, 16),
}  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CONVEX)
def test_contraction(name):
    method, phi, rate, compressor, multiple = CONVEX[name]
    assert contraction(method, K10, 1.0, phi, rate) < 4
    assert contraction(method, compressor, multiple, phi, rate) > 5


def fedavg_worst(method, multiple, mu=0.0):
    """The largest excess of f(x^{k+1}) over what the proof allows, over f(x^0)."""
    loaded, K = ProblemCache(), method["local_steps"]
    e = engine(at(method, multiple), None, LEAST_SQUARES, loaded)
    eta, c = e.step.gamma, loaded.constants(e.star)
    gamma = K * eta * method["server_stepsize"]
    rounds = list(rounds_of(e, 30))
    drift = [np.mean((c.L_i + mu) ** 2 * np.sum(r.grad**2, axis=1)) for r in rounds]
    allowed = [
        r.f - gamma / 2 * r.square + gamma / 2 * eta**2 * K * (K - 1) * far
        for r, far in zip(rounds, drift, strict=True)
    ]
    return max(b.f - most for most, b in zip(allowed[:-1], rounds[1:], strict=True)) / rounds[0].f


@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize(("name", "mu"), [("fedavg", 0.0), ("fedprox", 0.5)])
def test_fedavg_falls_to_its_floor(name, mu, K):
    method = {"name": name, "local_steps": K, "server_stepsize": 1.3} | ({"mu": mu} if mu else {})
    assert fedavg_worst(method, 1.0, mu) <= 1e-14
    assert fedavg_worst(method, 2.5 if K == 1 else 40.0, mu) > 1e-6


def test_fednl_near_its_minimiser():
    """|x^{k+1} - x*| mu <= 2 l^k |x^k - x*| + M/2 |x^k - x*|^2, M = max |phi'''| mean |a|^3."""
    a, loaded = dense("sample")[0], ProblemCache()
    M = np.mean(np.linalg.norm(a, axis=1) ** 3) / (6 * sqrt(3))
    keys = {"hessian": {"name": "topk", "k": 2000}, "alpha": 1.0, "stepsize": "theory"}
    e = engine({"name": "fednl"} | keys, None, LOGISTIC, loaded)
    x = loaded.minimiser(e.star)[0]
    away, errors = [], []
    for r in rounds_of(e, 14):
        H_i = r.before.H_i if r.before.H_i.ndim else e.problem.hessian_triangles(r.x)
        errors.append(np.mean(np.linalg.norm(e.problem.hessian_triangles(r.x) - H_i, axis=1)))
        away.append(np.linalg.norm(r.x - x))
    assert e.step.gamma == 1
    bounds = (2 * np.array(errors) + M / 2 * np.array(away)) * away / MU
    assert (np.array(away[1:]) <= bounds[:-1] + 1e-13).all() and away[-1] < 1e-13


def test_rows_of_the_tables():
    """Where there is no error at the start, K = 2 Delta_0 / (gamma epsilon^2)."""
    for method, compressor in (
        ({"name": "marina-p", "down": RANDK}, None),
        ({"name": "ef21-p", "down": TOPK}, None),
        ({"name": "ef21-sgdm", "eta": 0.3}, TOPK),
    ):
        e = engine(at(method, 1.0), compressor, NONCONVEX, ProblemCache())
        case = Case(e.setting(), int(e.problem.rows[0]), delta=0.25, epsilon=0.1)
        (row,) = e.estimator.guarantees(case)
        assert row.rounds == np.ceil(50 / e.step.gamma) and row.kind == "bound"
        floats = 10 if compressor else e.problem.d
        assert row.bits == pytest.approx(32 * (e.problem.d + (row.rounds - 1) * floats))
