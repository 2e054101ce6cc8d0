"""Rows of tables: by hand, by brute force, against what runs send, as `mpisim theory` prints."""

import dataclasses
import re
from math import ceil, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mpisim.analysis import theory_report as report
from mpisim.core.protocols import ClosedForm
from mpisim.methods.estimators import estimator
from mpisim.methods.estimators.marina import Marina
from mpisim.problems import problem as registered
from mpisim.theory import permk_tables as permk
from mpisim.theory import tables
from mpisim.theory.compression import Groups
from mpisim.theory.dasha import dasha_row, page_row
from mpisim.theory.setting import GroupConstants, Step
from mpisim.theory.tables import Case
from tests.helpers import run_tables, table
from tests.helpers import settings as words_of
from tests.problems.test_base import Bowls
from tests.theory.support import SAMPLE, by_name, case, setting, theory


def test_table_1_by_hand():
    rows = by_name(case(zeta=4.0))  # MARINA: p = 1/2, gamma = 1/15
    gd, marina = rows["(1) GD"], rows["(1) MARINA"]
    assert (gd.rounds, gd.bits, gd.calls) == (2400, 2400 * 256, 240000)
    assert marina.rounds == pytest.approx(2 * 3 * 15 / 0.01, abs=1)
    assert marina.bits == 32 * (8 + (marina.rounds - 1) * 6)
    assert marina.calls == 100 * marina.rounds
    assert (gd.kind, marina.kind, marina.source) == ("bound", "bound", "Theorem 2.1")
    unit = 3 * 7 / 0.01
    diana, steph = rows["(1) DIANA"], rows["(1) FedSTEPH, r = n"]
    assert (diana.rounds, diana.kind) == (ceil(unit * (1 + 9 * 2)), "order")
    assert steph.rounds == pytest.approx(unit**2 * 5, abs=1)
    assert rows["(1)+(5) DIANA"].rounds == pytest.approx(unit * 19 + unit**2 * 9 / 2, abs=1)
    vr = rows["(1)+(5) VR-DIANA, b' = 1"]
    assert vr.rounds == ceil(unit * (100 ** (2 / 3) + 8) * 5**0.5)
    assert vr.calls == 100 + (vr.rounds - 1) * 3
    assert rows["(1)+(5) VR-MARINA, b' = 1"].source == "Theorem 3.1"


def test_a_full_gradient_costs_the_mean_of_unequal_shards():
    """Of 2 and 198 samples. The least one is m in p: b' / m of VR-DIANA, b' / (m + b')."""
    one = case(rows=np.array([2, 198]), zeta=4.0, r=2)
    rows = by_name(one, tables.derived(one, "own", Step(1.0, "derived"), 4))
    rows["dasha"] = dasha_row(one, Step(1.0, "derived"))
    rows["ef21"] = tables.ef21(case(rows=one.rows, alpha=0.5))
    rows["page"] = page_row(one, Step(1.0, "derived"), 0.5, 1)
    later = {"(1)+(5) VR-DIANA, b' = 1": 2 + 50, "(1)+(5) VR-MARINA, b' = 1": (100 + 2 * 2) / 3}
    later |= {"PP, (1) PP-MARINA, r = 2": 100 / 2 + 75 * 2 / 2, "page": 50 + 1}
    for name in ("(1) GD", "(1) DIANA", "(1) MARINA", "(1) own", "ef21", "dasha", *later):
        row, more = rows[name], later.get(name, 100)
        assert row.calls == pytest.approx(100 + (row.rounds - 1) * more), name


def test_table_2_by_hand():
    rows = by_name(case(condition="PL", mu=0.01, zeta=4.0))
    gd, marina = rows["(1) GD"], rows["(1) MARINA"]
    assert gd.rounds == ceil(log(30) / -log(1 - 0.01 / 4))
    gamma = 1 / (5 * (1 + 8**0.5))
    assert marina.rounds == ceil(log(30) / -log(1 - 0.01 * gamma))
    assert rows["(1) DIANA"].rounds == ceil(700 * log(30) * 19)
    noisy = 700 * log(30) * (19 + 4.5 * (700 + 30))
    assert rows["(1)+(5) DIANA"].rounds == pytest.approx(noisy, rel=1e-9, abs=1)
    sources = {one.source for one in rows.values() if one.kind == "bound"}
    assert sources == {"1 / L", "Theorem 2.2", "derived here"}


