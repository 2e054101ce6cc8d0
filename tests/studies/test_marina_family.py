"""The studies of MARINA, PermK and DASHA: logs and eigenvalues by hand."""

import json

import numpy as np
import pytest

from mpisim.analysis.study import complete_logs
from mpisim.core.errors import InputError
from mpisim.problems.data import arrange
from run.dasha import figures
from run.dasha.figures import BITS as SENT
from run.dasha.figures import best, up_to
from run.permk import measure_mg, mg


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


def test_the_error_where_all_workers_draw_alike():
    """Independent draws: omega / n^2 sum |v_i|^2; alike, the mean message is RandK of the mean."""
    from run.marina.measure_evidence import N, _error  # registers its compressor

    d, k = 40, 4
    v = np.random.default_rng(1).normal(1.0, 2.0, (N, d))
    mean, omega = v.mean(axis=0), d / k - 1
    alone = omega * np.sum(v**2) / N**2 / (mean @ mean)
    found = [_error({"name": name, "k": k}, v, 20000) for name in ("randk", "randk-alike")]
    assert found == pytest.approx([alone, omega], rel=0.03) and alone < 0.8 * omega


def test_mg_by_hand(tmp_path):
    def claims(L_plus, L_pm):
        scaled = {"L_plus": [488.0, 488.2], "L_pm": [19.0, 20.0]}
        content = {"mg_scale": scaled, mg.INFERRED: {"L_plus": L_plus, "L_pm": L_pm}}
        (tmp_path / "splits.json").write_text(json.dumps(content))
        return list(mg.claims(mg.read(tmp_path)))

    holds, fails = "holds", "does not hold"
    close, ratio = claims([3609.5, 3609.7, 3609.6, 3609.7], [20.0, 34.0, 35.0, 40.0])
    assert close.verdict == ratio.verdict == holds
    assert close.evidence[2].numbers == {"low": 3609.6, "high": 3609.7}
    scaled, unscaled = ratio.evidence
    assert unscaled.counts and not scaled.counts and scaled.verdict == fails
    assert scaled.numbers["ratio"] == pytest.approx((488 / 19 + 488.2 / 20) / 2)
    close, ratio = claims([3609.5, 3609.6], [1.0, 2.0])
    assert close.verdict == ratio.verdict == fails
    assert [one.verdict for one in close.evidence] == [fails, fails, "not decided"]
    close, _ = claims([3609.5, 3609.7, 3609.6], [20.0, 50.0, 34.0])
    assert [one.verdict for one in close.evidence] == [holds, holds, fails]
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


# By step: the rate of |grad f|^2, and that of f. The largest ends on a plateau of f: its gradient
# vanishes first.
RATES = {
    "marina": {4.0: (0.05, 0.01), 8.0: (0.10, 0.02), 16.0: (0.22, 0.04), 64.0: (0.9, 0.0)},
    "dasha": {4.0: (0.05, 0.01), 8.0: (0.20, 0.03), 16.0: (0.10, 0.02), 64.0: (0.8, 0.0)},
}

BOTH = figures.DASHA, figures.MARINA
ROUNDS = np.arange(51)
BITS = 5 * 320 * np.maximum(ROUNDS - 1, 0)


@pytest.fixture
def logs(make_log, tmp_path):
    """A function that writes the logs of both methods, DASHA's with ``bits_up``, and no others."""

    def make(bits_up=BITS):
        for before in tmp_path.glob("*.h5"):
            before.unlink()
        for method, steps in RATES.items():
            for step, (gradient, loss) in steps.items():
                columns = {"grad_norm_sq": np.exp(-gradient * ROUNDS)}
                columns |= {"loss": 0.25 * np.exp(-loss * ROUNDS)}
                columns |= {"bits_up": bits_up} if method == "dasha" else {}
                make_log(method, stepsize=step, columns=columns, attrs={"stepsize": step})
        return complete_logs(tmp_path)[0]

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
