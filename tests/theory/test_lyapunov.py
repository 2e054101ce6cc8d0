"""The theorems' guarantees hold at their step sizes, and break at a few times as much.

Each proof shows that a Lyapunov function Phi^k decreases in expectation by a stated amount. Runs
with many seeds estimate that expectation; what no multiple of the step could break is no test, so
every inequality must also fail at a larger multiple.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from mpi4py import MPI

from mpisim.runs.experiment import parse
from mpisim.runs.setup import ProblemCache, Setup
from tests.helpers import table

SEEDS = 40
RANDK = {"name": "randk", "k": 30}
STOCHASTIC = [
    ({"name": "marina"}, {"name": "randk", "k": 10}),
    ({"name": "vr-marina", "batch": 8}, RANDK),
    ({"name": "pp-marina", "participants": 2}, RANDK),
]
NAMES = [method["name"] for method, _ in STOCHASTIC]
MARINA = {"name": "marina", "theorem": "permk"}
PERMK = [  # Theorems 4 and 10
    (MARINA, {"name": "permk"}),
    (MARINA, {"name": "permk", "groups": [[0, 3], [1, 2, 4]]}),
    (MARINA, {"name": "randk", "k": 10}),
]
LEAST_SQUARES = {"name": "least-squares", "l2": 0.01}
LOGISTIC = {"name": "logistic", "l2": 0.01}


class Round(NamedTuple):
    """x^k, f(x^k), |grad f|^2, |g^k - grad f|^2, the f_i's gradients, the state before g^k."""

    x: np.ndarray
    f: float
    square: float
    error: float
    gradients: np.ndarray
    shift: np.ndarray


def trajectory(engine: Setup, rounds: int, state: str = "") -> Iterator[Round]:
    x = engine.problem.initial_point()
    for k in range(rounds + 1):
        engine.round.k = k
        losses, gradients = engine.problem.losses_and_gradients(x)
        shift = getattr(engine.estimator, state, np.zeros_like(gradients)) if state else gradients
        g = engine.estimator.estimate(x) if k else engine.estimator.start(x)
        grad = gradients.mean(axis=0)
        error = np.sum((g - grad) ** 2)
        yield Round(x, losses.mean(), np.sum(grad**2), error, gradients, shift)
        x = engine.state.optimizer.step(x, g, engine.step.gamma)


def engine(method, compressor, problem, loaded, seed=1) -> Setup:
    run = {"rounds": 0, "seed": seed, "wire": "float64"}
    tables = table(method, compressor, workers=5, problem=problem, **run)
    return Setup(parse(tables), MPI.COMM_SELF, loaded)


def at(method: dict, multiple: float, **more) -> dict:
    return method | {"stepsize": {"theory": multiple} | more}


def excess(runs: Callable[[int], np.ndarray], seeds: int = SEEDS) -> float:
    """max_k of (mean over seeds of runs(seed)[k] - 1) in standard errors; runs are >= 0."""
    values = np.array([runs(seed) for seed in range(seeds)])
    error = values.std(axis=0, ddof=1) / np.sqrt(seeds)
    return float(np.max((values.mean(axis=0) - 1) / (error + 1e-12)))


def smooth_case(method, compressor, problem, multiple) -> float:
    """Phi^K + gamma/2 sum_{k<K} |grad f(x^k)|^2 over Phi^0 for Phi = f + gamma/(2p) |g - grad f|^2.

    At most 1 in expectation (PermK paper, proof of Theorem 4; MARINA, Theorems 2.1, 3.1, 4.1).
    """
    loaded = ProblemCache()

    def run(seed: int) -> np.ndarray:
        e = engine(at(method, multiple), compressor, problem, loaded, seed)
        gamma, p = e.step.gamma, e.estimator.p
        rounds = list(trajectory(e, 8))
        phi = np.array([r.f + gamma / (2 * p) * r.error for r in rounds])
        spent = gamma / 2 * np.cumsum([0.0, *(r.square for r in rounds[:-1])])
        return (phi + spent) / phi[0]

    return excess(run)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("method", "compressor"), [*STOCHASTIC, *PERMK], ids=str)
def test_smooth_lyapunov_function(method, compressor):
    assert smooth_case(method, compressor, {"name": "nonconvex-loss"}, 1.0) < 4
    assert smooth_case(method, compressor, LEAST_SQUARES, 1.0) < 4
    assert smooth_case(method, compressor, LEAST_SQUARES, 3.0) > 5


