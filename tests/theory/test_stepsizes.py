"""Step sizes by hand, their reductions and monotonicity, also for workers that draw together."""

import dataclasses
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


BY_HAND = [  # with L = 5, cal-L = 10, L_- = 4, L_+ = 5, max L_i = 7, max L_ij = 14, n = 2
    ("gd", steps.gradient_descent(setting()), 1 / 4),
    ("dcgd", steps.dcgd(setting(6)), 1 / 46),
    ("diana convex", steps.diana_convex(setting(6)), 1 / 130),
    ("diana published", steps.diana_published(convex(6)), 1 / 49),
    ("diana", steps.diana_nonconvex(setting(6)), 1 / 1120),
    ("vr-diana", steps.vr_diana(setting(6), 27), 1 / 4480),
    ("marina", steps.marina(setting(8), 0.5), 1 / 15),  # (1-p) omega / (p n) = 4
    ("vr-marina", steps.vr_marina(setting(1), 0.2, 8), 1 / 15),  # (25 + 2 * 100/8) * 2 = 100
    ("pp-marina", steps.pp_marina(setting(8), 0.5, 1), 1 / 20),  # 9
    ("ef21", steps.ef21(setting(alpha=0.75)), 1 / 9),  # beta / theta = 1
]
MU = 0.001  # small: the first part of the minimum counts
PL_BY_HAND = [
    ("gd", steps.gradient_descent(setting(condition="PL", mu=MU)), 1 / 4),
    ("marina", steps.marina(setting(4, condition="PL", mu=MU), 0.5), 1 / 15),
    ("vr-marina", steps.vr_marina(setting(1, condition="PL", mu=MU), 1 / 3, 8), 1 / 15),
    ("pp-marina", steps.pp_marina(setting(1, condition="PL", mu=MU), 0.5, 1), 1 / 15),
    ("ef21", steps.ef21(setting(alpha=0.75, condition="PL", mu=MU)), 1 / (4 + 5 * sqrt(2))),
]


@pytest.mark.parametrize(("name", "step", "gamma"), [*BY_HAND, *PL_BY_HAND], ids=str)
def test_by_hand(name, step, gamma):
    assert step.gamma == pytest.approx(gamma, rel=1e-14)
    assert ("PL" in step.source) == ((name, step, gamma) in PL_BY_HAND)


def test_sources_name_only_theorems_that_were_read():
    """Their statement or, of SAQ, their proof. All other steps are published code's or derived."""
    heads = [one[condition] for one in steps.THEOREMS.values() for condition in ("nonconvex", "PL")]
    heads += [step.source.split(": ")[0] for _, step, _ in [*BY_HAND, *PL_BY_HAND]]
    assert {head.split(" (")[0] for head in heads if not head.startswith("derived for ")} == {
        *(f"MARINA, Theorem {number}" for number in ("2.1", "2.2", "3.1", "4.1")),
        *(f"PermK paper, Theorem {number}" for number in (4, 5, 6, 7, 10, 11)),
        *("SAQ, proof of Theorem 1", "SAQ, proof of Theorem 2", "SAQ, published code, DIANA"),
        *("MARINA, published code, DIANA", "MARINA, published code, VR-DIANA"),
        "gradient descent",
    }


def test_as_the_published_code_has_them():
    """MARINA's gamma = 1 / (L (1 + omega / sqrt n)), as RandK has (1-p)/p = omega for p = zeta/d;
    VR-MARINA's and VR-DIANA's with one L for all, which bounds that of a sample."""
    one = {"L_i": (3.0, 3.0), "L": 3.0, "cal_L_i": (3.0, 3.0)}
    s = setting(7.0, zeta=1.0, d=8, **one)
    marina = steps.marina(s, steps.marina_probability(1, 8)).gamma
    assert marina == pytest.approx(1 / (3 * (1 + 7 / sqrt(2))), rel=1e-14)
    p = steps.vr_marina_probability(1, 8, 2, 100)
    vr = 1 / (3 + sqrt(7 * 9 + 8 * 9 / 2) * sqrt((1 - p) / (p * 2)))
    assert steps.vr_marina(s, p, 2).gamma == pytest.approx(vr, rel=1e-14)
    vr = 1 / (10 * 3 * sqrt(1 + 7 / 2) * (50 ** (2 / 3) + 7 + 1))
    assert steps.vr_diana(s, 50).gamma == pytest.approx(vr, rel=1e-14)


def test_whole_shards_have_no_sampling_noise():
    """So VR-MARINA with b' = m needs no L_ij."""
    assert steps.vr_marina(setting(1, cal_L_i=(nan, nan)), 0.2, inf).gamma == 1 / (5 + sqrt(50))


