"""The PermK paper's figures of the autoencoder, from logs made by hand; their grids of runs."""

import numpy as np
import pytest
import tomli_w

from mpisim.analysis.claims import at_one_target
from mpisim.runs.log.reader import read
from run.permk import autoencoder, autoencoder_claims

pytestmark = pytest.mark.usefixtures("any_grid")
BITS = {"permk": 2.0, "randk": 2.0, "topk": 1.25}  # of a round; of TopK's 0.25 are indices


@pytest.fixture
def make(make_log):
    """make(compressor, p, speed, ...): a log with f(x^k) = 1 + 99 exp(-speed k)."""

    def one(compressor, p=0.5, speed=0.1, exponent=-8, lambda_=0.0, rises=False):
        method = "ef21" if compressor == "topk" else "marina"
        problem = {
            "name": "autoencoder", "data": "mnist", "workers": 5, "homogeneity": p,
            "lambda": 2 * lambda_, "code_size": 2, "images": 70,
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
        indices = 0.2 * bits if compressor == "topk" else 0 * bits
        attrs = {
            "config": tomli_w.dumps(config), "dimension": 3136, "compressor": compressor,
            "stepsize": 2.0**exponent,
        }  # fmt: skip
        columns = {"loss": loss, "bits_up": bits, "paper_bits_up": bits - indices}
        columns["suboptimality"] = loss - 1
        path = make_log(method=method, rounds=60, columns=columns, attrs=attrs)
        return read(path)

    return one


def by_text(claims):
    """{(claim, panel): evidence}."""
    return {(claim.claim, one.where): one for claim in claims for one in claim.evidence}


def test_the_best_step_and_its_ratio(make):
    """RandK needs twice the rounds of PermK's best step, TopK as many, at half the bits."""
    logs = [
        make("permk", speed=0.05, exponent=-9),
        make("permk", speed=0.1, exponent=-8),
        make("permk", speed=0.2, exponent=-7, rises=True),
        make("randk", speed=0.05),
        make("topk", speed=0.1),
    ]
    own = autoencoder.tuned(logs)[0.0, 0.5]["permk"]
    assert own.step == 2**-8 and own.tried == [2**-9, 2**-8, 2**-7]
    claims = by_text(autoencoder_claims.fig2(logs))
    permk = claims["PermK needs fewer bits than RandK", "λ = 0, p-hat = 0.5"]
    assert permk.verdict == "holds" and at_one_target([permk])[1] == pytest.approx([2], rel=0.1)
    deeper = permk.numbers["by_target"]
    assert deeper["0.05"]["ratios"] == pytest.approx([2], rel=0.1)
    assert deeper["0.02"]["bounds"] == [1]  # RandK does not get there
    topk = claims["TopK needs fewer bits than PermK", "λ = 0, p-hat = 0.5"]
    assert topk.verdict == "holds" and at_one_target([topk])[1] == pytest.approx([2])
    assert topk.numbers["sent"]["0.1"]["ratios"] == pytest.approx([1.6])
    assert "; in bits that were sent: 1.6 times" in topk.measured
    outperforms = claims["TopK significantly outperforms RandK", "λ = 0, p-hat = 0.5"]
    assert outperforms.verdict == "holds"
    slow = [log for log in logs if log.attrs["compressor"] != "topk"]
    claims = by_text(autoencoder_claims.fig2([*slow, make("topk", speed=0.02)]))
    for text in ("TopK needs fewer bits than PermK", "TopK significantly outperforms RandK"):
        assert claims[text, "λ = 0, p-hat = 0.5"].verdict == "does not hold"


def test_homogeneous_panels_and_larger_lambda(make):
    logs = []
    for lambda_, speed in ((0.0, 0.1), (1e-5, 0.1), (1e-4, 0.12), (1e-3, 0.15)):
        for p in (0.9, 0.5):
            logs.append(make("permk", p, speed, lambda_=lambda_))
            logs.append(make("randk", p, 0.05, lambda_=lambda_))
            logs.append(make("topk", p, 0.1 if lambda_ and p == 0.5 else 0.04, lambda_=lambda_))
    claims = by_text(autoencoder_claims.fig8(logs))
    ahead = claims["PermK needs fewer bits than TopK", "λ = 0.0001, p-hat = 0.9"]
    assert ahead.verdict == "holds"
    text = "the larger λ, the fewer bits PermK needs compared to"
    assert claims[f"{text} RandK", "p-hat = 0.9"].verdict == "holds"
    falls = claims[f"{text} TopK", "p-hat = 0.5"]
    assert falls.verdict == "does not hold"
    assert list(falls.numbers["gains"]) == ["λ = 0", "λ = 0.0001", "λ = 0.001"]  # Figure 8's
    assert not any(at.endswith("p-hat = 0.5") for what, at in claims if "needs fewer" in what)


def test_tolerated_steps(make):
    logs = [
        make("permk", 0.9, exponent=-7),
        make("permk", 0.9, exponent=-6, speed=0, rises=True),
        make("randk", 0.9, exponent=-9),
        make("randk", 0.9, exponent=-4, speed=0, rises=True),
        make("topk", 0.9, exponent=-4, speed=0, rises=True),
        make("topk", 0.0, exponent=-4, speed=0, rises=True),
        make("topk", 0.9, exponent=-8),
        make("permk", 0.0, exponent=-8),
        make("topk", 0.0, exponent=-7),
    ]
    ninth = by_text(autoencoder_claims.fig9(logs))
    text = "PermK tolerates larger steps than RandK, as in A.3"
    one = ninth[text, "λ = 0, p-hat = 0.9"]
    assert one.verdict == "holds" and one.numbers["largest"] == [2**-7, 2**-9]
    assert ninth[text, "λ = 0, p-hat = 0"].verdict == "not decided"  # no run of RandK
    tenth = by_text(autoencoder_claims.fig10(logs))
    larger = "PermK tolerates larger steps than TopK", "λ = 0, p-hat = 0.9"
    same = "PermK tolerates about the same steps as TopK", "λ = 0, p-hat = 0"
    assert tenth[larger].verdict == tenth[same].verdict == "holds"
    logs[-1] = make("topk", 0.0, exponent=-5)
    tenth = by_text(autoencoder_claims.fig10(logs))
    assert tenth[same].verdict == "does not hold"
    logs.append(make("topk", 0.9, exponent=-7))
    assert by_text(autoencoder_claims.fig10(logs))[larger].verdict == "tie"
