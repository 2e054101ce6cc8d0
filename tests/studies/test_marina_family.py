"""The studies of MARINA, PermK and DASHA: logs and eigenvalues by hand."""

import json
import sys
from itertools import product

import numpy as np
import pytest
import tomli_w

from mpisim.analysis.claims import Evidence, Verdict, clear, judging
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import BestSteps, complete_logs
from mpisim.core.errors import InputError
from mpisim.problems.data import arrange
from mpisim.runs.log.reader import read
from run.dasha import figures
from run.dasha.figures import BITS as SENT
from run.dasha.figures import best, up_to
from run.permk import comparison, measure_mg, mg, quadratic, table5
from tests.studies.conftest import ROUNDS


def test_the_last_sweep_says_what_is_drawn(make_log, tmp_path):
    paths = [make_log(), make_log(seed=2, attrs={"status": "diverged"}), make_log(seed=3)]
    paths += [make_log(seed=4), make_log(seed=5)]
    rest = dict(settings={}, config="", status="done")
    points = [{"name": path.stem, "log": f"elsewhere/{path.name}", **rest} for path in paths]
    points.append({"name": "gone", "log": "elsewhere/gone.h5", **rest})
    points[3] |= {"status": "skipped", "reason": f"{points[3]['log']}: is of other data"}
    points[4]["status"] = ""  # a sweep of other code was stopped before it came to this point
    (tmp_path / "sweep.json").write_text(json.dumps({"points": points}))
    logs, left = complete_logs(tmp_path)
    assert [log.path for log in logs] == [paths[0], paths[2]]
    why = {paths[1]: "diverged", paths[3]: "is of other data"}
    why |= {paths[4]: "not run", tmp_path / "gone.h5": "not run"}
    assert left == [f"{path}: not drawn, {text}" for path, text in why.items()]


def test_the_error_where_all_workers_draw_alike(monkeypatch):
    """Independent draws: omega / n^2 sum |v_i|^2; alike, the mean message is RandK of the mean."""
    monkeypatch.delitem(sys.modules, "run.marina.measure_evidence", raising=False)
    from run.marina.measure_evidence import N, _error  # registers its compressor

    d, k = 40, 4
    v = np.random.default_rng(1).normal(1.0, 2.0, (N, d))
    mean, omega = v.mean(axis=0), d / k - 1
    alone = omega * np.sum(v**2) / N**2 / (mean @ mean)
    found = [_error({"name": name, "k": k}, v, 20000) for name in ("randk", "randk-alike")]
    assert found == pytest.approx([alone, omega], rel=0.03) and alone < 0.8 * omega


def measured(L_plus, L_pm, name=mg.INFERRED):
    scaled = {"L_plus": [488.0, 488.2], "L_pm": [19.0, 20.0]}
    return {"mg_scale": scaled, name: {"L_plus": L_plus, "L_pm": L_pm}}


def test_mg_by_hand(tmp_path):
    def claims(content):
        (tmp_path / "splits.json").write_text(json.dumps(content))
        return list(mg.claims(mg.read(tmp_path)))

    result = claims(measured([3609.5, 3609.7, 3609.6, 3609.7], [20.0, 34.0, 35.0, 40.0]))
    assert [claim.verdict for claim in result] == ["holds"] * 2
    assert result[0].evidence[2].numbers == {"low": 3609.6, "high": 3609.7}
    scaled, unscaled = result[1].evidence
    assert unscaled.counts and not scaled.counts and scaled.verdict == "does not hold"
    assert scaled.numbers["ratio"] == pytest.approx((488 / 19 + 488.2 / 20) / 2)
    result = claims(measured([3609.5, 3609.7, 3609.6], [20.0, 50.0, 34.0]))
    holds, fails = "holds", "does not hold"
    assert [one.verdict for one in result[0].evidence] == [holds, holds, fails]
    result = claims(measured([3609.5, 3609.6], [1.0, 2.0]))
    assert [one.verdict for one in result[0].evidence] == [fails, fails, "not decided"]
    assert [claim.verdict for claim in result] == [fails, fails]
    both = measured([3609.5, 3609.7], [20.0, 40.0]) | {"mg": {"L_plus": [1.0], "L_pm": [1.0]}}
    assert claims(both)[0].claim.endswith("of a split of mg")
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


