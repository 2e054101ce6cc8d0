"""The best step of a method, by the rule of docs/how-to/studies.md, from runs made by hand."""

import numpy as np
import pytest

from mpisim.analysis.curves import Axis
from mpisim.analysis.study import best_steps
from mpisim.runs.log.reader import read

ROUNDS = Axis("round", log=False)
K = np.arange(51)


@pytest.fixture
def best(make_log):
    """best({step: curves of |grad f|^2, one for each seed}): the steps of one method.

    statuses : {(step, seed): how the run ended}, if not well
    """

    def one(curves, statuses=(), **how):
        logs = []
        for step, ys in curves.items():
            for seed, y in enumerate(ys, 1):
                attrs = {"status": dict(statuses).get((step, seed), "done")}
                columns, theory = {"grad_norm_sq": y}, f"{{ theory = {step}.0 }}"
                path = make_log(seed=seed, stepsize=theory, columns=columns, attrs=attrs)
                logs.append(read(path))
        (steps,) = best_steps(logs, ROUNDS, **how)
        return steps

    return one


def falling(rate):
    return [np.exp(-rate * K)] * 2


@pytest.mark.parametrize("end", [0.7, 3.0])
def test_a_step_that_rises_on_one_seed_is_out(best, end):
    """It closes the grid, as one does that diverged."""
    up = np.where(K < 46, np.exp(-0.3 * K), end * np.exp(-0.3 * 41))
    steps = best({1: falling(0.1), 2: falling(0.2), 4: [falling(0.3)[0], up]})
    assert steps.step == (2 if end > 1.5 else 4)
    assert bool(steps.edge) == (end <= 1.5)


@pytest.mark.parametrize("status", ["diverged", "interrupted"])
def test_a_run_that_stopped_early_does_not_close_the_grid(best, status):
    """Only one that diverged shows that the next step is too large."""
    curves = {1: falling(0.1), 2: falling(0.2), 4: falling(0.3)}
    for several in ({(4, 2): status}, {(4, 1): "interrupted", (4, 2): status}):  # in either order
        steps = best(curves, several.items())
        assert steps.step == 2 and bool(steps.edge) == (status != "diverged")


@pytest.mark.parametrize(
    ("curves", "edge"),
    [
        ({1: falling(0.1), 2: falling(0.3), 4: falling(0.2)}, ""),
        ({1: falling(0.1), 2: falling(0.3)}, "2 is the largest step"),
        # a seed is missing
        ({1: falling(0.1), 2: falling(0.2), 4: falling(0.3)[:1]}, "2 is the largest step"),
        ({1: falling(0.1)[:1], 2: falling(0.3), 4: falling(0.2)}, "2 is the smallest step"),
    ],
)
def test_the_best_step_and_the_edge_of_its_grid(best, curves, edge):
    steps = best(curves)
    assert steps.step == 2 and steps.edge.endswith(edge)
    assert bool(steps.edge) == bool(edge)


@pytest.mark.parametrize("seeds", [(1.0, 1.0), (1.0, 2.0)])
def test_equal_finals_are_told_apart_by_the_cost(best, seeds):
    """Also where seeds differ by more than 3%."""

    def to(low, rate):
        return [np.maximum(np.exp(-rate * K), low * seed) for seed in seeds]

    curves = {1: to(0.25, 0.01), 2: to(0.202, 0.2), 4: to(0.2, 0.05), 8: to(0.3, 0.1)}
    steps = best(curves, targets=())
    assert steps.target is None and list(steps.steps)[:2] == [2, 4] and steps.lowest == 4
