"""Columns that a log has when they are asked for, against NumPy."""

import os
import signal
from itertools import islice

import numpy as np
import pytest

import mpisim
from mpisim.core.errors import Diverged
from mpisim.runs import loop
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import read
from mpisim.runs.metrics import column
from tests.helpers import before_row, columns, loaded, run_tables, table
from tests.methods.loops import Feedback, Markov, amsgrad, naive, plain, sign
from tests.runs.support import GD

CD_ADAM, SIGN = {"name": "cd-adam", "stepsize": 0.01}, {"name": "scaled-sign"}


def run(tmp_path, asked, method, compressor=SIGN, rounds=12, **settings):
    """The columns of a log that also has those that are asked for."""
    log = tmp_path / "log.h5"
    run_tables(table(method, compressor, rounds=rounds, columns=[asked], **settings), log)
    return columns(log)


def test_pi_of_the_scaled_sign_is_its_formula(tmp_path):
    """1 - |v|_1^2 / (d |v|^2), first for v = grad f_i(x^0), then for the server's mean of C."""
    c = run(tmp_path, "pi", CD_ADAM, wire="float64")
    problem = loaded(table(CD_ADAM, SIGN))
    v = problem.gradients(np.zeros(problem.d))

    def pi(v):
        return 1 - np.abs(v).sum(axis=-1) ** 2 / (problem.d * (v * v).sum(axis=-1))

    signs = sign(v)
    assert c["pi_up"][1] == pytest.approx(pi(v).mean(), rel=1e-12)
    assert c["pi_up_max"][1] == pytest.approx(pi(v).max(), rel=1e-12)
    assert c["pi_down"][1] == pytest.approx(pi(signs.mean(axis=0)), rel=1e-12)
    assert c["pi_code"][1:] == pytest.approx(1 - np.sqrt(c["pi_down"][1:]), rel=1e-12)
    assert ((c["pi_up"][1:] < 1) & (c["pi_up"][1:] > 0)).all() and np.isnan(c["pi_up"][0])


def test_nothing_compressed_is_nan(tmp_path):
    c = run(tmp_path, "pi", CD_ADAM | {"name": "1bit-adam", "warmup": 5})
    for name in ("pi_up", "pi_down", "pi_code"):
        assert np.isnan(c[name][:6]).all() and np.isfinite(c[name][6:]).all()


def test_the_log_is_the_same_with_and_without(tmp_path):
    topk = {"name": "topk", "k": 3}
    c = run(tmp_path, "pi", CD_ADAM, topk, log_every=5)
    plain = run_tables(table(CD_ADAM, topk, rounds=12, log_every=5), keep=True).columns
    assert set(c) - set(plain) == {"pi_up", "pi_up_max", "pi_down", "pi_code"}
    for name in plain:
        assert name.startswith("time_") or np.array_equal(c[name], plain[name]), name


MARINA = {"name": "marina", "stepsize": "theory", "p": 0.2}
PERMK = {"name": "permk"}
QUADRATIC = {"name": "quadratic", "workers": 12, "dimension": 9, "noise": 0.4, "lambda": 0.01}
RATIOS = ("adaptive_L_plus_sq", "adaptive_L_pm_sq")


@pytest.mark.parametrize("problem", [None, QUADRATIC], ids=["sample", "quadratic"])
def test_adaptive_ratios_are_their_formulas(problem):
    """A.8.2, with x^1 and x^2 from runs that end there, and gradients of all workers at once."""
    tables = table(MARINA, PERMK, rounds=2)
    tables |= {"problem": problem} if problem else {}
    item = loaded(tables, 12 if problem else 6)
    x = [item.initial_point()]
    x += [run_tables(tables | {"run": {"rounds": k}}).x for k in (1, 2)]
    run = {"rounds": 12, "columns": ["adaptive"]}
    c = run_tables(tables | {"run": run}, keep=True).columns
    assert np.isnan(c[RATIOS[0]][0]) and np.isnan(c[RATIOS[1]][0])
    for k in (1, 2):
        change = item.gradients(x[k]) - item.gradients(x[k - 1])
        length = np.sum((x[k] - x[k - 1]) ** 2)
        plus = np.mean(np.sum(change**2, axis=1)) / length
        full = np.sum(change.mean(axis=0) ** 2) / length
        assert c[RATIOS[0]][k] == pytest.approx(plus, rel=1e-10)
        assert c[RATIOS[1]][k] == pytest.approx(plus - full, rel=1e-8)


@pytest.mark.parametrize("problem", [{}, QUADRATIC], ids=["sample", "quadratic"])
def test_the_mean_at_the_uniform_iterate_is_exact_whatever_is_logged(problem, tmp_path):
    """To the last digit the mean over all rounds of a log that has them all, also resumed."""
    tables = table(MARINA, PERMK, rounds=12, log_every=5, columns=["uniform"])
    tables["problem"] = problem or tables["problem"]
    every, parts = tmp_path / "every.h5", tmp_path / "parts.h5"
    run_tables(tables | {"run": {"rounds": 12}}, every)
    run_tables(tables | {"run": tables["run"] | {"rounds": 8}}, parts)
    run_tables(tables, parts, resume=True)
    for some in (run_tables(tables, keep=True).columns, columns(parts)):
        wanted = read(every).column("mean_grad_norm_sq")[[0, 5, 10, 12]]
        assert np.array_equal(some["mean_grad_norm_sq"], wanted)
        for name in ("loss", "oracle_calls", "bits_up"):
            assert np.array_equal(some[name], columns(every)[name][[0, 5, 10, 12]])


