"""The PermK paper: mg by hand and against dense eigenvalues, Table 5 from logs by hand."""

import json

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data import arrange
from mpisim.runs.log.reader import read
from run.permk import measure_mg, mg, table5

pytestmark = pytest.mark.usefixtures("any_grid")


def measured(L_plus, L_pm, name=mg.INFERRED):
    scaled = {"L_plus": [488.0, 488.2], "L_pm": [19.0, 20.0]}
    return {"mg_scale": scaled, name: {"L_plus": L_plus, "L_pm": L_pm}}


def test_mg_by_hand(tmp_path):
    def claims(content):
        (tmp_path / "splits.json").write_text(json.dumps(content))
        return list(mg.claims(mg.read(tmp_path)))

    result = claims(measured([3609.5, 3609.7, 3609.6, 3609.7], [20.0, 34.0, 35.0, 40.0]))
    assert [claim.verdict for claim in result] == ["holds"] * 4
    assert result[2].evidence[0].numbers == {"low": 3609.6, "high": 3609.7}
    scaled, unscaled = result[3].evidence
    assert unscaled.counts and not scaled.counts and scaled.verdict == "does not hold"
    assert scaled.numbers["ratio"] == pytest.approx((488 / 19 + 488.2 / 20) / 2)
    result = claims(measured([3609.5, 3609.7, 3609.6], [20.0, 50.0, 34.0]))
    assert [claim.verdict for claim in result[:3]] == ["holds", "holds", "does not hold"]
    result = claims(measured([3609.5, 3609.6], [1.0, 2.0]))
    fails = "does not hold"
    assert [claim.verdict for claim in result] == [fails, fails, "not decided", fails]
    both = measured([3609.5, 3609.7], [20.0, 40.0]) | {"mg": {"L_plus": [1.0], "L_pm": [1.0]}}
    assert claims(both)[0].evidence[0].where == "mg"
    assert claims(both)[0].verdict == "does not hold"
    with pytest.raises(InputError, match="mpisim study run/permk mg"):
        mg.read(tmp_path / "nowhere")


def test_mg_against_dense_eigenvalues(need_data, tmp_path):
    """Three splits of what can be inferred of mg: A_i = X_i^T X_i."""
    need_data("mg_scale")
    measure_mg.measure(tmp_path, 3)
    result = mg.read(tmp_path)
    x, labels = measure_mg.unscaled()
    assert x.min() == labels.min() and x.max() == labels.max()
    for seed in (1, 2, 3):
        order = arrange.shuffle(len(x), seed)
        first, second = (x[rows].T @ x[rows] for rows in np.array_split(order, 2))
        square = np.linalg.eigvalsh(first @ first + second @ second)[-1] / 2
        apart = np.abs(np.linalg.eigvalsh(first - second)).max() / 2
        assert result[mg.INFERRED]["L_plus"][seed - 1] == pytest.approx(np.sqrt(square))
        assert result[mg.INFERRED]["L_pm"][seed - 1] == pytest.approx(apart, rel=1e-6)


STEPS = (0.001, 0.002)
CONFIG = """
title = ""
[problem]
name = "autoencoder"
homogeneity = {p}
[method]
name = "marina"
stepsize = {step}
[compressor]
name = "permk"
[run]
rounds = {rounds}
seed = {seed}
"""


def table5_logs(make_log, first, loss=(1.0,), seeds=(1,)):
    """{p: ratio at 10}, falling as 1 / k; the run of 900 rounds has rows each 100.

    Seed s has s times this ratio, if not of p = 0.9.
    """
    every = []
    for p, base in first.items():
        for step, last, seed in (
            (*one, s) for one in zip(STEPS, loss, strict=False) for s in seeds
        ):
            for rounds, apart in ((10, 10), (900, 100)):
                ratio = base * (1 if p == 0.9 else 1 + seed / 100)
                k = np.arange(0, rounds + 1, apart)
                plus = np.where(k > 0, 10 * ratio * step / 0.001 / np.maximum(k, 1), np.nan)
                columns = {
                    "round": k,
                    "loss": np.full(len(k), last),
                    "adaptive_L_plus_sq": 4 * plus,
                    "adaptive_L_pm_sq": np.where(k > 0, 4.0, np.nan),
                }
                config = CONFIG.format(p=p, step=step, rounds=rounds, seed=seed)
                path = make_log(
                    rounds=len(k) - 1, columns=columns, attrs={"config": config, "seed": seed}
                )
                every.append(read(path))
    return every


def test_claims(make_log):
    five = range(1, 6)
    claims = list(table5.claims(table5_logs(make_log, {0.9: 200.0, 0.0: 20.0}, seeds=five)))
    assert [claim.verdict for claim in claims] == ["holds"] * 3
    assert [len(claim.evidence) for claim in claims] == [2, 4, 1]
    mean = 2000 / (10 * 300 * 600 * 900) ** 0.25
    assert claims[-1].evidence[0].numbers["ratios"] == pytest.approx([mean / 10] * 5)
    assert "t = 300: 6.67 (paper 9.96)" in claims[0].evidence[0].measured
    turned = table5.claims(table5_logs(make_log, {0.9: 2.0, 0.0: 20.0}, seeds=five))
    assert [claim.verdict for claim in turned] == ["holds", "does not hold", "does not hold"]
