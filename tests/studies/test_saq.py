"""SAQ's Figures 3 to 8 and Table 2, from logs made by hand and the string coder."""

from importlib import import_module
from itertools import product
from math import comb, log2
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from mpisim.analysis.claims import counts
from mpisim.analysis.claims import read as read_claims
from mpisim.analysis.study import find
from mpisim.core.rng import Draw, Streams
from mpisim.runs.log.reader import read
from mpisim.wire.levels import LevelsForm
from run.saq import fig3, measure_fig3, schemes
from tests.handmade_logs import PHASES
from tests.wire import string_elias

SPEED = {"quant": 0.05, "block quant+": 0.2}
QSGD = {"name": "qsgd", "codec": "elias"}
BLOCKS = {"name": "block-quant-plus", "steps": "root", "codec": "elias"}


@pytest.fixture
def make(make_log):
    """make(method, scheme, data, d, start): a log whose |x^k - x*|^2 is 4 exp(-speed k)."""

    def one(method, scheme, data="a9a", d=123, start=0, ranks=(), step=1.0):
        kind = method.rstrip("+")
        config = {
            "problem": {"name": "logistic", "data": data, "workers": 5},
            "method": {"name": kind, "stepsize": "theory"},
            "compressor": QSGD if kind == method else {"name": "smooth", "inner": BLOCKS},
            "run": {"rounds": 100, "seed": 1} | dict(ranks),
        }
        k = np.arange(101)
        columns = {f"time_{phase}": 0.0 * k for phase in PHASES}
        columns |= {"distance_sq": 4 * np.exp(-SPEED[scheme] * k), "framing_bits_up": 0 * k}
        columns |= {"bits_up": start * 8e6 + 8e3 * k, "time_compute": 0.5 * start + 1e-3 * k}
        attrs = {"config": tomli_w.dumps(config), "dimension": d, "stepsize": step}
        return make_log(kind, rounds=100, columns=columns, attrs=attrs)

    return one


def test_break_even_by_hand(make):
    """R rounds of DIANA cost as much as 0.03 MB and R / 4 rounds: R = 40."""
    plus = read(make("diana+", "block quant+", start=0.03, step=4.0))
    rival = read(make("diana", "quant"))
    result = schemes.break_even([plus], [rival], schemes.BYTES)
    assert result.predicted.round == pytest.approx(40)
    assert result.predicted.level == pytest.approx(np.exp(-2))
    assert result.measured == schemes.Place(40, pytest.approx(np.exp(-2)))
    assert result.cost == pytest.approx(0.04)
    assert str(result) == "break-even at 0.135, round 40\npredicted at 0.135, round 40"
    assert schemes.break_even([plus], [], schemes.BYTES) is None


def figure_4(make, starts):
    """Claims by their text, of logs in which DIANA+ starts with so many megabytes."""
    sets = {"svmguide3": 22, "splice": 60, "w8a": 300}
    pairs = ("diana", "quant"), ("diana+", "block quant+")
    logs = [
        read(make(*pair, data, d, starts[data] * (pair is pairs[1]), ranks=ranks))
        for (data, d), pair, ranks in product(sets.items(), pairs, ({}, {"ranks": 2}))
    ]
    return {claim.claim: claim for claim in find("saq-fig4")[1].claims(logs)}


def test_claims_over_all_data_sets(make):
    result = figure_4(make, {"svmguide3": 1, "splice": 0, "w8a": 0})
    text = "DIANA+ (block quant+) needs fewer {} than DIANA (quant) when d is larger"
    assert len(result) == 2 * 3 + 1 and "when d is larger" in result[text.format("rounds")].quote
    sent = result[text.format("megabytes")]
    assert sent.verdict == "holds"
    small, *_ = sent.evidence
    assert small.where == "svmguide3 (d = 22)" and not small.counts
    assert small.verdict == "does not hold"
    assert result[text.format("seconds")].evidence[0].where == "svmguide3 (d = 22, n = 5)"
    assert [one.counts for one in result[text.format("rounds")].evidence] == [False, False, True]
    gone = result["DCGD+ (block quant+) needs fewer rounds than DCGD (quant) when d is larger"]
    assert gone.verdict == "not decided"
    result = figure_4(make, {"svmguide3": 0, "splice": 0, "w8a": 1})
    assert result[text.format("megabytes")].verdict == "does not hold"