def table5_logs(make_log, first, seeds):
    """{p: ratio at 10}, falling as 1 / k; the run of 900 rounds has rows each 100.

    Seed s has s times this ratio, if not of p = 0.9.
    """
    every = []
    for p, base in first.items():
        for seed, (rounds, apart) in product(seeds, ((10, 10), (900, 100))):
            ratio = base * (1 if p == 0.9 else 1 + seed / 100)
            k = np.arange(0, rounds + 1, apart)
            plus = np.where(k > 0, 10 * ratio / np.maximum(k, 1), np.nan)
            columns = {"round": k, "loss": np.full(len(k), 1.0), "adaptive_L_plus_sq": 4 * plus}
            columns |= {"adaptive_L_pm_sq": np.where(k > 0, 4.0, np.nan)}
            tables = {
                "problem": {"name": "autoencoder", "homogeneity": p},
                "method": {"name": "marina", "stepsize": 0.001},
                "compressor": {"name": "permk"},
                "run": {"rounds": rounds, "seed": seed},
            }
            attrs = {"config": tomli_w.dumps(tables), "seed": seed}
            every.append(read(make_log(rounds=len(k) - 1, columns=columns, attrs=attrs)))
    return every


def test_claims(make_log, any_grid):
    five = range(1, 6)
    claims = list(table5.claims(table5_logs(make_log, {0.9: 200.0, 0.0: 20.0}, seeds=five)))
    assert [claim.verdict for claim in claims] == ["holds"] * 3
    assert [len(claim.evidence) for claim in claims] == [2, 4, 1]
    mean = 2000 / (10 * 300 * 600 * 900) ** 0.25
    assert claims[-1].evidence[0].numbers["ratios"] == pytest.approx([mean / 10] * 5)
    assert "t = 300: 6.67 (paper 9.96)" in claims[0].evidence[0].measured
    turned = table5.claims(table5_logs(make_log, {0.9: 2.0, 0.0: 20.0}, seeds=five))
    assert [claim.verdict for claim in turned] == ["holds", "does not hold", "does not hold"]


@pytest.mark.parametrize(("tried", "all_work"), [([1.0, 2.0], True), ([1.0, 2.0, 4.0], False)])
def test_a_step_that_diverged_was_tried(make_log, tried, all_work):
    """Then the largest step that works is no edge."""
    falls = {"grad_norm_sq": 1e-5 ** (ROUNDS / ROUNDS[-1])}
    works = {step: [read(make_log(columns=falls, attrs={"stepsize": step}))] for step in (1.0, 2.0)}
    steps = BestSteps(works, 1.0, tried, None, "")
    assert quadratic.tolerated(steps) == 2.0 and quadratic.tolerates_all(steps) is all_work


@pytest.mark.parametrize(
    ("seeds", "verdict"), [(1, "not decided"), (4, "not decided"), (5, "holds")]
)
def test_larger_steps_need_seeds(make_log, monkeypatch, seeds, verdict):
    monkeypatch.setattr(judging, "FEWEST", 5)
    logs = [read(make_log(seed=seed)) for seed in range(seeds)]
    both = [BestSteps({step: logs}, step, [1.0, 2.0, 4.0], None, "") for step in (2.0, 1.0)]
    one = comparison.steps("p-hat = 0", both, (2.0, 1.0), clear)
    assert one.verdict == verdict and ("(1 seed)" in one.measured) is (seeds == 1)


# By step: the rate of |grad f|^2, and that of f. The largest ends on a plateau of f: its gradient
# vanishes first.
RATES = {
    "marina": {4.0: (0.05, 0.01), 8.0: (0.10, 0.02), 16.0: (0.22, 0.04), 64.0: (0.9, 0.0)},
    "dasha": {4.0: (0.05, 0.01), 8.0: (0.20, 0.03), 16.0: (0.10, 0.02), 64.0: (0.8, 0.0)},
}

BOTH = figures.DASHA, figures.MARINA
BITS = 5 * 320 * np.maximum(ROUNDS - 1, 0)


@pytest.fixture
def logs(by_step):
    """A function that writes the logs of both methods, DASHA's with ``bits_up``."""

    def make(bits_up=BITS):
        return by_step(RATES, first=0.25, columns={"dasha": {"bits_up": bits_up}})

    return make


