"""Step sizes by hand, their reductions and monotonicity, also for workers that draw together."""

import dataclasses
from functools import partial
from math import inf, nan, sqrt

import numpy as np
import pytest

import mpisim
from mpisim.compressors.base import Identity
from mpisim.core.errors import InputError
from mpisim.problems.quadratic import Quadratic
from mpisim.theory import dasha
from mpisim.theory import stepsizes as steps
from mpisim.theory.compression import Groups
from mpisim.theory.setting import GroupConstants, group_constants
from mpisim.theory.smoothness import constants, matrices
from mpisim.theory.tables import Case
from tests.helpers import run_tables, table
from tests.problems.support import RANGES, LocalStar, attach, constants_of, make_rows
from tests.theory.support import setting


def convex(*args, **how):
    return dataclasses.replace(setting(*args, **how), convex=True)


def pl(*args, mu=0.001, **how):
    """With so small a mu the first part of the minimum counts."""
    return setting(*args, condition="PL", mu=mu, **how)


def together(A, B, L_pm=3.0, of=setting):
    """L_- = 4, L_+ = 5."""
    s = of(1.0)
    return dataclasses.replace(s, A=A, B=B, correlated=True, c=dataclasses.replace(s.c, L_pm=L_pm))


def grouped(A, B, L_pm, of=setting):
    """Of shares 2/3 and 1/3, with L_+ of 5 and 6; L_± = 9 of all."""
    label, L_plus = np.array([0, 0, 1]), np.array([5.0, 6.0])
    groups = GroupConstants(Groups(label, np.array(A), np.array(B)), L_plus, np.array(L_pm))
    return dataclasses.replace(together(1.0, 1.0, 9.0, of), groups=groups)


ONE_L = {"L_i": (3.0, 3.0), "L": 3.0, "cal_L_i": (3.0, 3.0)}  # as in the published code
AB = "PermK paper, Theorem"
BY_HAND = [  # with L = 5, cal-L = 10, L_- = 4, L_+ = 5, max L_i = 7, max L_ij = 14, n = 2
    (steps.gradient_descent(setting()), 1 / 4, "gradient descent"),
    (steps.dcgd(setting(6)), 1 / 46, "SAQ, proof of Theorem 1"),
    (steps.diana_convex(setting(6)), 1 / 130, "SAQ, proof of Theorem 2"),
    (steps.diana_published(convex(6)), 1 / 49, "SAQ, published code, DIANA"),
    (steps.diana_nonconvex(setting(6)), 1 / 1120, "MARINA, published code, DIANA"),
    (steps.vr_diana(setting(6), 27), 1 / 4480, "MARINA, published code, VR-DIANA"),
    # (1-p) omega / (p n) = 4
    (steps.marina(setting(8), 0.5), 1 / 15, "MARINA, Theorem 2.1"),
    (steps.marina(setting(7.0, **ONE_L), 1 / 8), 1 / (3 * (1 + 7 / sqrt(2))), "MARINA, Theorem 2"),
    # (25 + 2 * 100/8) * 2 = 100
    (steps.vr_marina(setting(1), 0.2, 8), 1 / 15, "MARINA, Theorem 3.1"),
    # whole shards have no sampling noise, and need no L_ij
    (steps.vr_marina(setting(1, cal_L_i=(nan, nan)), 0.2, inf), 1 / (5 + sqrt(50)), "MARINA"),
    (steps.pp_marina(setting(8), 0.5, 1), 1 / 20, "MARINA, Theorem 4.1"),  # 9
    (steps.ef21(setting(alpha=0.75)), 1 / 9, AB + " 6 (EF21)"),  # beta / theta = 1
    (steps.gradient_descent(pl()), 1 / 4, "gradient descent (PL)"),
    (steps.marina(pl(4), 0.5), 1 / 15, "MARINA, Theorem 2.2 (PL)"),
    (steps.vr_marina(pl(1), 1 / 3, 8), 1 / 15, "derived for VR-MARINA (PL)"),
    (steps.pp_marina(pl(1), 0.5, 1), 1 / 15, "derived for PP-MARINA (PL)"),
    (steps.ef21(pl(alpha=0.75)), 1 / (4 + 5 * sqrt(2)), AB + " 7 (EF21, PL)"),
    # of workers that draw together; (1-p)/p = 1
    (steps.marina(together(1.0, 1.0), 0.5), 1 / (4 + 3), AB + " 4"),
    (steps.marina(together(1.0, 0.75, 0.0), 0.5), 1 / (4 + 2.5), AB + " 4"),
    (steps.marina(together(4.0, 0.0), 0.5), 1 / (4 + 10), AB + " 4"),
    (steps.marina(together(1.0, 1.0, 0.0), 0.001), 1 / 4, AB + " 4"),  # as GD
    (steps.marina(together(1.0, 1.0, of=pl), 1 / 3), 1 / 10, AB + " 5 (PL)"),
    # a large mu bounds the step by the rate of the estimate's error
    (steps.marina(pl(1.0, mu=4.0), 0.25), 0.25 / 8, "MARINA, Theorem 2.2 (PL)"),
    (steps.marina(together(1.0, 1.0, of=partial(pl, mu=4.0)), 0.25), 0.25 / 8, AB + " 5 (PL)"),
    # on request, of workers that draw independently: omega / n and L_+ under the root
    (steps.marina(setting(8.0), 0.5, "permk"), 1 / (4 + 5 * 2), AB + " 4"),
    (steps.marina(pl(8.0), 1 / 3, "permk"), 1 / (4 + 5 * 4), AB + " 5 (PL)"),
    # 4/9 * 9 + 1/9 * 36 = 8
    (steps.marina(grouped([1, 3], [1, 2], [3, 0]), 0.5), 1 / (4 + 8**0.5), AB + " 10"),
    (steps.marina(grouped([1, 3], [1, 2], [3, 0], pl), 0.5), 1 / 8, AB + " 11 (PL)"),
    # L_± of all is less
    (steps.marina(grouped([1, 1], [1, 1], [20, 20]), 0.5), 1 / 13, AB + " 4"),
]