def pl_case(method, compressor, multiple) -> float:
    """Phi^k / ((1 - gamma mu)^k Phi^0) for Phi = f - f* + gamma/p |g - grad f|^2.

    At most 1 in expectation (PermK paper, Theorem 5; MARINA, Theorems 2.2, D.2, E.2).
    """
    loaded = ProblemCache()

    def run(seed: int) -> np.ndarray:
        e = engine(at(method, multiple, condition="PL"), compressor, LOGISTIC, loaded, seed)
        gamma, p, f_star = e.step.gamma, e.estimator.p, loaded.minimiser(e.star)[1]
        phi = [r.f - f_star + gamma / p * r.error for r in trajectory(e, 8)]
        rate = 1 - gamma * LOGISTIC["l2"]
        return np.array(phi) / (phi[0] * rate ** np.arange(9))

    return excess(run)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("method", "compressor"), STOCHASTIC, ids=NAMES)
def test_pl_lyapunov_function(method, compressor):
    assert pl_case(method, compressor, 1.0) < 4
    assert pl_case(method, compressor, 6.0) > 5


def gd_worst(multiple: float) -> float:
    """max_k (f(x^{k+1}) - f(x^k) + gamma/2 |grad f(x^k)|^2) / f(x^0)."""
    e = engine(at({"name": "gd"}, multiple), None, LEAST_SQUARES, ProblemCache())
    r = list(trajectory(e, 50))
    steps = (b.f - a.f + e.step.gamma / 2 * a.square for a, b in pairwise(r))
    return max(steps) / r[0].f


def test_gradient_descent_decreases_f_in_every_step():
    assert gd_worst(1.0) <= 1e-14
    assert gd_worst(1.5) > 1e-6


def ef21_worst(multiple: float, condition: str) -> float:
    """Largest excess of one step's Lyapunov function over what Theorem 6 or 7 allows, over Phi^0.

    Theorem 6: Phi = f + gamma/(2 theta) G falls by gamma/2 |grad f|^2; Theorem 7: Phi = f - f* +
    gamma/theta G falls to 1 - gamma mu times itself. G is the mean of |g_i - grad f_i|^2.
    """
    method, loaded = {"name": "ef21"}, ProblemCache()
    e = engine(
        at(method, multiple, condition=condition), {"name": "topk", "k": 10}, LOGISTIC, loaded
    )
    gamma, theta = e.step.gamma, 1 - np.sqrt(1 - 10 / e.problem.d)
    pl = condition == "PL"
    f_inf = loaded.minimiser(e.star)[1] if pl else 0.0
    weight, rate = (gamma / theta, 1 - gamma * 0.01) if pl else (gamma / (2 * theta), 1.0)
    phi, allowed = [], []
    for r in trajectory(e, 60):
        error = np.mean(np.sum((e.estimator.g_i - r.gradients) ** 2, axis=1))
        phi.append(r.f - f_inf + weight * error)
        allowed.append(rate * phi[-1] - (0.0 if pl else gamma / 2 * r.square))
    return max(b - a for a, b in zip(allowed[:-1], phi[1:], strict=True)) / phi[0]


@pytest.mark.parametrize("condition", ["nonconvex", "PL"])
def test_ef21_lyapunov_function_falls_in_every_step(condition):
    assert ef21_worst(1.0, condition) <= 1e-14
    assert ef21_worst(100.0, condition) > 1e-3


def diana_case(multiple: float) -> float:
    """Phi^k / ((1 - min(gamma mu, alpha / 2))^k Phi^0) of SAQ's Theorem 2, at most 1 on average.

    Phi = |x - x*|^2 + (4 omega / (alpha n)) gamma^2 L_max mean |h_i - grad f_i(x*)|^2 / L_i.
    """
    compressor, loaded = {"name": "randk", "k": 10}, ProblemCache()

    def run(seed: int) -> np.ndarray:
        e = engine(at({"name": "diana"}, multiple), compressor, LOGISTIC, loaded, seed)
        gamma, alpha, omega = e.step.gamma, e.estimator.alpha, e.problem.d / 10 - 1
        L_i = loaded.constants(e.star).L_i
        x_star = loaded.minimiser(e.star)[0]
        at_star = e.problem.gradients(x_star)
        weight = 4 * omega * L_i.max() / (alpha * 5) * gamma**2

        def phi(r: Round) -> float:
            sigma = np.mean(np.sum((r.shift - at_star) ** 2, axis=1) / L_i)
            return float(np.sum((r.x - x_star) ** 2) + weight * sigma)

        values = np.array([phi(r) for r in trajectory(e, 30, "h_i")])
        rate = 1 - min(gamma * LOGISTIC["l2"], alpha / 2)
        return values / (values[0] * rate ** np.arange(31))

    return excess(run)


def test_diana_contracts_as_its_theorem_says():
    assert diana_case(1.0) < 4
    assert diana_case(12.0) > 5
