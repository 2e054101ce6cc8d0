"""The minimiser against scipy, its cache, and ranks."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mpisim.core.errors import InputError
from mpisim.problems import PROBLEMS
from mpisim.runs import minimiser as module
from mpisim.runs.minimiser import minimiser
from tests.helpers import calls_of, some_of
from tests.problems.support import FORMS, RANGES, LocalStar, attach, make_rows, on_ranks, part

STAR = LocalStar(6)


def made(name, form="sparse", l2=1e-3, **keys):
    a, y = make_rows(form)
    return attach(name, a, y, RANGES, dense=form == "dense", l2=l2, **keys)


def gradient(problem, x):
    return problem.gradients(x).mean(axis=0)


@pytest.mark.parametrize("limit", [1500, 1], ids=["newton", "newton-cg"])
@some_of(6, form=FORMS, name=["logistic", "least-squares"])
def test_against_scipy(name, form, limit, monkeypatch):
    monkeypatch.setattr(module, "DENSE_LIMIT", limit)
    problem = made(name, form)
    x, f = minimiser(problem, STAR, cache=False)
    assert np.linalg.norm(gradient(problem, x)) <= 1e-14 * max(1, np.abs(x).max())
    assert f == pytest.approx(problem.losses(x).mean(), rel=1e-15)
    how = {"jac": lambda x: gradient(problem, x), "method": "L-BFGS-B"}
    how["options"] = {"maxiter": 10000, "gtol": 1e-10, "ftol": 0}
    result = minimize(lambda x: problem.losses(x).mean(), np.zeros(problem.d), **how)
    assert f <= result.fun * (1 + 1e-15) and result.fun == pytest.approx(f, rel=1e-10)
    assert np.allclose(x, result.x, atol=1e-5)


Y = np.tile([1.0, -1.0], 6)
# At x = 0 the gradient is that of the small feature, whose curvature counts as rounding.
HIDDEN_BY_A_BIAS = np.column_stack([np.ones(12), 1e-9 * Y * np.linspace(1, 2, 12)]), Y
SEPARABLE = make_rows("dense", 20, 50), HIDDEN_BY_A_BIAS


@pytest.mark.parametrize(("rows", "limit"), [(0, 1500), (0, 1), (1, 1500)])
def test_separable_data_has_none(rows, limit, monkeypatch):
    monkeypatch.setattr(module, "DENSE_LIMIT", limit)
    a, y = SEPARABLE[rows]
    problem = attach("logistic", a, y, [(0, len(y))], dense=True)
    with pytest.raises(InputError, match=r"^run\.reference: .*l2[^\n]*$"):
        minimiser(problem, LocalStar(1), cache=False)


@pytest.mark.parametrize(("limit", "d"), [(1500, 2), (1500, 5), (1, 2)])  # 5: H is singular
@pytest.mark.parametrize("l2", [0, 0.1])
@pytest.mark.parametrize("digits", [12, 16])
def test_zero_up_to_rounding_is_a_minimiser(limit, l2, digits, d, monkeypatch):
    monkeypatch.setattr(module, "DENSE_LIMIT", limit)
    angles = 2 * np.pi * np.arange(7) / 7
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    a, y = np.concatenate([0.8 * circle, circle]).round(digits), np.repeat([1.0, -1.0], 7)
    a = a @ (np.eye(2) if d == 2 else np.random.default_rng(0).standard_normal((2, d)))
    problem = attach("logistic", a, y, [(0, 7), (7, 14)], dense=True, l2=l2)
    x, f = minimiser(problem, LocalStar(2), cache=False)
    assert np.abs(x).max() < 10.0 ** (1 - digits) and f == pytest.approx(np.log(2), rel=1e-15)


@pytest.mark.parametrize("name", ["logistic", "least-squares"])
def test_ranks_and_cache_do_not_change_a_bit(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path))
    a, y = make_rows("ones")
    x, f = minimiser(attach(name, a, y, RANGES, l2=1e-3), STAR, cache=False)
    assert not list(tmp_path.iterdir())

    def on_rank(star):
        return minimiser(part(name, a, y, RANGES, star.first, star.m, l2=1e-3), star)

    for counts in ([0, 1, 3, 2], [6], [2, 4]):  # computed, then read from the cache
        for x_rank, f_rank in on_ranks(counts, on_rank):
            assert f_rank == f and np.array_equal(x_rank, x)
        assert len(list(tmp_path.rglob("*"))) == 2  # a folder and one file: no temporary left


def test_an_edited_plugin_has_another_minimiser():
    problem, paths = made("logistic"), set()
    for curvature in (1.0, 2.0, 2.0):
        names = {"curvature": curvature, "__module__": "typed_in"}
        problem.__class__ = type("Mine", (PROBLEMS["logistic"],), names)
        paths.add(module._path(problem))
    assert len(paths) == 2


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path))
    calls = calls_of(monkeypatch, module, "_newton")
    _, f = minimiser(made("logistic"), STAR)
    (file,) = tmp_path.rglob("*.h5")
    minimiser(made("logistic", l2=2e-3), STAR)
    minimiser(made("least-squares"), STAR)
    minimiser(made("least-squares", reduction="sum"), STAR)
    assert len(calls) == 4 == len(list(tmp_path.rglob("*.h5")))
    for damage in (b"", b"nonsense", file.read_bytes()[:900]):
        file.write_bytes(damage)
        assert minimiser(made("logistic"), STAR)[1] == f
    assert len(calls) == 7
    assert minimiser(made("logistic"), STAR)[1] == f and len(calls) == 7
