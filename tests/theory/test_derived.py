"""Derived guarantees: proofs of methods with local steps as in test_lyapunov.py, and FedNL's."""

from math import sqrt

import numpy as np
import pytest

from mpisim.runs.setup import ProblemCache
from mpisim.theory.tables import Case
from tests.helpers import dense, set_up, table
from tests.theory import proofs
from tests.theory.proofs import LEAST_SQUARES, LOGISTIC, MU, RANDK, TOPK, N, at, engine, squares

LOCAL = {"local_steps": 5, "server_stepsize": 0.7}
LOCAL_GAMMA = LOCAL["local_steps"] * LOCAL["server_stepsize"]


def scaffold(e, r):
    return r.f + LOCAL_GAMMA * e.step.gamma / 4 * squares(r.grads - r.before.c_i)


def scaffnew(e, r):
    """Of TAMUNA, too, where s of the n workers send each coordinate, whoever takes part."""
    x_star, at_star, _ = proofs.at_minimiser(e)
    dual = e.step.gamma**2 * squares(r.before.h_i - at_star)
    return squares(r.x - x_star) + dual / scaffnew_share(e)


def scaffnew_share(e):
    """p^2 eta (s - 1) / (n - 1)."""
    its = e.estimator
    return its.p**2 * getattr(its, "eta", 1.0) * (getattr(its, "s", N) - 1) / (N - 1)


def scaffnew_rate(e):
    """Of a step; a round has at least one."""
    return max((1 - e.step.gamma * MU) ** 2, 1 - scaffnew_share(e))


def locodl(e, r):
    x_star, at_star, _ = proofs.at_minimiser(e)
    its, before = e.estimator, r.before
    u_star, v_star = at_star - its.mu * x_star, its.mu * x_star
    dual = e.step.gamma**2 * (squares(before.u_i - u_star) + squares(before.v - v_star))
    return squares(before.x_i - x_star) + squares(r.x - x_star) + dual / locodl_share(e)


def locodl_share(e):
    return e.estimator.p**2 * e.estimator.chi / (1 + 2 * e.compressor.omega)


def locodl_rate(e):
    mu = min(e.estimator.mu, MU - e.estimator.mu)
    return max((1 - e.step.gamma * mu) ** 2, 1 - locodl_share(e))


@pytest.mark.parametrize("option", ["I", "II"])
def test_scaffold(option):
    method = {"name": "scaffold", "option": option} | LOCAL
    proof = proofs.smooth(method, None, scaffold, 60, 1 / 4, steps=LOCAL_GAMMA)
    assert proof.excess(proofs.NONCONVEX, 1.0) < 4
    proofs.check(proof, LEAST_SQUARES)


def fedavg(name, K, mu):
    """f falls to a floor that FedAvg has where clients differ."""
    gamma = K * LOCAL["server_stepsize"]  # over that of a step
    method = {"name": name} | LOCAL | {"local_steps": K} | ({"mu": mu} if mu else {})

    def drift(e, r):
        L_i = e.cache.constants(e.star).L_i
        far = np.mean((L_i + mu) ** 2 * np.sum(r.last**2, axis=1))
        return gamma / 2 * e.step.gamma**3 * K * (K - 1) * far

    more = {"noise": drift, "rounds": 30, "steps": gamma}
    return proofs.smooth(method, None, lambda e, r: r.f, 2.5 if K == 1 else 40.0, **more)


@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize(("name", "mu"), [("fedavg", 0.0), ("fedprox", 0.5)])
def test_fedavg_falls_to_its_floor(name, mu, K):
    proofs.check(fedavg(name, K, mu), LEAST_SQUARES)


CONVEX = {
    "scaffnew": proofs.convex({"name": "scaffnew", "p": 0.4}, scaffnew, scaffnew_rate, 100, None),
    "tamuna": proofs.convex(
        {"name": "tamuna", "p": 0.4, "participants": 3},
        *(scaffnew, scaffnew_rate, 100, {"name": "pattern", "s": 2}),
    ),
    "locodl": proofs.convex({"name": "locodl", "p": 0.4, "mu": MU / 3}, locodl, locodl_rate, 100),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CONVEX)
def test_contraction(name):
    proofs.check(CONVEX[name], LOGISTIC)


def test_fednl_near_its_minimiser():
    """|x^{k+1} - x*| mu <= 2 l^k |x^k - x*| + M/2 |x^k - x*|^2, M = max |phi'''| mean |a|^3."""
    a, loaded = dense("sample")[0], ProblemCache()
    M = np.mean(np.linalg.norm(a, axis=1) ** 3) / (6 * sqrt(3))
    keys = {"hessian": {"name": "topk", "k": 2000}, "alpha": 1.0, "stepsize": "theory"}
    e = engine({"name": "fednl"} | keys, None, LOGISTIC, loaded)
    x = loaded.minimiser(e.star)[0]
    away, errors = [], []
    for r in proofs.rounds_of(e, 14):
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
        e = engine(at(method, 1.0), compressor, proofs.NONCONVEX, ProblemCache())
        case = Case(e.setting(), e.problem.rows, delta=0.25, epsilon=0.1)
        (row,) = e.estimator.guarantees(case)
        assert row.rounds == np.ceil(50 / e.step.gamma) and row.kind == "bound"
        floats = 10 if compressor else e.problem.d
        assert row.bits == pytest.approx(32 * (e.problem.d + (row.rounds - 1) * floats))


@pytest.mark.parametrize("compressor", [{"name": "permk"}, {"name": "randk", "k": 5}])
def test_ef_bv_weighs_messages_by_the_error_of_their_mean(compressor):
    """(1 - nu)^2 + nu^2 A is least; what PermK's workers send is not independent."""
    tables = table({"name": "ef-bv", "stepsize": 0.1}, compressor, workers=10)
    setup = set_up(tables)
    nu, A = setup.estimator.nu, setup.compressor.A
    r_av = [(1 - one) ** 2 + one**2 * A for one in (0.99 * nu, nu, 1.01 * nu)]
    assert r_av[1] == min(r_av)
