"""Constants inside groups of workers (PermK paper, Appendix M) against dense eigenvalues."""

import numpy as np
import pytest

from mpisim.problems.quadratic import Quadratic
from mpisim.theory.compression import Groups
from mpisim.theory.setting import group_constants
from mpisim.theory.smoothness import constants, matrices
from tests.problems.support import LocalStar, attach, make_rows
from tests.theory.test_smoothness import RANGES

LABEL = np.array([0, 1, 0, 2, 1, 0])
GROUPS = Groups(LABEL, np.ones(3), np.ones(3))


def top(h):
    return np.linalg.eigvalsh(h)[-1]


def dense(h):
    """L_+ and L_± of quadratics with Hessians h (m, d, d): Theorem 3 and Example 3."""
    square, mean = np.mean(h @ h, axis=0), h.mean(axis=0)
    return np.sqrt(top(square)), np.sqrt(max(0.0, top(square - mean @ mean)))


def test_least_squares_against_dense_eigenvalues():
    a, y = make_rows("dense")
    problem = attach("least-squares", a, y, RANGES, dense=True, l2=0.3)
    star = LocalStar(6)
    found = group_constants(GROUPS, problem, constants(problem, star), star)
    h = matrices(problem)
    for k in range(3):
        L_plus, L_pm = dense(h[k == LABEL])
        assert found.L_plus[k] == pytest.approx(L_plus, rel=1e-10)
        assert found.L_pm[k] == pytest.approx(L_pm, rel=1e-9, abs=1e-6 * L_plus)
    assert found.L_pm[2] == pytest.approx(0, abs=1e-6)  # one worker alone


def test_quadratic_tasks_in_closed_form():
    task = Quadratic(workers=6, dimension=7, noise=0.4, lambda_=0.01)
    task.load(6, 0, 6, 3, np.dtype(float))
    star = LocalStar(6)
    found = group_constants(GROUPS, task, constants(task, star), star)
    h = np.array([task.hessian(np.zeros(7)).rows(i, 0, 7) for i in range(6)])
    for k in range(3):
        assert (found.L_plus[k], found.L_pm[k]) == pytest.approx(dense(h[k == LABEL]), abs=1e-7)
    published = constants(task, star, "published")
    found = group_constants(GROUPS, task, published, star, "published")
    rms = [np.sqrt(np.mean(published.L_i[k == LABEL] ** 2)) for k in range(3)]
    assert found.L_plus == pytest.approx(rms) and found.L_pm == pytest.approx(rms)
