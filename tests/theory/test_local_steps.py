"""The proofs of SCAFFOLD, Scaffnew, TAMUNA and LoCoDL beside runs, as in test_lyapunov.py; and FedAvg's."""

import numpy as np
import pytest

from tests.theory.proofs import (
    LEAST_SQUARES,
    LOGISTIC,
    MU,
    NONCONVEX,
    N,
    at_minimiser,
    check,
    convex,
    smooth,
    squares,
)

LOCAL = {"local_steps": 5, "server_stepsize": 0.7}
LOCAL_GAMMA = LOCAL["local_steps"] * LOCAL["server_stepsize"]


def scaffold(e, r):
    return r.f + LOCAL_GAMMA * e.step.gamma / 4 * squares(r.grads - r.before.c_i)


def scaffnew(e, r):
    """Of TAMUNA, too, where s of the n workers send each coordinate, whoever takes part."""
    x_star, at_star, _ = at_minimiser(e)
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
    x_star, at_star, _ = at_minimiser(e)
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
    proof = smooth(method, None, scaffold, 60, 1 / 4, steps=LOCAL_GAMMA)
    assert proof.excess(NONCONVEX, 1.0) < 4
    check(proof, LEAST_SQUARES)


def fedavg(name, K, mu):
    """f falls to a floor that FedAvg has where clients differ."""
    gamma = K * LOCAL["server_stepsize"]  # over that of a step
    method = {"name": name} | LOCAL | {"local_steps": K} | ({"mu": mu} if mu else {})

    def drift(e, r):
        L_i = e.cache.constants(e.star).L_i
        far = np.mean((L_i + mu) ** 2 * np.sum(r.last**2, axis=1))
        return gamma / 2 * e.step.gamma**3 * K * (K - 1) * far

    more = {"noise": drift, "rounds": 30, "steps": gamma}
    return smooth(method, None, lambda e, r: r.f, 2.5 if K == 1 else 40.0, **more)


@pytest.mark.parametrize("K", [1, 5])
@pytest.mark.parametrize(("name", "mu"), [("fedavg", 0.0), ("fedprox", 0.5)])
def test_fedavg_falls_to_its_floor(name, mu, K):
    check(fedavg(name, K, mu), LEAST_SQUARES)


CONVEX = {
    "scaffnew": convex({"name": "scaffnew", "p": 0.4}, scaffnew, scaffnew_rate, 100, None),
    "tamuna": convex(
        {"name": "tamuna", "p": 0.4, "participants": 3},
        *(scaffnew, scaffnew_rate, 100, {"name": "pattern", "s": 2}),
    ),
    "locodl": convex({"name": "locodl", "p": 0.4, "mu": MU / 3}, locodl, locodl_rate, 100),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CONVEX)
def test_contraction(name):
    check(CONVEX[name], LOGISTIC)
