"""PermK paper, Table 5, from logs with known ratios."""

import numpy as np
import pytest

from mpisim.runs.log.reader import read
from run.permk import table5

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


def logs(make_log, first, loss=(1.0,), seeds=(1,)):
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


def test_ratios_of_both_lengths_and_the_best_step_first(make_log):
    result = table5.ratios(logs(make_log, {0.9: 100.0, 0.0: 20.0}, loss=(2.0, 1.0)))
    assert list(result) == [0.9, 0.0] and list(result[0.9]) == [0.002, 0.001]
    item = result[0.9][0.001]
    assert list(item) == [10, *range(100, 1000, 100)]
    assert item[10] == {1: 100} and item[300] == {1: pytest.approx(10 / 3)}
    assert result[0.0][0.002][10] == {1: pytest.approx(40.4)}


def test_claims(make_log):
    five = range(1, 6)
    claims = list(table5.claims(logs(make_log, {0.9: 200.0, 0.0: 20.0}, seeds=five)))
    assert [claim.verdict for claim in claims] == ["holds"] * 3
    assert [len(claim.evidence) for claim in claims] == [2, 4, 1]
    mean = 2000 / (10 * 300 * 600 * 900) ** 0.25
    assert claims[-1].evidence[0].numbers["ratios"] == pytest.approx([mean / 10] * 5)
    assert "t = 300: 6.67 (paper 9.96)" in claims[0].evidence[0].measured
    turned = table5.claims(logs(make_log, {0.9: 2.0, 0.0: 20.0}, seeds=five))
    assert [claim.verdict for claim in turned] == ["holds", "does not hold", "does not hold"]
