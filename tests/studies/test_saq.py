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
from run.saq import fig3, measure_fig3, schemes, table2
from tests.handmade_logs import PHASES
from tests.wire import string_elias

SPEED = {"quant": 0.05, "block quant+": 0.2, "quant+": 0.5, "rand-τ+": 0.4}
INNER = {
    "quant": {"name": "qsgd", "codec": "elias"},
    "block quant+": {"name": "block-quant-plus", "steps": "root", "codec": "elias"},
    "quant+": {"name": "quant-plus", "steps": "varying", "codec": "elias"},
    "rand-τ+": {"name": "rand-tau-plus"},
}


@pytest.fixture
def make(make_log):
    """make(method, scheme, data, d, start, seed): a log whose |x^k - x*|^2 is 4 exp(-speed k)."""

    def one(method, scheme, data="a9a", d=123, start=0, seed=1, rounds=100, **more):
        inner = INNER[scheme] | {key: more[key] for key in more.keys() & {"codec"}}
        plus = method.endswith("+")
        config = {
            "problem": {"name": "logistic", "data": data, "workers": 5},
            "method": {"name": method.rstrip("+"), "stepsize": "theory"},
            "compressor": {"name": "smooth", "inner": inner} if plus else inner,
            "run": {"rounds": rounds, "seed": seed},
        }
        if more.get("ranks"):
            config["run"]["ranks"] = more["ranks"]
        k = np.arange(rounds + 1)
        columns = {f"time_{phase}": 0.0 * k for phase in PHASES} | {
            "distance_sq": 4 * np.exp(-SPEED[scheme] * k),
            "bits_up": start * 8e6 + 8e3 * k,
            "framing_bits_up": 0 * k,
            "time_compute": 0.5 * start + 1e-3 * k,
        }
        attrs = {"config": tomli_w.dumps(config), "dimension": d, "stepsize": more.get("step", 1.0)}
        how = {"seed": seed, "method": method.rstrip("+"), "attrs": attrs}
        return make_log(rounds=rounds, columns=columns, **how)

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
    sets = {"svmguide3": 22, "splice": 60, "w8a": 300}
    pairs = ("diana", "quant"), ("diana+", "block quant+")
    return [
        read(make(*pair, data, d, starts[data] * (pair is pairs[1]), seed, ranks=ranks))
        for (data, d), pair, seed, ranks in product(sets.items(), pairs, (1, 2), (None, 2))
    ]


def claims_of(name, logs):
    return list(find(f"saq-{name}")[1].claims(logs))


def test_claims_over_all_data_sets(make):
    logs = figure_4(make, {"svmguide3": 1, "splice": 0, "w8a": 0})
    result = {c.claim: c for c in claims_of("fig4", logs)}
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
    logs = figure_4(make, {"svmguide3": 0, "splice": 0, "w8a": 1})
    result = {c.claim: c for c in claims_of("fig4", logs)}
    assert result[text.format("megabytes")].verdict == "does not hold"


def test_seconds_of_two_workers_with_a_rank_each():
    """On ten seeds; runs for rounds and bits are those of quick."""
    study, figure = find("saq-fig4")
    *others, timed = figure.source.parts()
    points = timed.points(study.folder, "two")[1]
    assert {(p["problem"]["workers"], p["run"]["ranks"]) for p in points} == {(2, "workers")}
    assert {p["run"]["seed"] for p in points} == set(range(1, 11))
    for grid in others:
        two, quick = (grid.points(study.folder, scale)[1] for scale in ("two", "quick"))
        assert two == quick and len(two) > 0


def test_table_2(make):
    logs = [
        read(make(method, scheme, start=start, codec=codec, rounds=rounds))
        for method, scheme, start in (("diana", "quant", 0), ("diana+", "quant+", 0.005))
        for codec, rounds in (("elias", 100), ("e1", 100), ("entropy", 40))
    ]
    result = table2.runs(logs)
    assert len(result) == 6
    assert table2.message_bits(logs[:3]) == pytest.approx([8e3 / 5] * 3)
    sizes, sent = table2.claims(logs)
    assert sizes.verdict == "does not hold"
    assert sizes.measured == "a9a: d = 123, n = 5, m = 200, not d = 123, n = 8, m = 2,837"
    numbers = sent.evidence[0].numbers
    assert numbers["share"] == pytest.approx(0.005 / 5.005)  # in 5,000 rounds of 0.001
    assert numbers["negligible_from_round"] == pytest.approx(5 / 0.03)
    assert sent.verdict == "holds"
    late = table2._negligible("", read(make("diana+", "quant+", start=0.2)))
    assert late.verdict == "does not hold" and late.numbers["share"] < 0.04
    table2.draw(logs).draw_without_rendering()


H = np.abs(np.random.default_rng(0).standard_normal((40, 50)))


@pytest.fixture
def script(monkeypatch):
    """The module that measures, with 40 step vectors."""
    monkeypatch.setattr(measure_fig3, "STEPS", 40)
    return measure_fig3


def test_every_bit_is_the_string_coders(script):
    x = script.sparse_poisson(Streams(1), 3, 10, 0.5)
    draw = Draw(Streams(1), "up", 0, 0, 40)
    message = script.Given(H).bind(50, 40, script.PRECISION).compress(x, draw)
    form = LevelsForm(50, 40, script.PRECISION, 1 / H, script.ONE_BLOCK)
    levels, bits = message.levels, script.bits_read(message, form)
    assert bits.tolist() == [32 + len(string_elias.triples(row)) for row in levels]
    assert ((levels > 0) <= (x > 0)).all() and (levels > 0).any(axis=1).all()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(levels - unit / H).max() < 1 + 1e-4


def test_measured_drawn_and_claimed(script, tmp_path, capsys):
    script.measure(tmp_path, 2)
    assert "2 vectors" in capsys.readouterr().out
    measured = fig3.read(tmp_path)
    assert measured.inverse_norm.shape == (40,) and measured.vectors == 2
    assert measured.bits["elias"].shape == measured.support.shape == (3, 4, 40)
    assert (measured.bits["none"] < measured.bits["entropy"]).all()
    most = max(31 + log2(50) + log2(comb(50, k)) + k for k in range(51))
    assert (measured.support >= 31 + log2(50)).all() and (measured.support <= most + 1e-9).all()
    fig3.draw(measured).savefig(tmp_path / "figure.png")
    claims = list(fig3.claims(measured))
    assert [len(claim.evidence) for claim in claims] == [3 * 4, 3]
    assert claims[1].verdict == "holds"


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
    package = figure.source.module.rpartition(".")[0]
    monkeypatch.setattr(import_module(figure.source.module), "STEPS", 40)
    monkeypatch.setitem(figure.source.scales, "quick", 1)
    picture = Path("figures/saq-fig3.png")
    output = command("study", folder, "fig3")
    claims = read_claims(Path("figures/saq-fig3.claims.json"))
    assert len(claims) > 0 and f"saq-fig3: {counts(claims)}\n" in output
    assert import_module(f"{package}.fig3").read(Path("logs/saq-fig3")).vectors == 1
    picture.unlink()
    assert f"saq-fig3: {counts(claims)}\n" in command("study", "--draw", "saq-fig3")
    assert read_claims(Path("figures/saq-fig3.claims.json")) == claims
    assert picture.stat().st_size > 10_000
    line = command("study", folder, "fig3", "--scale", "huge", code=2)
    assert "--scale: unknown name 'huge'; known: paper, quick" in line