@pytest.mark.parametrize(("step", "gamma", "source"), BY_HAND, ids=[one[-1] for one in BY_HAND])
def test_by_hand(step, gamma, source):
    """Sources name only theorems whose statement or, of SAQ, proof was read."""
    assert step.gamma == pytest.approx(gamma, rel=1e-14)
    assert step.source.startswith(source) and ("PL" in step.source) == ("PL)" in source)


def test_without_a_theorem():
    smooth = dataclasses.replace(convex(6), cal_L_max=3.0)
    for step, *given in (
        *((steps.marina, setting(None), 0.5), (steps.ef21, setting(3.0))),
        *((steps.marina, setting(3.0, condition="PL"), 0.5), (steps.dcgd, pl(3.0))),
        (steps.gradient_descent, setting(condition="PL")),  # no mu
        *((steps.diana_nonconvex, pl(3.0)), (steps.diana_convex, pl(3.0))),
        *((steps.vr_diana, pl(3.0), 9), (steps.diana_published, convex(3.0, condition="PL", mu=1))),
        (steps.diana_published, setting(3.0)),
        (steps.marina, setting(alpha=0.5), 0.5, "permk"),
    ):
        with pytest.raises(InputError, match=r"method\.stepsize"):
            step(*given)
    for step, *more in (
        *((steps.dcgd,), (steps.diana_convex,), (steps.diana_nonconvex,), (steps.vr_diana, 3)),
        *((steps.vr_marina, 0.5, 1), (steps.pp_marina, 0.5, 1)),
    ):
        with pytest.raises(InputError, match="compress independently of each other only"):
            step(together(1.0, 1.0), *more)
    with pytest.raises(InputError, match=r"method\.rule: \"published\" is not allowed with"):
        steps.diana_published(smooth)


def test_probabilities():
    """MARINA, Corollaries 2.1, 3.1 and 4.1."""
    assert steps.marina_probability(2.0, 8) == 1 / 4
    assert steps.vr_marina_probability(1.0, 8, 2, 100) == 2 / 102
    assert steps.vr_marina_probability(1.0, 80, 2, 100) == 1 / 80
    assert steps.pp_marina_probability(2.0, 8, 3, 6) == 1 / 8


def test_an_omega_of_no_compressor_is_refused():
    mpisim.compressor("mine")(type("Mine", (Identity,), {"omega": -0.1}))
    with pytest.raises(InputError, match=r"^compressor 'mine': its omega is -0\.1; allowed: at"):
        run_tables(table({"name": "marina", "stepsize": "theory", "p": 0.5}, {"name": "mine"}))


