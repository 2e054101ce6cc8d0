"""The PermK paper's figures of the autoencoder, from logs made by hand; their grids of runs."""

import numpy as np
import pytest
import tomli_w

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import read
from run.permk import autoencoder, autoencoder_claims

NAMES = [f"permk-fig{number}" for number in (2, 8, 9, 10)]
BITS = {"permk": 2.0, "randk": 2.0, "topk": 1.0}  # of a round, the same with and without indices


@pytest.fixture
def make(make_log):
    """make(compressor, p, speed, ...): a log with f(x^k) = 1 + 99 exp(-speed k)."""

    def one(compressor, p=0.5, speed=0.1, exponent=-8, lambda_=0.0, rises=False):
        method = "ef21" if compressor == "topk" else "marina"
        problem = {
            "name": "autoencoder", "data": "mnist", "workers": 5, "homogeneity": p,
            "lambda": lambda_, "code_size": 2, "images": 70,
        }  # fmt: skip
        config = {
            "problem": problem,
            "method": {"name": method, "stepsize": 2.0**exponent},
            "compressor": {"name": compressor},
            "run": {"rounds": 60, "seed": 1},
        }
        k = np.arange(61)
        loss = 1 + 99 * np.exp(-speed * k) + rises * 2.0 * k
        bits = 5 * BITS[compressor] * k
        attrs = {
            "config": tomli_w.dumps(config), "dimension": 3136, "compressor": compressor,
            "stepsize": 2.0**exponent,
        }  # fmt: skip
        columns = {"loss": loss, "bits_up": bits, "paper_bits_up": 0.5 * bits}
        path = make_log(method=method, rounds=60, columns=columns, attrs=attrs)
        return read(path)

    return one


def by_text(claims):
    return {claim.claim: claim for claim in claims}


def test_the_best_step_and_its_ratio(make):
    """RandK needs twice the rounds of PermK's best step, TopK as many, at half the bits."""
    logs = [
        make("permk", speed=0.05, exponent=-9),
        make("permk", speed=0.1, exponent=-8),
        make("permk", speed=0.2, exponent=-7, rises=True),
        make("randk", speed=0.05),
        make("topk", speed=0.1),
    ]
    found = autoencoder.runs(logs)
    panel = (0.0, 0.5)
    assert [float(log.attrs["stepsize"]) for log in autoencoder.finest(found, panel, "permk")] == [
        2**-8
    ]
    claims = by_text(autoencoder_claims.fig2(logs))
    permk = claims["λ = 0, p-hat = 0.5: PermK needs fewer bits than RandK"]
    assert permk.holds and permk.details["median_ratio"] == pytest.approx(2, rel=0.05)
    assert permk.details["paper_ratio"] == pytest.approx(2, rel=0.05)
    topk = claims["λ = 0, p-hat = 0.5: TopK needs fewer bits than PermK"]
    assert topk.holds and topk.details["median_ratio"] == pytest.approx(2)
    assert claims["λ = 0, p-hat = 0.5: TopK significantly outperforms RandK"].holds
    slow = [log for log in logs if log.attrs["compressor"] != "topk"]
    claims = by_text(autoencoder_claims.fig2([*slow, make("topk", speed=0.02)]))
    assert not claims["λ = 0, p-hat = 0.5: TopK needs fewer bits than PermK"].holds
    assert not claims["λ = 0, p-hat = 0.5: TopK significantly outperforms RandK"].holds


@pytest.mark.parametrize(("speed", "holds"), [(0.05, True), (0.1, False), (0.02, False)])
def test_almost_the_same(make, speed, holds):
    logs = [make("permk", 0.75), make("randk", 0.75, 0.01), make("topk", 0.75, speed)]
    [claim] = [c for c in autoencoder_claims.fig2(logs) if "almost the same" in c.claim]
    assert claim.holds == holds


