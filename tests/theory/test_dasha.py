"""DASHA's step sizes: by hand, and by the Lyapunov function that they are derived from."""

from math import sqrt

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.runs.setup import ProblemCache
from mpisim.theory import dasha
from mpisim.theory.tables import Case
from tests.theory import test_lyapunov as proofs
from tests.theory.support import setting

# L = 4, L^2 = 25, L_max = 14, n = 2; omega = 1: omega (2 omega + 1) / n = 1.5
A = 1 / 3
V = 0.5 * 14**2 / 7  # 14, with 1 - p = 0.5 and B = 7
BY_HAND = [
    ("dasha", dasha.dasha, (A,), 16 * 1.5 * 25, 40 * 1.5 * 25),
    ("page", dasha.page, (A, 0.5, 7), 48 * 1.5 * 39 + 2 * V, 200 * 1.5 * 39 + 4 * V),
    ("mvr", dasha.mvr, (A, 0.5, 7), 96 * 1.5 * 32 + 4 * V / 2, 400 * 1.5 * 32 + 8 * V / 2),
    ("sync", dasha.sync_mvr, (A, 0.5, 7), 4 * 1.5 * 26.5 + 2 * V, 8 * 1.5 * 26.5 + 4 * V),
]
NAMES = [name for name, *_ in BY_HAND]


@pytest.mark.parametrize(("name", "step", "how", "smooth", "pl"), BY_HAND, ids=NAMES)
def test_by_hand(name, step, how, smooth, pl):
    result = step(setting(1.0), *how)
    assert result.gamma == pytest.approx(1 / (4 + sqrt(smooth)), rel=1e-14)
    assert result.source.startswith("DASHA") and "PL" not in result.source
    result = step(setting(1.0, condition="PL", mu=0.001), *how)
    assert result.gamma == pytest.approx(1 / (4 + sqrt(pl)), rel=1e-14)
    assert "(PL): min(" in result.source and "a / (2 mu)" in result.source
    assert step(setting(1.0, condition="PL", mu=100.0), *how).gamma == A / 200
    with pytest.raises(InputError, match=r'method\.a = "theory"'):
        step(setting(1.0), 0.5, *how[1:])
    with pytest.raises(InputError, match="unbiased"):
        step(setting(None), *how)


def test_guarantees_by_hand():
    """K = 2 Delta_0 / (gamma epsilon^2) rounds, and what they send and ask for."""
    s = setting(1.0)  # d = 8, zeta = 4
    case = Case(s, m=100, delta=3.0, epsilon=0.1)
    row = dasha.dasha_row(case, dasha.dasha(s, A))
    assert row.rounds == pytest.approx(600 * (4 + sqrt(600)), abs=1)
    assert row.bits == 32 * (8 + (row.rounds - 1) * 4)
    assert row.calls == 100 * row.rounds and row.kind == "bound"
    row = dasha.page_row(case, dasha.page(s, A, 0.5, 7), 0.5, 7)
    assert row.bits == 32 * (8 + (row.rounds - 1) * 4)
    assert row.calls == 100 + (row.rounds - 1) * (50 + 7)
    row = dasha.mvr_row(case, dasha.mvr(s, A, 0.5, 7), 0.5, 7, 60)
    assert row.calls == 60 + (row.rounds - 1) * 14 and row.kind == "order"
    row = dasha.sync_mvr_row(case, dasha.sync_mvr(s, A, 0.5, 7), 0.5, 7, 60, 90)
    assert row.bits == 32 * (8 + (row.rounds - 1) * 6)
    assert row.calls == 90 + (row.rounds - 1) * (30 + 7)


RANDK = {"name": "randk", "k": 30}
METHODS = [
    {"name": "dasha"},
    {"name": "dasha-page", "batch": 8},
    {"name": "dasha-mvr", "batch": 8, "big_batch": 80},
    {"name": "dasha-sync-mvr", "batch": 8, "big_batch": 80},
]


def errors(e, r) -> np.ndarray:
    """G, G_i, H, H_i of the module's first lines."""
    g, h = e.estimator.g_i, e.estimator.h_i

    def squares(v):
        return np.sum(v.mean(axis=0) ** 2), np.mean(np.sum(v**2, axis=1))

    return np.array([*squares(g - h), *squares(h - r.gradients)])