H = np.abs(np.random.default_rng(0).standard_normal((40, 50)))


def test_every_bit_is_the_string_coders(monkeypatch):
    script = measure_fig3
    monkeypatch.setattr(script, "STEPS", 40)
    x = script.sparse_poisson(Streams(1), 3, 10, 0.5)
    draw = Draw(Streams(1), "up", 0, 0, 40)
    message = script.Given(H).bind(50, 40, script.PRECISION).compress(x, draw)
    form = LevelsForm(50, 40, script.PRECISION, 1 / H, script.ONE_BLOCK)
    levels, bits = message.levels, script.bits_read(message, form)
    assert bits.tolist() == [32 + len(string_elias.triples(row)) for row in levels]
    assert ((levels > 0) <= (x > 0)).all() and (levels > 0).any(axis=1).all()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(levels - unit / H).max() < 1 + 1e-4


def test_claims_that_do_not_hold():
    norm, rng = np.linspace(10, 1000, 500), np.random.default_rng(0)
    shape = (3, 4, 500)
    bits = {code: np.broadcast_to(50 + norm, shape) for code in fig3.CODES}
    support = np.full(shape, 49.0)
    growing = fig3.claims(fig3.Measured(norm, bits, support, 1))
    assert [claim.verdict for claim in growing] == ["holds", "holds"]
    falling = bits | {"elias": np.broadcast_to(2000 - norm, shape)}
    noise = bits | {"elias": rng.random(shape)}
    for other in (falling, noise):
        claim, _ = fig3.claims(fig3.Measured(norm, other, support, 1))
        assert {one.verdict for one in claim.evidence} == {"does not hold"}
    _, claim = fig3.claims(fig3.Measured(norm, bits, support - 3, 1))
    assert {one.verdict for one in claim.evidence} == {"does not hold"}


def test_from_the_command_to_the_picture(monkeypatch, tmp_path, command):
    """`mpisim study` measures where there is no grid; `mpisim study --draw` draws what it left."""
    study, figure = find("saq-fig3")
    folder = study.folder.resolve()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_module(figure.source.module), "STEPS", 40)
    monkeypatch.setitem(figure.source.scales, "quick", 2)
    picture = Path("figures/saq-fig3.png")
    output = command("study", folder, "fig3")
    claims = read_claims(Path("figures/saq-fig3.claims.json"))
    assert f"saq-fig3: {counts(claims)}\n" in output and claims[1].verdict == "holds"
    assert [len(claim.evidence) for claim in claims] == [3 * 4, 3]
    measured = fig3.read(Path("logs/saq-fig3"))
    assert measured.inverse_norm.shape == (40,) and measured.vectors == 2
    assert measured.bits["elias"].shape == measured.support.shape == (3, 4, 40)
    assert (measured.bits["none"] < measured.bits["entropy"]).all()
    most = max(31 + log2(50) + log2(comb(50, k)) + k for k in range(51))
    assert (measured.support >= 31 + log2(50)).all() and (measured.support <= most + 1e-9).all()
    picture.unlink()
    assert f"saq-fig3: {counts(claims)}\n" in command("study", "--draw", "saq-fig3")
    assert read_claims(Path("figures/saq-fig3.claims.json")) == claims
    assert picture.stat().st_size > 10_000
    line = command("study", folder, "fig3", "--scale", "huge", code=2)
    assert "--scale: unknown name 'huge'; known: paper, quick" in line
