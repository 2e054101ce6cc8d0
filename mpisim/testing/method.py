"""What a method must do: estimate the gradient, and go down with the step of its theorem.

The former is seen at a point that stands still. The method starts elsewhere, moves, and stops at x.
From then on a right estimate is grad f(x), at once or in the end, or only on average if C or
minibatches make it noisy. A method that forgets to update what the server knows, that goes on with
what it compressed instead of what was decoded, or that compresses another vector than its estimate
needs, stays off.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from mpisim.comm.communicators import OneProcess
from mpisim.core.arrays import to_host
from mpisim.core.errors import InputError
from mpisim.methods.estimators.base import Estimator
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import Tables
from mpisim.runs.log.reader import read
from mpisim.runs.setup import Setup
from mpisim.testing.runs import Broken, NotChecked, Trial, demand, run

MOVES, STILL = 6, 3000  # rounds in which the point moves, and in which it stands still
# What the mean estimate over the last half may be off by, relative to the workers' gradients: some
# three times what noise leaves of mpisim's methods, that of compressors, and of minibatches.
OF_COMPRESSORS, OF_BATCHES = 0.03, 0.15
EXACT = 1e-6
THEORY = 200  # rounds with a theory step
SHARE = 0.75  # of coordinates that RandK sends: with omega = 1/3 error feedback is stable, too
UNBIASED = ({"name": "identity"}, {"name": "randk", "k": SHARE}, {"name": "natural"})
CONTRACTIVE = {"name": "topk", "k": 0.3}  # for methods that refuse unbiased ones


def finds_gradient(tables: Tables) -> None:
    """The estimates become grad f(x), with each compressor that the method takes."""
    why, tried, limit, unused = "", 0, OF_BATCHES, None
    for compressor in (*UNBIASED, CONTRACTIVE):
        if compressor is CONTRACTIVE and tried > 1:
            break
        try:
            off, varies, zero = settled(tables | {"compressor": compressor})
        except InputError as error:
            why = why or str(error)
            continue
        tried, unused = tried + 1, zero if unused is None else unused & zero
        if compressor["name"] == "identity" and off < EXACT:
            limit = OF_COMPRESSORS
        where = f"with {compressor['name']}, after {STILL} rounds at the same x"
        much = f"the mean of g is off by {off:.2g} of a worker's gradient"
        near = off <= (limit if varies else EXACT)
        demand(near, f"{where}, {much}: is all state updated, with what was decoded?")
    if not tried:
        raise NotChecked(why)
    if unused:
        raise Broken(f"its {sorted(unused)[0]} stays 0 in all runs: is its update missing?")


def settled(tables: Tables) -> tuple[float, bool, set[str]]:
    """|mean of g^k - grad f(x)| over the last half of the rounds, relative to |grad f_i(x)|; if g^k
    varies there; and the names of the workers' state that is 0 when x stops and at the end."""
    run = {"rounds": MOVES + STILL, "seed": 3, "wire": "float64"}
    setup = Setup(Experiment.from_dict(tables | {"run": run}), OneProcess())  # type: ignore[arg-type]
    star, problem, estimator = setup.star, setup.problem, setup.estimator
    if not estimator.estimates_gradient:
        raise NotChecked("it says estimates_gradient = False")
    setup.round.stepsize = setup.step.gamma
    rng, last = np.random.default_rng(5), []
    zero: set[str] = set()
    points = [rng.standard_normal(problem.d) / 2 for _ in range(MOVES)]
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(MOVES + STILL):
            x = points[min(k, MOVES - 1)].astype(star.precision.arithmetic)
            g = estimator.start(x) if k == 0 else estimator.estimate(x)
            star.end_round()
            setup.round.k = k + 1
            if k == MOVES - 1:
                zero = _zero(estimator)
            if k >= MOVES + STILL // 2:
                last.append(to_host(g))
        gradients = to_host(problem.losses_and_gradients(points[-1])[1])
        off = np.mean(last, axis=0) - gradients.mean(axis=0)
        scale = np.sqrt((gradients**2).sum(axis=1).mean())
        varies = not np.ptp(last, axis=0).max() <= EXACT * scale
        return float(np.linalg.norm(off) / scale), varies, zero & _zero(estimator)


def _zero(estimator: Estimator) -> set[str]:
    """The names of arrays that are `PerWorker` and 0."""
    places = estimator.declared
    arrays = {
        name: to_host(value)
        for name, value in estimator.state().items()
        if places[name].place == "PerWorker"
    }
    return {n for n, v in arrays.items() if isinstance(v, np.ndarray) and not v.any()}


def theory_step(trials: Sequence[Trial]) -> None:
    """With the theory step f falls, with each compressor that has one.

    Without compression and minibatches, steps of at most 1 / L give the descent lemma's bound,
    (1 / K) sum_k |grad f(x^k)|^2 <= 2 (f(x^0) - f_inf) / (gamma K), whose f_inf is 0 here.
    """
    why, tried = "", False
    for trial in trials:
        method = trial.tables["method"] | {"stepsize": "theory"}
        problem = trial.tables["problem"] | {"l2": 1.0}  # so that L is about that of all points
        tables = trial.tables | {"problem": problem, "method": method}
        try:
            setup = Setup(Experiment.from_dict(tables), OneProcess())  # type: ignore[arg-type]
        except InputError as error:
            why = why or str(error).removeprefix("method.stepsize: ")
            continue
        tried, gamma = True, setup.step.gamma
        step = f"{trial.title}: it is {gamma:.3g}"
        if not (isfinite(gamma) and gamma > 0):
            raise Broken(step)
        run(tables, trial.log("theory"), rounds=THEORY)
        rows = read(trial.log("theory")).columns
        f, mean = rows["loss"], rows["grad_norm_sq"][:-1].mean()
        if not f[-1] < f[0]:
            raise Broken(f"{step}, and f goes from {f[0]:.3g} to {f[-1]:.3g}")
        exact = tables["compressor"]["name"] == "identity" and not setup.estimator.batch_sizes()
        bound = 2 * f[0] / (gamma * THEORY)
        if exact and setup.estimator.estimates_gradient and not mean <= bound:
            off = f"|grad f|^2 is {mean:.3g} on average, 2 f(x^0) / (gamma K) is {bound:.3g}"
            raise Broken(f"{step}, and {off}")
    if not tried:
        raise NotChecked(why)
