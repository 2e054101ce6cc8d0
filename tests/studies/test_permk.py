"""The PermK paper: quadratic tasks and Appendix M from short runs, the rest from logs by hand."""

import json
from contextlib import suppress
from itertools import product

import numpy as np
import pytest

from mpisim.analysis.claims import needed
from mpisim.analysis.study.tuning import rises
from mpisim.core.errors import Diverged, InputError
from mpisim.problems.data import arrange
from mpisim.runs.log.reader import read
from run.permk import (
    measure_mg,
    mg,
    quadratic,
    table5,
)
from tests.helpers import run_tables

pytestmark = pytest.mark.usefixtures("any_grid")
SIZES, NOISES, MULTIPLES = (4, 40), (0.0, 0.8), (1.0, 8.0, 512.0)
MARINA = {"name": "marina", "theorem": "permk", "smoothness": "published"}
PAIRS = {
    "randk": (MARINA, 20),
    "permk": (MARINA, None),
    "topk": ({"name": "ef21", "smoothness": "published"}, 20),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """d = 20, so that n = 4 is below it and n = 40 above."""
    folder = tmp_path_factory.mktemp("permk")
    for n, noise, name, multiple in product(SIZES, NOISES, PAIRS, MULTIPLES):
        method, d = PAIRS[name]
        problem = {"name": "quadratic", "workers": n, "dimension": 20, "noise": noise}
        tables = {
            "problem": problem | {"lambda": 1e-3},
            "method": method | {"stepsize": {"theory": multiple}},
            "compressor": {"name": name} | ({"k": -(-d // n)} if d else {}),
            "run": {"rounds": 40},
        }
        with suppress(Diverged):  # a step of 512 x theory may
            run_tables(tables, folder / f"{n}-{noise}-{name}-{multiple}.h5")
    every = [read(path) for path in sorted(folder.glob("*.h5"))]
    return [log for log in every if log.attrs["status"] == "done"]


def share(log):
    values = log.column("grad_norm_sq")
    return values[-1] / values[0]


def first(log):
    return log.column("grad_norm_sq")[0]


def test_the_best_step_comes_first_and_what_got_nowhere_is_out(logs):
    result = quadratic.tuned(logs)
    assert list(result) == [(4, 0.0), (4, 0.8), (40, 0.0), (40, 0.8)]
    for (n, noise), by_name in result.items():
        assert set(by_name) == set(PAIRS)
        for name, steps in by_name.items():
            rivals = [
                log
                for log in logs
                if log.config["problem"]["workers"] == n
                and log.config["problem"]["noise"] == noise
                and log.config["compressor"]["name"] == name
                and share(log) < 1
                and not rises(log.column("grad_norm_sq"))
            ]
            runs = [log for [log] in steps.steps.values()]  # one seed
            if steps.target is not None:
                bits = [needed(log, quadratic.BITS, steps.target * first(log)) for log in rivals]
                by_name = needed(runs[0], quadratic.BITS, steps.target * first(runs[0]))
                assert by_name == min(bits) < np.inf
            far = [log for log in rivals if share(log) <= quadratic.FAR]
            largest = max((log.attrs["stepsize"] for log in far), default=0)
            assert quadratic.tolerated(steps) == largest


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