def test_without_a_theorem():
    pl = {"condition": "PL", "mu": 1.0}
    for step, *given in (
        *((steps.marina, setting(None), 0.5), (steps.ef21, setting(3.0))),
        *((steps.marina, setting(3.0, condition="PL"), 0.5), (steps.dcgd, setting(3.0, **pl))),
        (steps.gradient_descent, setting(condition="PL")),  # no mu
        *((step, setting(3.0, **pl)) for step in (steps.diana_nonconvex, steps.diana_convex)),
        *((steps.vr_diana, setting(3.0, **pl), 9), (steps.diana_published, convex(3.0, **pl))),
        (steps.diana_published, setting(3.0)),
    ):
        with pytest.raises(InputError, match=r"method\.stepsize"):
            step(*given)
    for step, *more in (
        *((steps.dcgd,), (steps.diana_convex,), (steps.diana_nonconvex,), (steps.vr_diana, 3)),
        *((steps.vr_marina, 0.5, 1), (steps.pp_marina, 0.5, 1)),
    ):
        with pytest.raises(InputError, match="compress independently of each other only"):
            step(together(1.0, 1.0), *more)


def test_the_published_step_is_no_step_of_diana_plus():
    smooth = dataclasses.replace(convex(6), cal_L_max=3.0)
    with pytest.raises(InputError, match=r"method\.rule: \"published\" is not allowed with"):
        steps.diana_published(smooth)


def test_condition_of_an_experiment():
    def run(step):
        method, problem = {"name": "marina", "stepsize": step}, {"name": "logistic", "l2": 0.01}
        tables = table(method, {"name": "randk", "k": 10}, problem=problem, rounds=1)
        attributes = run_tables(tables).attributes
        return attributes["stepsize"], attributes["stepsize_source"]

    smooth, pl = run("theory"), run({"theory": 1.0, "condition": "PL"})
    assert "Theorem 2.1" in smooth[1] and "Theorem 2.2" in pl[1]
    assert pl[0] < smooth[0]
    assert run({"theory": 1.0, "condition": "nonconvex"}) == smooth
    assert run({"theory": 2.0, "condition": "PL"}) == (2 * pl[0], f"2 x {pl[1]}")


def test_an_omega_of_no_compressor_is_refused():
    mpisim.compressor("mine")(type("Mine", (Identity,), {"omega": -0.1}))
    with pytest.raises(InputError, match=r"^compressor 'mine': its omega is -0\.1; allowed: at"):
        run_tables(table({"name": "marina", "stepsize": "theory", "p": 0.5}, {"name": "mine"}))


def together(A, B, L_pm=3.0, **keys):
    """L_- = 4, L_+ = 5."""
    of = setting(1.0, **keys)
    c = dataclasses.replace(of.c, L_pm=L_pm)
    return dataclasses.replace(of, A=A, B=B, correlated=True, c=c)


def test_by_hand_of_together():
    s = together(1.0, 1.0)
    assert steps.marina(s, 0.5).gamma == 1 / (4 + 3)  # (1-p)/p = 1
    assert steps.marina(s, 0.2).gamma == 1 / (4 + 2 * 3)
    assert steps.marina(together(1.0, 0.75, L_pm=0.0), 0.5).gamma == 1 / (4 + 2.5)
    assert steps.marina(together(4.0, 0.0), 0.5).gamma == 1 / (4 + 10)
    assert steps.marina(together(1.0, 1.0, L_pm=0.0), 0.001).gamma == 1 / 4  # as gradient descent
    assert "Theorem 4" in steps.marina(s, 0.5).source


def test_by_hand_under_pl_of_together():
    s = together(1.0, 1.0, condition="PL", mu=0.001)
    assert steps.marina(s, 1 / 3).gamma == pytest.approx(1 / (4 + 3 * 2), rel=1e-14)
    assert "Theorem 5" in steps.marina(s, 1 / 3).source
    assert steps.marina(together(1.0, 1.0, condition="PL", mu=4.0), 0.25).gamma == 0.25 / 8


def test_theorem_4_for_independent_workers_on_request():
    """omega / n and L_+ under the root, L_- before it; L_± does not count."""
    s = setting(8.0)  # n = 2, L_- = 4, L_+ = 5
    assert steps.marina(s, 0.5, "permk").gamma == pytest.approx(1 / (4 + 5 * 2), rel=1e-15)
    assert steps.marina(s, 0.5).gamma == pytest.approx(1 / (5 + 5 * 2), rel=1e-15)
    assert "Theorem 4" in steps.marina(s, 0.5, "permk").source
    under = setting(8.0, condition="PL", mu=0.001)
    assert steps.marina(under, 1 / 3, "permk").gamma == pytest.approx(1 / (4 + 5 * 4), rel=1e-14)
    assert "Theorem 5" in steps.marina(under, 1 / 3, "permk").source
    with pytest.raises(InputError, match="unbiased compressors only"):
        steps.marina(setting(alpha=0.5), 0.5, "permk")


def grouped(A, B, L_plus, L_pm, label, **keys):
    groups = GroupConstants(Groups(*map(np.array, (label, A, B))), *map(np.array, (L_plus, L_pm)))
    return dataclasses.replace(together(1.0, 1.0, L_pm=9.0, **keys), groups=groups)