LABEL = np.array([0, 1, 0, 2, 1, 0])  # one worker is alone
GROUPS = Groups(LABEL, np.ones(3), np.ones(3))


def in_groups(problem, bound="sharp"):
    """L_i, and L_+ and L_± of each group."""
    star = LocalStar(6)
    c = constants(problem, star, bound)
    result = group_constants(GROUPS, problem, c, star, bound)
    return c.L_i, result.L_plus, result.L_pm


def test_constants_of_groups_against_dense_eigenvalues():
    a, y = make_rows("dense")
    rows = attach("least-squares", a, y, RANGES, dense=True, l2=0.3)
    task = Quadratic(workers=6, dimension=7, noise=0.4, lambda_=0.01)
    task.load(6, 0, 6, 3, np.dtype(float))
    of_task = np.array([task.hessian(np.zeros(7)).rows(i, 0, 7) for i in range(6)])
    for problem, h in ((rows, matrices(rows)), (task, of_task)):
        _, *result = in_groups(problem)
        expected = np.array([constants_of(h[k == LABEL])[2:] for k in range(3)]).T
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-7 * expected.max())
    L_i, L_plus, L_pm = in_groups(task, "published")
    rms = [np.sqrt(np.mean(L_i[k == LABEL] ** 2)) for k in range(3)]
    assert L_plus == pytest.approx(rms) and L_pm == pytest.approx(rms)


# L = 4, L^2 = 25, L_max = 14, n = 2; omega = 1: omega (2 omega + 1) / n = 1.5
A = 1 / 3
V = 0.5 * 14**2 / 7  # 14, with 1 - p = 0.5 and B = 7
DASHA_BY_HAND = [
    (dasha.dasha, (A,), 16 * 1.5 * 25, 40 * 1.5 * 25),
    (dasha.page, (A, 0.5, 7), 48 * 1.5 * 39 + 2 * V, 200 * 1.5 * 39 + 4 * V),
    (dasha.mvr, (A, 0.5, 7), 96 * 1.5 * 32 + 4 * V / 2, 400 * 1.5 * 32 + 8 * V / 2),
    (dasha.sync_mvr, (A, 0.5, 7), 4 * 1.5 * 26.5 + 2 * V, 8 * 1.5 * 26.5 + 4 * V),
]


@pytest.mark.parametrize(("step", "how", "smooth", "under_pl"), DASHA_BY_HAND)
def test_dasha_by_hand(step, how, smooth, under_pl):
    result = step(setting(1.0), *how)
    assert result.gamma == pytest.approx(1 / (4 + sqrt(smooth)), rel=1e-14)
    assert result.source.startswith("derived for DASHA") and "PL" not in result.source
    result = step(pl(1.0), *how)
    assert result.gamma == pytest.approx(1 / (4 + sqrt(under_pl)), rel=1e-14)
    assert "(PL): min(" in result.source and "a / (2 mu)" in result.source
    assert step(pl(1.0, mu=100.0), *how).gamma == A / 200
    with pytest.raises(InputError, match=r'method\.a = "theory"'):
        step(setting(1.0), 0.5, *how[1:])
    with pytest.raises(InputError, match="unbiased"):
        step(setting(None), *how)


def test_guarantees_of_dasha_by_hand():
    """K = 2 Delta_0 / (gamma epsilon^2) rounds, and what they send and ask for."""
    s = setting(1.0)  # d = 8, zeta = 4
    case = Case(s, np.full(2, 100), delta=3.0, epsilon=0.1)
    rows = [  # with the calls of the first round and of each later one, and its numbers
        (dasha.dasha_row(case, dasha.dasha(s, A)), 100, 100, 4),
        (dasha.page_row(case, dasha.page(s, A, 0.5, 7), 0.5, 7), 100, 50 + 7, 4),
        (dasha.mvr_row(case, dasha.mvr(s, A, 0.5, 7), 0.5, 7, 60), 60, 14, 4),
        (dasha.sync_mvr_row(case, dasha.sync_mvr(s, A, 0.5, 7), 0.5, 7, 60, 90), 90, 30 + 7, 6),
    ]
    assert rows[0][0].rounds == pytest.approx(600 * (4 + sqrt(600)), abs=1)
    assert [row.kind for row, *_ in rows] == ["bound", "bound", "order", "order"]
    for row, first, later, floats in rows:
        assert row.calls == first + (row.rounds - 1) * later
        assert row.bits == 32 * (8 + (row.rounds - 1) * floats)
