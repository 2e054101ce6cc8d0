"""Derived guarantees of deterministic methods, which hold in every round of a run."""

from math import sqrt

import numpy as np
import pytest

from mpisim.runs.setup import ProblemCache
from mpisim.theory.tables import Case
from tests.helpers import dense, set_up, table
from tests.theory.proofs import (
    LOGISTIC,
    MU,
    NONCONVEX,
    RANDK,
    TOPK,
    at,
    engine,
    rounds_of,
)


def test_fednl_near_its_minimiser():
    """|x^{k+1} - x*| mu <= 2 l^k |x^k - x*| + M/2 |x^k - x*|^2, M = max |phi'''| mean |a|^3."""
    a, loaded = dense("sample")[0], ProblemCache()
    M = np.mean(np.linalg.norm(a, axis=1) ** 3) / (6 * sqrt(3))
    keys = {"hessian": {"name": "topk", "k": 2000}, "alpha": 1.0, "stepsize": "theory"}
    e = engine({"name": "fednl"} | keys, None, LOGISTIC, loaded)
    x = loaded.minimiser(e.star)[0]
    away, errors = [], []
    for r in rounds_of(e, 14):
        H_i = r.before.H_i if r.before.H_i.ndim else e.problem.hessian_triangles(r.x)
        errors.append(np.mean(np.linalg.norm(e.problem.hessian_triangles(r.x) - H_i, axis=1)))
        away.append(np.linalg.norm(r.x - x))
    assert e.step.gamma == 1
    bounds = (2 * np.array(errors) + M / 2 * np.array(away)) * away / MU
    assert (np.array(away[1:]) <= bounds[:-1] + 1e-13).all() and away[-1] < 1e-13


def test_rows_of_the_tables():
    """Where there is no error at the start, K = 2 Delta_0 / (gamma epsilon^2)."""
    for method, compressor in (
        ({"name": "marina-p", "down": RANDK}, None),
        ({"name": "ef21-p", "down": TOPK}, None),
        ({"name": "ef21-sgdm", "eta": 0.3}, TOPK),
    ):
        e = engine(at(method, 1.0), compressor, NONCONVEX, ProblemCache())
        case = Case(e.setting(), e.problem.rows, delta=0.25, epsilon=0.1)
        (row,) = e.estimator.guarantees(case)
        assert row.rounds == np.ceil(50 / e.step.gamma) and row.kind == "bound"
        floats = 10 if compressor else e.problem.d
        assert row.bits == pytest.approx(32 * (e.problem.d + (row.rounds - 1) * floats))


@pytest.mark.parametrize("compressor", [{"name": "permk"}, {"name": "randk", "k": 5}])
def test_ef_bv_weighs_messages_by_the_error_of_their_mean(compressor):
    """(1 - nu)^2 + nu^2 A is least; what PermK's workers send is not independent."""
    tables = table({"name": "ef-bv", "stepsize": 0.1}, compressor, workers=10)
    setup = set_up(tables)
    nu, A = setup.estimator.nu, setup.compressor.A
    r_av = [(1 - one) ** 2 + one**2 * A for one in (0.99 * nu, nu, 1.01 * nu)]
    assert r_av[1] == min(r_av)
