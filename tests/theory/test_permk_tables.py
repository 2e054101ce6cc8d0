"""Tables 3, 4 and 6 of the PermK paper: Lemmas 13 to 16 as inequalities, and brute force."""

import dataclasses
from math import ceil, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mpisim.analysis import theory_report as report
from mpisim.theory import permk_tables as permk
from mpisim.theory.compression import Groups
from mpisim.theory.setting import GroupConstants
from mpisim.theory.tables import Case
from tests.theory.support import setting, theory

FLOAT = 32


def case(n, d, L=1.0, L_plus=1.5, L_pm=1.0, mu=None, delta=1.0, epsilon=0.01) -> Case:
    condition = "PL" if mu else "nonconvex"
    s = setting(1.0, n=n, d=d, L=L, L_plus=L_plus, mu=mu, condition=condition)
    s = dataclasses.replace(s, c=dataclasses.replace(s.c, L_pm=L_pm))
    return Case(s, m=1, delta=delta, epsilon=epsilon)


# (n, d) as the lemmas want them: n | d with n > 1, or d | n with d > 1
SIZES = st.one_of(
    st.tuples(st.integers(2, 40), st.integers(1, 20)).map(lambda t: (t[0], t[0] * t[1])),
    st.tuples(st.integers(2, 40), st.integers(1, 20)).map(lambda t: (t[0] * t[1], t[0])),
)


@hypothesis_settings(deadline=None, max_examples=30)
@given(SIZES, st.floats(0.01, 1), st.floats(0, 1))
def test_lemmas_13_and_14(size, flat, share):
    """min / 2 <= N(p, k) for all p, k; N(lemma's p, k) <= 2 min or 4 min; N is half of T's bits."""
    n, d = size
    L_plus = 1 / flat
    L_pm = sqrt(max(0.0, L_plus**2 - 1) * (1 - share) + L_plus**2 * share)  # Lemma 2
    one = case(n, d, 1.0, L_plus, L_pm)
    for stated, best, order in permk.optimized(one):
        assert best.bits <= stated.bits * (1 + 1e-9)
        assert best.bits / 2 >= order / 2 * (1 - 1e-9)
        assert stated.bits / 2 <= 4 * order * (1 + 1e-9)
    if n <= d:
        assert permk.optimized(one)[0][0].bits / 2 <= 2 * permk.order(one, "permk") * (1 + 1e-9)


@pytest.mark.parametrize(("n", "d"), [(4, 20), (20, 4), (7, 30)])
@pytest.mark.parametrize("mu", [None, 0.05])
def test_best_against_brute_force(n, d, mu):
    one = case(n, d, mu=mu)
    ps = np.geomspace(1e-4, 1, 4000).tolist()
    for method, counts in (("permk", [1]), ("randk", range(1, d + 1))):
        least = min(permk.at(one, method, p, k).bits for k in counts for p in ps[:: len(counts)])
        best = permk.best(one, method)
        assert best.bits <= least * (1 + 1e-9) and best.bits >= least * 0.999
        assert permk.at(one, method, best.p, best.k).bits == best.bits
    least = min(permk.at(one, "topk", 1.0, k).bits for k in range(1, d + 1))
    assert permk.best(one, "topk").bits == least == permk.at(one, "topk", 1.0, d).bits


def test_by_hand():
    """(31), (32), (33) and (39) with Delta_0 / epsilon^2 = 10^4, twice."""
    one = case(4, 20, L=1.0, L_plus=2.0, L_pm=0.5)
    twice = 2 * 1e4 * FLOAT
    choice = permk.at(one, "permk", 0.25, 0)
    assert choice.bits == pytest.approx(twice * (5 + 0.75 * 5) * (1 + sqrt(3) * 0.5))
    choice = permk.at(one, "randk", 0.5, 4)
    assert choice.bits == pytest.approx(twice * (10 + 2) * (1 + sqrt(4 / 4) * 2))
    choice = permk.at(one, "topk", 1.0, 15)
    assert choice.bits == pytest.approx(twice * 15 * (1 + 2 * (5 + sqrt(400 - 300)) / 15))
    one = case(20, 4, L=1.0, L_plus=2.0, L_pm=0.5)
    choice = permk.at(one, "permk", 0.2, 0)
    assert choice.bits == pytest.approx(twice * (0.8 + 0.8) * (1 + sqrt(4 * 3 / 19) * 0.5))
    assert [c.k for c, _ in permk.table_3(one)] == [ceil(4 / 20)] * 3


def in_groups(n, d, g, L_pm) -> Case:
    """L = 1 in all, L_± in each of g equal groups, with PermK's constants in them."""
    one, size = case(n, d, L_pm=1.0), n // g
    groups = Groups(np.repeat(np.arange(g), size), np.ones(g), np.ones(g))
    constants = GroupConstants(groups, np.full(g, 1.5), np.full(g, L_pm))
    setting = dataclasses.replace(one.setting, A=1 / g, B=1 / g, zeta=d / size, groups=constants)
    return dataclasses.replace(one, setting=setting)


def test_equation_51_is_not_named_beyond_its_conditions():
    """n <= d, groups of one size with PermK in each, and no PL: Appendix M, above (51)."""

    def shown(one):
        return [line for line in report._permk(one).splitlines() if "groups" in line]

    one, d = in_groups(12, 24, 3, 0.5), 24
    assert "(51)" in shown(one)[0] and "derived here" not in shown(one)[0]
    grouped = one.setting.groups
    unequal = Groups(np.repeat([0, 1, 2], [3, 4, 5]), np.ones(3), np.ones(3))
    quantized = Groups(grouped.groups.label, np.full(3, 1.5), np.ones(3))
    for change in (
        {"condition": "PL", "c": dataclasses.replace(one.setting.c, mu=0.1)},
        {"d": 11, "zeta": 11 / 4},  # n > d
        {"d": 3, "zeta": 1.0},  # G > d
        {"groups": dataclasses.replace(grouped, groups=unequal), "zeta": d / 3},
        {"groups": dataclasses.replace(grouped, groups=quantized)},
    ):
        other = dataclasses.replace(one, setting=dataclasses.replace(one.setting, **change))
        assert "derived here" in shown(other)[0] and shown(other)[0].endswith(" -"), change
        assert "(51)" not in report._permk(other), change


def test_command(capsys):
    flags = ("problem.name=quadratic", "problem.workers=30", "problem.dimension=10")
    more = ("problem.noise=0.3", "problem.lambda=0.01", "run.rounds=1", "method.name=marina")
    table = ("method.stepsize=theory", "compressor.name=permk", "compressor.groups=4")
    text = theory(capsys, *flags, *more, *table)
    parts = ("PermK paper, Table 1", "Theorem 2 (9)", "Lemma 14", "Lemma 16", "Theorem 10")
    for part in (*parts, "derived here"):
        assert part in text, part
    assert "(51)" not in text  # n > d, and groups of two sizes
    assert "4 groups of 7 to 8 workers" in text and "theorem = permk" in text and "nan" not in text