def test_the_best_step_is_the_one_by_f(logs):
    """With the largest step |grad f|^2 vanishes first, and f stays at its start."""
    result = best(BOTH, logs(), SENT)
    wanted = {name: max(of, key=lambda step: of[step][1]) for name, of in RATES.items()}
    steps = {key[1].lower(): one.step for key, one in result.items()}
    assert steps == wanted == {"dasha": 8, "marina": 16}
    assert not any(one.edge for one in result.values())
    published = best(BOTH, up_to(8.0, logs()), SENT)
    assert all(one.edge.endswith("8 is the largest step") for one in published.values())


def test_the_target_is_the_deepest_that_all_methods_reach(by_step):
    """In 50 rounds f falls to exp(-5), or to exp(-15), of its start: below all tenths."""
    logs = by_step({"marina": {8.0: (0.1, 0.1)}, "dasha": {8.0: (0.3, 0.3)}})
    result = best(BOTH, logs, SENT)
    assert [one.target for one in result.values()] == [0.1, 0.1]


def test_claims_of_figure_1_on_any_grid(logs, any_grid):
    fewer, any_step, _ = figures.fig1(logs())
    # "Significant" is 1.5 times, and with any step DASHA needs less, but not so much less.
    assert (fewer.verdict, any_step.verdict) == ("holds", "does not hold")
    assert any_step.evidence[0].numbers["median"] > 1


@pytest.mark.parametrize("extra", [1, 5 * 32 * 112])
def test_an_uncompressed_round_is_seen(logs, extra):
    """A whole vector in round 30, or a bit more than K numbers; g^0 does not count."""
    bits = 5 * 320 * ROUNDS + 5 * 4000 * (ROUNDS > 0)
    *_, compressed = figures.fig1(logs(bits))
    assert compressed.verdict == "holds"
    *_, compressed = figures.fig1(logs(bits + extra * (ROUNDS > 30)))
    assert compressed.verdict == "does not hold"


def saved(seeds, by_target):
    """A comparison on record with these ratios and bounds."""
    table = {t: {"ratios": ratios, "bounds": bounds} for t, (ratios, bounds) in by_target.items()}
    numbers = {"seeds": seeds, "of": "f(x^0)", "first": 0.1, "by_target": table, "fewest": 1}
    return Evidence("", "", Verdict.HOLDS, numbers, word="fewer")


def test_gains_are_judged_at_every_target():
    """Larger at first and smaller in the end: at one target alone that could not cross."""
    low = saved([1, 2, 3], {"0.1": ([2.0] * 3, [0] * 3), "0.01": ([2.0] * 3, [0] * 3)})
    high = saved([3, 2], {"0.1": ([5.0, 4.0], [0, 0]), "0.01": ([1.0, 1.0], [0, 0])})
    one = comparison.of_gains("", low, high)
    assert one.verdict is Verdict.CROSSES and one.numbers["seeds"] == [2, 3]
    assert one.numbers["by_target"]["0.1"]["ratios"] == [2.0, 2.5]


@pytest.mark.parametrize(
    ("below", "above", "bound"), [(0, 1, 1), (1, 0, -1), (-1, 1, 1), (1, 1, None), (-1, -1, None)]
)
def test_bounds_of_a_gain(below, above, bound):
    """Two bounds on one side give none of their ratio."""
    low, high = saved([1], {"0.1": ([2.0], [below])}), saved([1], {"0.1": ([3.0], [above])})
    table = comparison.of_gains("", low, high).numbers["by_target"]
    assert [one["bounds"] for one in table.values()] == ([] if bound is None else [[bound]])


def test_costs_without_the_dense_g_0(make_log):
    """All send 32 d bits before their first step, which hide most of the ratio of 4."""
    k = np.arange(51)
    bits = {"paper_bits_up": 5 * np.where(k > 0, 32 * 113 + 32 * (k - 1), 0)}
    sides = [
        BestSteps({1.0: [read(make_log(rate=rate, columns=bits))]}, 1.0, [0.5, 1.0, 2.0], None, "")
        for rate in (1.0, 0.25)
    ]
    axes = Axis("paper_bits_up", log=False), Axis("bits_up", log=False)
    one = comparison.against("", sides, axes)
    tables = one.numbers["by_target"], one.numbers["other_costs"]["row 0"]
    with_g0, without = (table["0.01"]["ratios"] for table in tables)
    assert with_g0 == [pytest.approx((113 + 18) / (113 + 4))] and without == [18 / 4]