def weights(e, pl: bool) -> np.ndarray:
    """Of the errors in the Lyapunov function, and of what sampling noise adds to it."""
    its, gamma, n = e.estimator, e.step.gamma, e.problem.n
    omega, more = e.compressor.omega, 2 if pl else 1
    c = (20 if pl else 8) * gamma * omega * (2 * omega + 1) / n
    q = getattr(its, "b", getattr(its, "p", None))
    kept = {"dasha-page": 2 * c, "dasha-mvr": 2 * c * (q or 0.0)}.get(its.name, 0.0)
    of_h = more * gamma / q if q else 0.0
    sent = more * gamma * (2 * omega + 1), more**2 * (2 if pl else 4) * gamma * omega / n
    if its.name == "dasha-sync-mvr":
        of_g = gamma / (its.a * ((1.5 if pl else 2) - its.a))
        sent = of_g, 2 * more * its.a * omega * of_g / n
    return np.array([*sent, of_h, more * kept])


def variance(problem, x) -> float:
    """mean_i mean_j |grad f_ij - grad f_i|^2."""
    m, full = int(problem.rows.min()), problem.gradients(x)
    away = [problem.batch_gradients(x, np.full((problem.m, 1), j)) - full for j in range(m)]
    return float(np.mean(np.sum(np.square(away), axis=2)))


def floor(e, x, pl: bool) -> float:
    """What sampling adds to the Lyapunov function in a round."""
    its, gamma, n, omega = e.estimator, e.step.gamma, e.problem.n, e.compressor.omega
    if its.name == "dasha-mvr":
        b, c = its.b, (20 if pl else 8) * omega * (2 * omega + 1)
        rounds = (10 if pl else 6) * c * b**2 + (4 if pl else 2) * b
        return gamma * rounds * variance(e.problem, x) / (n * its.B)
    if its.name == "dasha-sync-mvr":
        return (2 if pl else 1) * gamma * variance(e.problem, x) / (n * its.big_B)
    return 0.0


def seeds_and_rounds(name: str) -> tuple[int, int]:
    """Fewer where the variance of samples is needed, which takes a while."""
    return (12, 5) if "mvr" in name else (proofs.SEEDS, 8)


def smooth_case(method, problem, multiple) -> float:
    """Phi^K + gamma/2 sum_{k<K} |grad f(x^k)|^2 over Phi^0 and the noise: at most 1 on average."""
    loaded, (seeds, rounds) = ProblemCache(), seeds_and_rounds(method["name"])

    def run(seed):
        e = proofs.engine(proofs.at(method, multiple), RANDK, problem, loaded, seed)
        w, phi, spent, noise = weights(e, False), [], [0.0], [0.0]
        for r in proofs.trajectory(e, rounds):
            noise[-1] += floor(e, r.x, False) if phi else 0.0
            phi.append(r.f + w @ errors(e, r))
            spent.append(spent[-1] + e.step.gamma / 2 * r.square)
            noise.append(noise[-1])
        return (np.array(phi) + spent[:-1]) / (phi[0] + np.array(noise[:-1]))

    return proofs.excess(run, seeds)


def pl_case(method, multiple) -> float:
    """Phi^k over what (1 - gamma mu) and the noise leave of it: at most 1 on average."""
    loaded, (seeds, rounds) = ProblemCache(), seeds_and_rounds(method["name"])

    def run(seed):
        e = proofs.engine(
            proofs.at(method, multiple, condition="PL"), RANDK, proofs.LOGISTIC, loaded, seed
        )
        w, f_star = weights(e, True), loaded.minimiser(e.star)[1]
        rate, phi, allowed = 1 - e.step.gamma * proofs.LOGISTIC["l2"], [], []
        for r in proofs.trajectory(e, rounds):
            phi.append(r.f - f_star + w @ errors(e, r))
            allowed.append(rate * allowed[-1] + floor(e, r.x, True) if allowed else phi[0])
        return np.array(phi) / np.array(allowed)

    return proofs.excess(run, seeds)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_smooth_lyapunov_function(method):
    assert smooth_case(method | {"start": "dense"}, proofs.LEAST_SQUARES, 1.0) < 4
    assert smooth_case(method | {"start": "zero"}, {"name": "nonconvex-loss"}, 1.0) < 4
    assert smooth_case(method, proofs.LEAST_SQUARES, 50.0) > 5


@pytest.mark.drawn(2)
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_pl_lyapunov_function(method):
    assert pl_case(method, 1.0) < 4
    assert pl_case(method, 100.0) > 5