@pytest.mark.parametrize("problem", [{}, QUADRATIC], ids=["sample", "quadratic"])
def test_workers_that_attack_are_not_in_the_mean_of_any_column(problem):
    tables = table(MARINA, PERMK, rounds=4, columns=["uniform"])
    tables["problem"] = problem or tables["problem"]
    tables |= {"method": MARINA | {"stepsize": 0.1}, "attack": {"name": "sign-flip", "share": 0.4}}
    c = run_tables(tables, keep=True).columns
    assert c["mean_grad_norm_sq"][0] == c["grad_norm_sq"][0]
    means = [c["grad_norm_sq"][:k].mean() for k in range(1, 5)]
    np.testing.assert_allclose(c["mean_grad_norm_sq"][1:], means, rtol=1e-12)


@pytest.mark.parametrize("asked", ["pi", "layers", "estimates"])
def test_the_row_where_a_signal_ends_a_run_has_its_values(asked, log, monkeypatch):
    """Those of a run of as many rounds, which it becomes when it is resumed."""

    def tables(rounds):
        compressor = SIGN | {"layerwise": True}
        return table(CD_ADAM, compressor, rounds=rounds, log_every=5, columns=[asked])

    full = run_tables(tables(11), keep=True).columns
    with monkeypatch.context() as patch:
        patch.setattr(loop, "FASTER", 1)  # looks before each round
        before_row(patch, lambda k: k == 10 and os.kill(os.getpid(), signal.SIGTERM))
        assert run_tables(tables(40), log).row["round"] == 11
    added = columns(log)
    run_tables(tables(11), log, resume=True)
    for name in (name for name in full if not name.startswith("time_")):
        assert np.array_equal(full[name], added[name], equal_nan=True), name
        assert np.array_equal(full[name], columns(log)[name], equal_nan=True), name


NAMES, STEP = ("error_up", "error_down", "v_mean", "v_max"), 0.05


def reference(exchange, rounds=8, nu=1e-8):
    """`NAMES` and the spread of the denominators of AMSGrad's rounds, (rounds, 5)."""
    problem = loaded(table({"name": "amsgrad", "stepsize": STEP}, {"name": "identity"}))
    rows = islice(amsgrad(problem.gradients, problem.d, exchange, STEP, nu), rounds)
    for _, g_i, g_hat, g, v, root in rows:
        up = np.linalg.norm(g_hat - g_i.mean(axis=0))
        yield up, np.linalg.norm(g - g_hat), v.mean(), v.max(), root.max() / root.min()


@pytest.mark.parametrize(
    ("method", "exchange"),
    [("cd-adam", Markov), ("ef-amsgrad", Feedback), ("naive-amsgrad", naive)],
)
def test_errors_and_v_are_those_of_the_algorithm(method, exchange, tmp_path):
    c = run(tmp_path, "estimates", {"name": method, "stepsize": STEP}, rounds=8, wire="float64")
    wanted = np.array([*reference(exchange(sign))]).T
    for name, values in zip(NAMES, wanted[:4], strict=True):
        assert c[name][1:] == pytest.approx(values, rel=1e-9), name
    assert np.isnan(c["error_up"][0]) and np.isnan(c["error_down"][0])
    assert c["v_mean"][0] == c["v_max"][0] == 0


def test_a_method_that_estimates_otherwise_has_no_errors(tmp_path):
    diana = {"name": "diana", "stepsize": STEP}
    c = run(tmp_path / "diana", "estimates", diana, {"name": "randk", "k": 12})
    assert all(np.isnan(c[name]).all() for name in NAMES)
    c = run(tmp_path, "estimates", {"name": "1bit-adam", "stepsize": 0.01, "warmup": 3})
    assert np.isfinite(c["error_up"][1:4]).all() and np.isnan(c["error_up"][4:]).all()
    assert (c["v_mean"][3:] == c["v_mean"][3]).all()  # frozen


@pytest.mark.parametrize("nu", [1e-8, 0.1])
def test_the_spread_of_the_denominators_is_that_of_amsgrad(nu, tmp_path):
    """sqrt(vhat + nu), largest over smallest; row k has round k - 1, and row 0 none."""
    method = {"name": "amsgrad", "stepsize": STEP, "nu": nu}
    result = run(tmp_path, "denominators", method, {"name": "identity"}, 8, wire="float64")
    expected = [row[-1] for row in reference(plain(None), nu=nu)]
    assert np.isnan(result["denominator_spread"][0])
    np.testing.assert_allclose(result["denominator_spread"][1:], expected, rtol=1e-12)
    # the larger nu is, the nearer AMSGrad is to heavy ball
    assert (expected[-1] < 1.01) == (nu == 0.1)


def test_denominators_that_are_zero_are_no_traceback(tmp_path):
    """Of coordinates that nobody has sent, with a nu that float32 rounds to 0."""
    method, run_of = {"name": "amsgrad", "stepsize": 1e-3, "nu": 1e-60}, {"dtype": "float32"}
    with pytest.raises(Diverged):  # 0 / 0
        run(tmp_path, "denominators", method, {"name": "topk", "k": 2}, **run_of)
    assert columns(tmp_path / "log.h5")["denominator_spread"][-1] == np.inf


def test_an_experiment_keeps_the_metric_that_it_was_made_with():
    """Another plugin has taken its name since."""
    every = []
    for value in (0.0, 1.0):
        members = {"columns": [column("twin", "constant")], "values": lambda *_, v=value: (v,)}
        mpisim.metric("twin")(type("Twin", (mpisim.Metric,), members))
        every.append(parse(table(GD, columns=["twin"])))
    assert [mpisim.run(experiment).rows["twin"][0] for experiment in every] == [0.0, 1.0]
