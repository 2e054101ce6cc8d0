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
    item = autoencoder.tuned(logs)[0.0, 0.5]["permk"]
    assert item.step == 2**-8 and item.tried == [2**-9, 2**-8, 2**-7]
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