@pytest.mark.parametrize("keys", [{}, {"condition": "PL", "mu": 0.01}])
def test_fedcomgate_has_a_row_for_finite_sums_and_one_online(keys):
    """Both tables print the same numbers twice, in the setups (1) and (1)+(6)."""
    rows = by_name(case(omega=0.0, zeta=8.0, big_b=10, **keys))
    one, online = (rows[f"{setup} FedCOMGATE"] for setup in ("(1)", "(1)+(6)"))
    assert (online.rounds, online.calls) == (one.rounds, one.calls)
    assert "(1)+(6) FedCOMGATE" not in by_name(case(big_b=10, **keys))


class Plain(Bowls):
    closed_form, convex = ClosedForm(np.ones(1), 1.0, 1.0, 0.0, 1.0), True


def test_guarantees_are_inherited(capsys):
    """No name of a method is looked at: a subclass has its rows and tables."""
    estimator("heir")(type("Heir", (Marina,), {}))
    more = "optimizer = 'gd', p = 0.3, theorem = 'permk', stepsize = 0.1"
    words = *SAMPLE, "problem.name=nonconvex-loss", "compressor={ name = 'randk', k = 10 }"
    texts = [theory(capsys, *words, f"method={{ estimator = '{name}', {more} }}")
             for name in ("marina", "heir")]  # fmt: skip
    one, other = (text[text.index("f(x^0)") :] for text in texts)
    assert one == other and "PermK paper, Table 4" in one


