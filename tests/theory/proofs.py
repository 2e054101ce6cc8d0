"""Runs of a method beside the Lyapunov function of its proof.

Each proof shows that a function Phi^k falls in expectation by a stated amount. Runs with many seeds
estimate that expectation; what no multiple of the step could break is no test, so every inequality
must also fail at a larger multiple.
"""

from collections.abc import Callable, Iterator
from math import sqrt
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from mpisim.runs.setup import ProblemCache, Setup
from mpisim.theory.smoothness import matrices
from tests.helpers import set_up, table

SEEDS, N = 40, 5
RANDK, K10, TOPK = {"name": "randk", "k": 30}, {"name": "randk", "k": 10}, {"name": "topk", "k": 10}
LEAST_SQUARES = {"name": "least-squares", "l2": 0.01}
LOGISTIC = {"name": "logistic", "l2": 0.01}
NONCONVEX = {"name": "nonconvex-loss"}
MU = LOGISTIC["l2"]
KEPT = "x", "w", "w_i", "z", "h_i", "c_i", "g_i", "v_i", "H_i", "x_i", "u_i", "v"


def engine(method, compressor, problem, loaded=None, seed=1) -> Setup:
    run = {"rounds": 0, "seed": seed, "wire": "float64"}
    tables = table(method, compressor, workers=N, problem=problem, **run)
    return set_up(tables, loaded or ProblemCache())


def at(method: dict, multiple: float, **more) -> dict:
    return method | {"stepsize": {"theory": multiple} | more}


def rounds_of(e: Setup, count: int) -> Iterator[SimpleNamespace]:
    """k, x^k, f(x^k), grad f_i(x^k), |grad f|^2, |g^k - grad f|^2; what is kept, before and after.

    ``last``: grad f_i(x^{k-1}). All that is kept is 0 before round 0.
    """
    state, gradients = e.state, None
    for k in range(count + 1):
        x, last = state.x, gradients
        losses, gradients = e.problem.losses_and_gradients(x)
        before = {name: np.array(getattr(state.estimator, name, 0.0)) for name in KEPT}
        state.step(e.step.gamma)
        after = {name: getattr(state.estimator, name, 0.0) for name in KEPT}
        grad = gradients.mean(axis=0)
        error = np.sum(((x - state.x) / e.step.gamma - grad) ** 2)
        yield SimpleNamespace(
            k=k, x=x, last=last, f=losses.mean(), grads=gradients, square=np.sum(grad**2),
            error=error, before=SimpleNamespace(**before), after=SimpleNamespace(**after),
        )  # fmt: skip


def squares(rows) -> float:
    """The mean of |row|^2."""
    return float(np.mean(np.sum(np.atleast_2d(rows) ** 2, axis=1)))


def theta(alpha: float) -> float:
    return 1 - sqrt(1 - alpha)


def f_star(e):
    return e.cache.minimiser(e.star)[1]


def of_mu(e):
    return 1 - e.step.gamma * MU


AT_MINIMISER: dict = {}  # x*, the gradients there and L_i^-1: the same for all seeds


def at_minimiser(e):
    approximation = getattr(e.compressor, "approximation", "none")
    key = e.problem.identity, approximation
    if key not in AT_MINIMISER:
        x_star, L = e.cache.minimiser(e.star)[0], matrices(e.problem)
        if approximation == "none":
            L = e.cache.constants(e.star).L_i[:, None, None] * np.eye(e.problem.d)
        if approximation == "diagonal":  # SAQ, A.3: a diagonal matrix above each
            L = np.array([np.diag(np.abs(one).sum(axis=1)) for one in matrices(e.problem)])
        AT_MINIMISER[key] = x_star, e.problem.gradients(x_star), np.linalg.inv(L)
    return AT_MINIMISER[key]


class Proof(NamedTuple):
    """E Phi^{k+1} + share gamma |grad f(x^k)|^2 <= rate Phi^k + noise, for phi(e, round) = Phi^k.

    Runs without draws (2 seeds) are checked round by round; others, over all rounds so far.

    breaks : the multiple of the step at which it fails, with ``other`` as the compressor
    steps : gamma of the proof over the step size
    """

    method: dict
    compressor: dict | None
    phi: Callable
    breaks: float | None
    share: float = 0.0
    rate: Callable = lambda e: 1.0
    noise: Callable = lambda e, r: 0.0
    rounds: int = 8
    seeds: int = SEEDS
    condition: str = "nonconvex"
    other: dict | None = None
    steps: float = 1.0

    def excess(self, problem: dict, multiple: float) -> float:
        """max_k of the mean of Phi^k over what is allowed, less 1, in standard errors."""
        loaded = ProblemCache()
        method = at(self.method, multiple, condition=self.condition)
        compressor = self.compressor if multiple == 1 else self.other or self.compressor

        def run(seed: int) -> np.ndarray:
            e = engine(method, compressor, problem, loaded, seed)
            values, allowed, spent, before = [], [], 0.0, None
            for r in rounds_of(e, self.rounds):
                phi, fall = self.phi(e, r), self.share * self.steps * e.step.gamma * r.square
                values.append(phi + spent)
                allowed.append(phi if before is None else self.rate(e) * before + self.noise(e, r))
                alone = self.seeds == 2
                before, spent = (phi, fall) if alone else (allowed[-1], spent + fall)
            return np.array(values) / np.array(allowed)

        ratios = np.array([run(seed) for seed in range(self.seeds)])
        error = ratios.std(axis=0, ddof=1) / np.sqrt(self.seeds)
        return float(np.max((ratios.mean(axis=0) - 1) / (error + 1e-12)))


def smooth(method, compressor, phi, breaks, share=1 / 2, **more):
    drawing = (compressor or method.get("down", TOPK))["name"] in ("randk", "permk")
    return Proof(method, compressor, phi, breaks, share, seeds=SEEDS if drawing else 2, **more)


def convex(method, phi, rate, breaks, compressor=K10, **more):
    return Proof(method, compressor, phi, breaks, rate=rate, rounds=30, **more)


def check(proof, problem):
    assert proof.excess(problem, 1.0) < 4
    assert proof.breaks is None or proof.excess(problem, proof.breaks) > 5