def test_homogeneous_panels_and_larger_lambda(make):
    logs = []
    for lambda_, speed in ((0.0, 0.1), (1e-4, 0.12), (1e-3, 0.15)):
        for p in (0.9, 0.5):
            logs.append(make("permk", p, speed, lambda_=lambda_))
            logs.append(make("randk", p, 0.05, lambda_=lambda_))
            logs.append(make("topk", p, 0.1 if lambda_ and p == 0.5 else 0.04, lambda_=lambda_))
    claims = by_text(autoencoder_claims.fig8(logs))
    assert claims["λ = 0.0001, p-hat = 0.9: PermK needs fewer bits than TopK"].holds
    assert claims["p-hat = 0.9: the larger λ, the fewer bits PermK needs compared to RandK"].holds
    text = "p-hat = 0.5: the larger λ, the fewer bits PermK needs compared to TopK"
    assert not claims[text].holds and claims[text].details["ratios"].keys() == {0.0, 1e-4, 1e-3}
    assert not any("p-hat = 0.5: PermK" in text for text in claims)


def test_tolerated_steps(make):
    logs = [
        make("permk", 0.9, exponent=-7),
        make("permk", 0.9, exponent=-6, speed=0, rises=True),
        make("randk", 0.9, exponent=-9),
        make("topk", 0.9, exponent=-8),
        make("permk", 0.0, exponent=-8),
        make("topk", 0.0, exponent=-7),
    ]
    ninth = by_text(autoencoder_claims.fig9(logs))
    claim = ninth["λ = 0, p-hat = 0.9: PermK tolerates larger steps than RandK"]
    assert claim.holds and claim.details["steps"] == [2**-7, 2**-9]
    assert not ninth["λ = 0, p-hat = 0: PermK tolerates larger steps than RandK"].holds
    tenth = by_text(autoencoder_claims.fig10(logs))
    assert tenth["λ = 0, p-hat = 0.9: PermK tolerates larger steps than TopK"].holds
    assert tenth["λ = 0, p-hat = 0: PermK tolerates about the same steps as TopK"].holds
    logs[-1] = make("topk", 0.0, exponent=-5)
    tenth = by_text(autoencoder_claims.fig10(logs))
    assert not tenth["λ = 0, p-hat = 0: PermK tolerates about the same steps as TopK"].holds


def test_missing_runs_do_not_hold(make):
    for name in NAMES:
        logs = [make("permk", 0.9), make("permk", 0.0), make("permk", 0.75)]
        claims = list(find(name)[1].claims(logs))
        assert claims and not any(claim.holds for claim in claims)


@pytest.mark.parametrize(
    ("name", "panels", "lines"),
    [("permk-fig2", 2, 3), ("permk-fig8", 4, 3), ("permk-fig9", 4, 4), ("permk-fig10", 4, 4)],
)
def test_it_draws(make, tmp_path, name, panels, lines):
    logs = [
        make(compressor, p, exponent=e, lambda_=lambda_)
        for compressor in autoencoder.COMPRESSORS
        for p in (0.0, 0.9)
        for e in (-8, -7)
        for lambda_ in (0.0, 1e-3)
    ]
    figure = find(name)[1].draw(logs)
    figure.savefig(tmp_path / "figure.png")
    assert len(figure.axes) == panels
    assert all(len(panel.lines) == lines for panel in figure.axes)
    assert figure.axes[0].get_title() == r"$\hat{p}$ = 0"
    labels = [panel.get_xlabel() for panel in figure.axes]
    assert labels[-2:] == ["bits sent per worker"] * 2 and not any(labels[:-2])
    assert "n = 5" in figure.legends[0].get_title().get_text()


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_grid(scale):
    """Section A.5's p-hat and lambda, and K = ceil(d / n)."""
    (source,) = {figure.source for _, figure in map(find, NAMES)}
    folder, grid = source.whole(find(NAMES[0])[0].folder, scale)
    assert str(folder) == "logs/permk-autoencoder"
    experiments = [parse(point) for point in grid]
    for experiment in experiments:
        problem, n = experiment.problem, experiment.problem.workers
        d = 2 * 784 * problem.code_size
        assert getattr(experiment.compressor, "k", -(-d // n)) == -(-d // n)
        assert np.log2(float(experiment.method.stepsize)) % 1 == 0
        assert experiment.run.dtype == "float32"
        if scale == "paper":
            assert (n, d, problem.images, experiment.run.rounds) == (1000, 25_088, 60_000, 4000)
    assert {e.compressor.name for e in experiments} == set(autoencoder.COMPRESSORS)
    assert {e.problem.homogeneity for e in experiments} == {0, 0.5, 0.75, 0.9, 1}
    assert {e.problem.lambda_ for e in experiments} == {0, 1e-4, 1e-3}
