"""Columns that a log has when they are asked for."""

import numpy as np
import pytest

from mpisim.errors import InputError
from tests.helpers import columns, run_tables, table

CD_ADAM = {"name": "cd-adam", "stepsize": 0.01}


def run_pi(tmp_path, method, compressor, rounds=12, **run):
    log = tmp_path / "log.h5"
    run_tables(table(method, compressor, rounds=rounds, columns=["pi"], **run), log)
    return columns(log)


def test_pi_of_randk_unscaled_is_one_minus_alpha_on_average(tmp_path):
    dcgd, k, rounds = {"name": "dcgd", "stepsize": 1e-9}, 41, 200
    c = run_pi(tmp_path, dcgd, {"name": "randk", "k": k, "scaled": False}, rounds=rounds)
    pi = c["pi_up"][1:]
    assert np.isnan(c["pi_up"][0]) and np.isnan(c["pi_down"]).all()
    assert abs(pi.mean() - (1 - k / 123)) < 4 * pi.std() / rounds**0.5 < 0.02
    assert (c["pi_up_max"][1:] >= pi).all()


def test_pi_of_the_scaled_sign_is_its_formula(tmp_path):
    """1 - |v|_1^2 / (d |v|^2), first for v = grad f_i(x^0), then for the server's mean of C."""
    from mpisim.config import parse

    c = run_pi(tmp_path, CD_ADAM, {"name": "scaled-sign"}, wire="float64")
    problem = parse(table(CD_ADAM, {"name": "scaled-sign"})).problem
    problem.load(6, 0, 6, 1, np.dtype(float))
    v = problem.gradients(np.zeros(problem.d))

    def pi(v):
        return 1 - np.abs(v).sum(axis=-1) ** 2 / (problem.d * (v * v).sum(axis=-1))

    signs = np.abs(v).mean(axis=1)[:, None] * np.where(v < 0, -1, 1)
    assert c["pi_up"][1] == pytest.approx(pi(v).mean(), rel=1e-12)
    assert c["pi_up_max"][1] == pytest.approx(pi(v).max(), rel=1e-12)
    assert c["pi_down"][1] == pytest.approx(pi(signs.mean(axis=0)), rel=1e-12)
    assert ((c["pi_up"][1:] < 1) & (c["pi_up"][1:] > 0)).all()


def test_topk_keeps_its_bound(tmp_path):
    c = run_pi(tmp_path, CD_ADAM, {"name": "topk", "k": 12})
    assert (c["pi_up_max"][1:] <= 1 - 12 / 123).all() and (c["pi_down"][1:] <= 1 - 12 / 123).all()


def test_nothing_compressed_is_nan(tmp_path):
    c = run_pi(tmp_path, CD_ADAM | {"name": "1bit-adam", "warmup": 5}, {"name": "scaled-sign"})
    assert np.isnan(c["pi_up"][:6]).all() and np.isfinite(c["pi_up"][6:]).all()
    assert np.isnan(c["pi_down"][:6]).all() and np.isfinite(c["pi_down"][6:]).all()


def test_the_log_is_the_same_with_and_without(tmp_path):
    c = run_pi(tmp_path, CD_ADAM, {"name": "topk", "k": 3}, log_every=5)
    run_tables(table(CD_ADAM, {"name": "topk", "k": 3}, rounds=12, log_every=5), tmp_path / "no.h5")
    plain = columns(tmp_path / "no.h5")
    assert set(c) - set(plain) == {"pi_up", "pi_up_max", "pi_down"}
    for name in plain:
        assert name.startswith("time_") or np.array_equal(c[name], plain[name]), name


def test_resumed(tmp_path):
    run = {"columns": ["pi"]}
    tables = [table(CD_ADAM, {"name": "scaled-sign"}, rounds=k, **run) for k in (20, 9)]
    run_tables(tables[0], tmp_path / "whole.h5")
    run_tables(tables[1], tmp_path / "parts.h5")
    run_tables(tables[0], tmp_path / "parts.h5", resume=True)
    whole, parts = columns(tmp_path / "whole.h5"), columns(tmp_path / "parts.h5")
    for name in ("pi_up", "pi_up_max", "pi_down"):
        assert np.array_equal(whole[name], parts[name], equal_nan=True), name


def test_an_unknown_column_is_one_line():
    with pytest.raises(InputError, match=r"run\.columns: unknown name 'p'; known: pi"):
        run_tables(table(CD_ADAM, {"name": "scaled-sign"}, columns=["p"]))