WRONG = {
    r"theory_step returned 0\.1; allowed: mpisim\.theory\.setting\.Step": {
        "theory_step": lambda self, setting: 0.1
    },
    "guarantees returned None; allowed: a list of": {"guarantees": lambda self, case: None},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_a_plugin_returns_of_another_type_is_one_line(message, capsys):
    estimator("wrong")(type("Wrong", (Marina,), WRONG[message]))
    words = "problem.name=nonconvex-loss", "method={estimator='wrong',optimizer='gd',p=0.3}"
    text = theory(capsys, *SAMPLE, *words, "method.stepsize=0.1", "compressor.name=identity")
    assert re.search(message, text)


def test_a_plugin_that_has_a_closed_form_alone_has_all_other_parts(capsys):
    """SAQ's theorems need the matrices too; and the PermK paper says nothing of its constants."""
    registered("bowls", label="bowls")(Plain)
    method = "method={name='diana',stepsize=0.1}"
    text = theory(capsys, "problem.name=bowls", "run.rounds=1", method, "compressor.name=natural")
    assert "Theorems 1 to 6\n  none: problem 'bowls' has no `largest_hessian`" in text
    assert "closed_form of 'bowls'" in text and "cal-L_i     -" in text and "nan" not in text
    assert "MARINA paper, Table 1" in text
    assert "PermK paper, Theorem 3" not in text


RANDK = {"name": "randk", "k": 10}
METHODS = [
    ({"name": "gd"}, None, tables.gradient_descent),
    ({"name": "marina"}, RANDK, tables.marina),
    ({"name": "vr-marina", "batch": 16}, RANDK, tables.vr_marina),
    ({"name": "pp-marina", "participants": 2}, RANDK, tables.pp_marina),
    ({"name": "ef21"}, {"name": "topk", "k": 10}, tables.ef21),
]


@pytest.mark.parametrize(
    ("method", "compressor", "predict"), METHODS, ids=[m["name"] for m, _, _ in METHODS]
)
def test_predicted_bits_and_calls_are_those_of_runs(method, compressor, predict):
    """Expected bits and sample gradients of K rounds against those of 6 runs of K rounds."""
    omega = 11.3 if compressor is RANDK else None
    sampled = {"b": method.get("batch"), "r": method.get("participants")}
    of_setting = setting(omega, alpha=10 / 123, zeta=10.0, n=5, d=123)
    one = Case(of_setting, np.full(5, 320), delta=1.0, epsilon=0.1, **sampled)
    rounds, ends = 200, []
    for seed in range(6):
        run = {"workers": 5, "rounds": rounds, "seed": seed, "log_every": rounds}
        ends.append(run_tables(table(method | {"stepsize": 1e-3}, compressor, **run)).row)
    first, many = predict(dataclasses.replace(one, epsilon=1e9)), predict(one)
    assert first.rounds == 1
    share = (rounds - 1) / (many.rounds - 1)
    bits = first.bits + (many.bits - first.bits) * share
    calls = first.calls + (many.calls - first.calls) * share
    for name, expected in (("paper_bits_up", bits), ("oracle_calls", calls)):
        totals = [row[name] / 5 for row in ends]
        error = np.std(totals, ddof=1) / np.sqrt(len(ends))
        assert abs(np.mean(totals) - expected) <= 5 * error + 1e-9 * expected, name
        assert error < 0.1 * expected


def test_there_is_no_theorem_about_clients_that_are_away(command):
    fleet = "fleet={ links = '1mbit,10ms', seconds = 0.1, dropout = 0.5, simulate = true }"
    words = "problem.name=logistic", "compressor={ name = 'randk', k = 10 }", fleet
    method = "method={ name = 'dasha', stepsize = 0.1 }"
    told = command("theory", *words_of(*SAMPLE, *words, method), code=2)
    assert '"theory" is not allowed with fleet.simulate' in told


def words_for(compressor, method):
    return f"compressor={{ {compressor} }}", f"method={{ {method}, stepsize = 0.1 }}"


TOPK, IDENTITY = "name = 'topk', k = 5", "name = 'identity'"
THEOREM_6, DECAY = "Theorem 6 (EF21), start", "what follows is without method.weight_decay"
PP_MARINA = "participants = 3, stepsize = { theory = 2.0, condition = 'PL' }"
OF_PP_MARINA = (
    *("problem.l2=0.01", "compressor={ name = 'randk', k = 10 }"),
    f"method={{ name = 'pp-marina', {PP_MARINA} }}",
)
OF_PERMK = (
    "problem={ name = 'quadratic', workers = 30, dimension = 10, noise = 0.3, lambda = 0.01 }",
    "method={ name = 'marina', stepsize = 'theory' }",
    "compressor={ name = 'permk', groups = 4 }",
)
REPORTS = [  # settings, what the report has, and what it has not
    # Theorem 6 is about messages up, full gradients, and g_i^0 = grad f_i(x^0)
    (words_for(TOPK, "name = 'ef21'"), [THEOREM_6], [DECAY]),
    (words_for(TOPK, "name = 'ef21', start = 'compressed'"), [], [THEOREM_6]),
    (words_for(TOPK, "name = 'ef21-2way'"), [], [THEOREM_6]),
    (words_for(TOPK, "name = 'ef21', weight_decay = 0.1"), [DECAY], []),
    # a tenth of 320 samples
    (words_for(TOPK, "name = 'ef21', batch = 0.1"), ["b' = 32,"], [THEOREM_6]),
    (words_for(IDENTITY, "name = 'vr-marina', batch = 0.1"), ["b' = 32,"], []),
    (
        OF_PP_MARINA,
        [
            *("n = 5, d = 123, m = 320", "omega = 11.3", "zeta = 10", "p = 0.0487805, r = 3"),
            *("derived for PP-MARINA (PL)", "2 x theory", "f(x^0)        0.693147"),
            *("by Newton's method", "the penalty's l2", "epsilon^2 = 0.0001", "PP-MARINA, r = 3"),
            "MARINA paper, Table 2: until E f - f(x*) <= epsilon = 0.01",
        ],
        ["nan", "none"],
    ),
    (
        OF_PERMK,
        [
            *("PermK paper, Table 1", "Theorem 2 (9)", "Lemma 14", "Lemma 16", "Theorem 10"),
            *("derived here", "4 groups of 7 to 8 workers", "theorem = permk"),
        ],
        ["nan", "(51)"],  # n > d, and groups of two sizes
    ),
]


@pytest.mark.parametrize(("words", "parts", "absent"), REPORTS)
def test_what_the_report_says(words, parts, absent, capsys):
    text = theory(capsys, *SAMPLE, "problem.name=logistic", *words)
    assert [part for part in parts if part not in text] == []
    assert [part for part in absent if part in text] == []


FLOAT = 32


def permk_case(n, d, L=1.0, L_plus=1.5, L_pm=1.0, mu=None, delta=1.0, epsilon=0.01) -> Case:
    condition = "PL" if mu else "nonconvex"
    s = setting(1.0, n=n, d=d, L=L, L_plus=L_plus, mu=mu, condition=condition)
    s = dataclasses.replace(s, c=dataclasses.replace(s.c, L_pm=L_pm))
    return Case(s, np.ones(1), delta=delta, epsilon=epsilon)


# (n, d) as the lemmas want them: n | d with n > 1, or d | n with d > 1
SIZES = st.one_of(
    st.tuples(st.integers(2, 40), st.integers(1, 20)).map(lambda t: (t[0], t[0] * t[1])),
    st.tuples(st.integers(2, 40), st.integers(1, 20)).map(lambda t: (t[0] * t[1], t[0])),
)


def variances(flat, share):
    """L_+ and an L_± that Lemma 2 allows, for L_- = 1."""
    L_plus = 1 / flat
    return L_plus, sqrt(max(0.0, L_plus**2 - 1) * (1 - share) + L_plus**2 * share)


@hypothesis_settings(deadline=None, max_examples=30)
@given(SIZES, st.floats(0.01, 1), st.floats(0, 1), st.none() | st.floats(1e-5, 0.5))
def test_lemmas_13_to_16(size, flat, share, mu):
    """min / 2 <= N(p, k) for all p, k; N(lemma's p, k) <= 2 min or 4 min; N is half of T's bits.

    Under PL bits have log(1 / (1 - x)) from x to 1.39 x, as x = gamma mu is at most 1/2.
    """
    n, d = size
    one = permk_case(n, d, 1.0, *variances(flat, share), mu=mu)
    bits_of_N, most = (1, 1.39) if mu else (2, 1.0)
    for stated, best, order in permk.optimized(one):
        assert best.bits <= stated.bits * (1 + 1e-9)
        assert best.bits / bits_of_N >= order / 2 / most * (1 - 1e-9)
        assert stated.bits / bits_of_N <= 4 * order * (1 + 1e-9)
    if n <= d and mu is None:
        assert permk.optimized(one)[0][0].bits / 2 <= 2 * permk.order(one, "permk") * (1 + 1e-9)


@pytest.mark.parametrize(("n", "d"), [(4, 20), (20, 4), (7, 30)])
@pytest.mark.parametrize("mu", [None, 0.05])
def test_best_against_brute_force(n, d, mu):
    one = permk_case(n, d, mu=mu)
    ps = np.geomspace(1e-4, 1, 4000).tolist()
    for method, counts in (("permk", [1]), ("randk", range(1, d + 1))):
        least = min(permk.at(one, method, p, k).bits for k in counts for p in ps[:: len(counts)])
        best = permk.best(one, method)
        assert best.bits <= least * (1 + 1e-9) and best.bits >= least * 0.999
        assert permk.at(one, method, best.p, best.k).bits == best.bits
    least = min(permk.at(one, "topk", 1.0, k).bits for k in range(1, d + 1))
    assert permk.best(one, "topk").bits == least == permk.at(one, "topk", 1.0, d).bits


def test_permk_by_hand():
    """(31), (32), (33) and (39) with Delta_0 / epsilon^2 = 10^4, twice."""
    one = permk_case(4, 20, L=1.0, L_plus=2.0, L_pm=0.5)
    twice = 2 * 1e4 * FLOAT
    choice = permk.at(one, "permk", 0.25, 0)
    assert choice.bits == pytest.approx(twice * (5 + 0.75 * 5) * (1 + sqrt(3) * 0.5))
    choice = permk.at(one, "randk", 0.5, 4)
    assert choice.bits == pytest.approx(twice * (10 + 2) * (1 + sqrt(4 / 4) * 2))
    choice = permk.at(one, "topk", 1.0, 15)
    assert choice.bits == pytest.approx(twice * 15 * (1 + 2 * (5 + sqrt(400 - 300)) / 15))
    one = permk_case(20, 4, L=1.0, L_plus=2.0, L_pm=0.5)
    choice = permk.at(one, "permk", 0.2, 0)
    assert choice.bits == pytest.approx(twice * (0.8 + 0.8) * (1 + sqrt(4 * 3 / 19) * 0.5))
    assert [c.k for c, _ in permk.table_3(one)] == [ceil(4 / 20)] * 3


def report_on_groups(*sizes, A=1.0, mu=None, **changes):
    """Of n = 12 workers and d = 24; L = 1 in all, with PermK's constants in each group."""
    g = len(sizes)
    groups = Groups(np.repeat(np.arange(g), sizes), np.full(g, A), np.ones(g))
    constants = GroupConstants(groups, np.full(g, 1.5), np.full(g, 0.5))
    one = permk_case(12, 24, mu=mu)
    keys = {"A": 1 / g, "B": 1 / g, "zeta": 24 / min(sizes), "groups": constants} | changes
    return report._permk(dataclasses.replace(one, setting=dataclasses.replace(one.setting, **keys)))


def test_equation_51_is_not_named_beyond_its_conditions():
    """n <= d, groups of one size with PermK in each, and no PL: Appendix M, above (51)."""

    def line(text):
        return next(one for one in text.splitlines() if "groups" in one)

    stated = line(report_on_groups(4, 4, 4))
    assert "(51)" in stated and "derived here" not in stated
    for text in (
        report_on_groups(4, 4, 4, mu=0.1),
        report_on_groups(4, 4, 4, d=11, zeta=11 / 4),  # n > d
        report_on_groups(4, 4, 4, d=3, zeta=1.0),  # G > d
        report_on_groups(3, 4, 5),
        report_on_groups(4, 4, 4, A=1.5),
    ):
        assert "derived here" in line(text) and line(text).endswith(" -") and "(51)" not in text