def test_theorems_10_and_11_by_hand():
    three = [0, 0, 1]  # shares 2/3 and 1/3
    s = grouped([1.0, 3.0], [1.0, 2.0], [5.0, 6.0], [3.0, 0.0], three)
    assert s.groups.L_hat_sq == pytest.approx(4 / 9 * 9 + 1 / 9 * 36, rel=1e-15)
    assert steps.marina(s, 0.5).gamma == pytest.approx(1 / (4 + 8**0.5), rel=1e-15)
    assert "Theorem 10" in steps.marina(s, 0.5).source
    under = dataclasses.replace(s, condition="PL", c=dataclasses.replace(s.c, mu=1e-3))
    assert steps.marina(under, 0.5).gamma == pytest.approx(1 / (4 + 4), rel=1e-15)
    assert "Theorem 11" in steps.marina(under, 0.5).source
    worse = grouped([1.0, 1.0], [1.0, 1.0], [5.0, 6.0], [20.0, 20.0], three)
    assert "Theorem 4" in steps.marina(worse, 0.5).source  # L_± = 9 of all is less


LABEL = np.array([0, 1, 0, 2, 1, 0])


GROUPS = Groups(LABEL, np.ones(3), np.ones(3))


def test_least_squares_against_dense_eigenvalues():
    a, y = make_rows("dense")
    problem = attach("least-squares", a, y, RANGES, dense=True, l2=0.3)
    star = LocalStar(6)
    result = group_constants(GROUPS, problem, constants(problem, star), star)
    h = matrices(problem)
    for k in range(3):
        *_, L_plus, L_pm = constants_of(h[k == LABEL])
        assert result.L_plus[k] == pytest.approx(L_plus, rel=1e-10)
        assert result.L_pm[k] == pytest.approx(L_pm, rel=1e-9, abs=1e-6 * L_plus)
    assert result.L_pm[2] == pytest.approx(0, abs=1e-6)  # one worker alone


def test_quadratic_tasks_in_closed_form():
    task = Quadratic(workers=6, dimension=7, noise=0.4, lambda_=0.01)
    task.load(6, 0, 6, 3, np.dtype(float))
    star = LocalStar(6)
    result = group_constants(GROUPS, task, constants(task, star), star)
    h = np.array([task.hessian(np.zeros(7)).rows(i, 0, 7) for i in range(6)])
    for k in range(3):
        *_, L_plus, L_pm = constants_of(h[k == LABEL])
        assert (result.L_plus[k], result.L_pm[k]) == pytest.approx((L_plus, L_pm), abs=1e-7)
    published = constants(task, star, "published")
    result = group_constants(GROUPS, task, published, star, "published")
    rms = [np.sqrt(np.mean(published.L_i[k == LABEL] ** 2)) for k in range(3)]
    assert result.L_plus == pytest.approx(rms) and result.L_pm == pytest.approx(rms)


# L = 4, L^2 = 25, L_max = 14, n = 2; omega = 1: omega (2 omega + 1) / n = 1.5
A = 1 / 3
V = 0.5 * 14**2 / 7  # 14, with 1 - p = 0.5 and B = 7
DASHA_BY_HAND = [
    ("dasha", dasha.dasha, (A,), 16 * 1.5 * 25, 40 * 1.5 * 25),
    ("page", dasha.page, (A, 0.5, 7), 48 * 1.5 * 39 + 2 * V, 200 * 1.5 * 39 + 4 * V),
    ("mvr", dasha.mvr, (A, 0.5, 7), 96 * 1.5 * 32 + 4 * V / 2, 400 * 1.5 * 32 + 8 * V / 2),
    ("sync", dasha.sync_mvr, (A, 0.5, 7), 4 * 1.5 * 26.5 + 2 * V, 8 * 1.5 * 26.5 + 4 * V),
]
NAMES = [name for name, *_ in DASHA_BY_HAND]


@pytest.mark.parametrize(("name", "step", "how", "smooth", "pl"), DASHA_BY_HAND, ids=NAMES)
def test_dasha_by_hand(name, step, how, smooth, pl):
    result = step(setting(1.0), *how)
    assert result.gamma == pytest.approx(1 / (4 + sqrt(smooth)), rel=1e-14)
    assert result.source.startswith("derived for DASHA") and "PL" not in result.source
    result = step(setting(1.0, condition="PL", mu=0.001), *how)
    assert result.gamma == pytest.approx(1 / (4 + sqrt(pl)), rel=1e-14)
    assert "(PL): min(" in result.source and "a / (2 mu)" in result.source
    assert step(setting(1.0, condition="PL", mu=100.0), *how).gamma == A / 200
    with pytest.raises(InputError, match=r'method\.a = "theory"'):
        step(setting(1.0), 0.5, *how[1:])
    with pytest.raises(InputError, match="unbiased"):
        step(setting(None), *how)


def test_guarantees_of_dasha_by_hand():
    """K = 2 Delta_0 / (gamma epsilon^2) rounds, and what they send and ask for."""
    s = setting(1.0)  # d = 8, zeta = 4
    case = Case(s, np.full(2, 100), delta=3.0, epsilon=0.1)
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
