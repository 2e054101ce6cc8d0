"""Claims: judged from logs whose answers are known, written, read and printed."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Reach,
    Verdict,
    claim_again,
    clear,
    compare,
    comparisons,
    every,
    firmness,
    growing,
    judge,
    larger_half,
    most,
    overview,
    read,
    state,
    table,
    undecided_at_edge,
    value_at,
    write,
)
from mpisim.analysis.claims.judging import interval, moved_by, sensitivity
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.cli import main
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read as read_log

HOLDS, FAILS, CROSSES, TIE, UNDECIDED = Verdict
ROUNDS, BITS = Axis("round", log=False), Axis("bits_up", log=False)
SECONDS = Axis("seconds", log=False)
OLD = '[{"claim": "a", "source": "b", "measured": "c", "holds": true, "details": {}}]'
TEXTS = '"claim": "a", "quote": "", "source": "b", "measured": "c"'
WORD = f'[{{{TEXTS}, "verdict": "yes", "evidence": []}}]'
NUMBER = WORD.replace('"c"', "3").replace("yes", "holds")


@pytest.fixture
def make(make_log):
    """make(rate, seed): a log with |grad f(x^k)|^2 = exp(-rate k), k = 0, ..., 50.

    Its run took a minute, so three seeds are enough.
    """

    def one(rate, seed=1, attrs=(), **more):
        attrs = {"seconds_elapsed": 60.0} | dict(attrs)
        return read_log(make_log(rate=rate, seed=seed, attrs=attrs, **more))

    return one


@pytest.fixture
def curve(make):
    """curve(y, seed): a log with these values of |grad f(x^k)|^2."""

    def one(y, seed=1):
        return make(0, seed, rounds=len(y) - 1, columns={"grad_norm_sq": np.asarray(y)})

    return one


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([5.0], UNDECIDED),  # one seed, and two
        ([5.0, 5.0], UNDECIDED),
        ([1.15, 1.2, 1.3], HOLDS),
        ([1.1, 1.2, 3.0], UNDECIDED),  # the interval of three has 1 in it
        ([1.02, 1.021, 1.022, 1.023, 1.024], TIE),  # surely above 1, and by nothing
        ([0.99, 1.0, 1.05], TIE),  # surely near 1
        ([1.0, 1.0, 1.0], TIE),
        ([0.5, 0.55, 0.6], FAILS),
        ([0.9, 1.1, 1.2, 1.3, 1.4], UNDECIDED),  # four of five on one side are chance
        ([1.1, 1.1, 1.2, 1.3, 1.4], HOLDS),
        ([2.0, np.inf, np.inf, np.inf, np.inf], HOLDS),
    ],
)
def test_the_interval_over_the_seeds_decides(ratios, verdict):
    assert judge(ratios, fewest=3) is verdict
    opposite = {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, verdict)
    assert judge([1 / ratio if ratio else np.inf for ratio in ratios], fewest=3) is opposite
    assert judge(ratios) is (verdict if len(ratios) == 5 else UNDECIDED)


def test_the_interval_is_students():
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 10):
        logs = rng.standard_normal(n)
        reference = stats.t.interval(0.95, n - 1, logs.mean(), stats.sem(logs))
        assert interval(np.exp(logs)) == pytest.approx(np.exp(reference))


def test_what_draws_nothing_needs_no_seeds():
    assert [clear(ratio) for ratio in (1.04, 1.02, 0.98, 0.9)] == [HOLDS, TIE, TIE, FAILS]
    assert clear(float("nan")) is UNDECIDED
    assert judge([2.0], exact=True) is HOLDS and judge([0.99], exact=True) is TIE


def test_holds_at_the_deepest_target_that_all_reached(make):
    fast = [make(rate, seed) for seed, rate in ((1, 0.3), (2, 0.4), (3, 0.5), (9, 1.0))]
    slow = [make(0.1, seed) for seed in (3, 2, 1)]
    result = compare("there", fast, slow, ROUNDS)
    # 0.01 is reached in round 47 by exp(-k / 10), which does not get to 0.001 in 50
    assert result.verdict is HOLDS and result.where == "there" and result.word == "fewer"
    assert result.numbers["seeds"] == [1, 2, 3] and result.numbers["target"] == 0.01
    exact = result.numbers["by_target"]["0.01"]
    assert exact["ratios"] == pytest.approx([47 / 16, 47 / 12, 47 / 10])
    assert exact["bounds"] == [0, 0, 0] and result.numbers["median"] == pytest.approx(47 / 12)
    assert result.numbers["costs"] == [[16, 47], [12, 47], [10, 47]]
    # the slow ones need more than their 50 rounds to 1e-6, which the fast reach in 47, 35, 28
    deepest = result.numbers["by_target"]["1e-06"]
    assert deepest["bounds"] == [1, 1, 1]
    assert deepest["ratios"] == pytest.approx([50 / 47, 50 / 35, 50 / 28])
    text = "3.92 times (95%: 2.14 to 6.69, 3 seeds) to 0.01 of |grad f(x^0)|^2"
    low, high = interval(exact["ratios"])
    assert result.measured.startswith(
        text.replace("2.14", f"{low:.3g}").replace("6.69", f"{high:.3g}")
    )
    assert "; > 1.43 times (" in result.measured and result.measured.endswith("to 1e-06")
    assert compare("", slow, fast, ROUNDS).verdict is FAILS


def test_a_side_is_one_setting_with_each_seed_once(make):
    fast, slow = [make(0.4, 1), make(0.5, 2)], [make(0.2, 1), make(0.25, 2)]
    full = compare("", fast, slow, ROUNDS)
    assert compare("", [*fast, *fast], [*slow, slow[0]], ROUNDS) == full
    mixed = [*slow, make(0.1, 3, stepsize="0.5")]
    for sides in ((fast, mixed), (mixed, fast)):
        with pytest.raises(InputError, match=r"differ in method\.stepsize: theory and 0\.5"):
            compare("", *sides, ROUNDS)
    result = compare("", fast, mixed, ROUNDS, over=("method.stepsize",))
    assert result.numbers["seeds"] == [1, 2]


def three(make, *rates, **more):
    return [make(rate, seed, **more) for seed, rate in enumerate(rates, 1)]


def test_bounds_decide_alone_where_no_target_was_reached_by_all(make):
    """To 0.1 in 12 of the 50 rounds that the other needs more of, to 0.01 in 24, to 0.001 in 35."""
    result = compare("", three(make, 0.2, 0.2, 0.2), three(make, 0.02, 0.02, 0.02), ROUNDS)
    assert result.verdict is HOLDS and result.numbers["target"] == 0.1
    assert result.measured.startswith("> 4.17 times") and result.numbers["bounds"] == [1, 1, 1]
    claim = state("", "", "", [dataclasses.replace(result, where=f"set {i}") for i in range(4)])
    assert claim.measured == "4 of 4"  # no bound among the ratios


@pytest.fixture
def crossing(curve):
    """Two sides: to 0.1 the second needs twice the rounds, to 0.01 half of them."""
    k = np.arange(81)
    one = np.where(k < 10, 1.0, np.where(k < 60, 0.09, 0.009))
    other = np.where(k < 20, 1.0, np.where(k < 30, 0.09, 0.009))
    return [[curve(y, seed) for seed in (1, 2, 3)] for y in (one, other)]


def test_a_crossing_neither_holds_nor_ties(crossing):
    for sides in (crossing, crossing[::-1]):
        result = compare("", *sides, ROUNDS)
        assert result.verdict is CROSSES and result.measured.endswith("; crosses at 0.01")
        assert state("", "they say", "", [result]).verdict is CROSSES
    assert result.numbers["by_target"]["0.1"]["ratios"] == [0.5] * 3


def cut(log, rows):
    return dataclasses.replace(log, columns={k: v[:rows] for k, v in log.columns.items()})


def test_runs_of_less_than_a_minute_need_five_seeds(make):
    short = {"seconds_elapsed": 50.0, "seconds_before": 9.0}
    for seeds, attrs, verdict in ((3, short, UNDECIDED), (5, short, HOLDS), (3, {}, HOLDS)):
        sides = [three(make, *[rate] * seeds, attrs=attrs) for rate in (0.4, 0.2)]
        result = compare("", *sides, ROUNDS)
        assert result.verdict is verdict and result.numbers["fewest"] == (3 if not attrs else 5)
        assert len(result.numbers["runs"]) == 2 * seeds


def test_the_words_of_papers_have_numbers(make):
    def verdicts(rate, word):
        sides = three(make, rate, rate, rate), three(make, 0.1, 0.1, 0.1)
        return compare("", *sides, ROUNDS, targets=(0.1,), word=word).verdict

    assert [verdicts(0.13, word) for word in ("fewer", "significantly")] == [HOLDS, FAILS]
    assert [verdicts(0.16, word) for word in ("significantly", "much")] == [HOLDS, FAILS]
    assert verdicts(0.3, "much") is HOLDS and verdicts(0.05, "much") is FAILS
    assert [verdicts(rate, "around") for rate in (0.09, 0.12, 0.2)] == [HOLDS, HOLDS, FAILS]


def test_an_edge_of_the_grid_decides_nothing(make):
    result = compare("", three(make, 0.4, 0.4, 0.4), three(make, 0.2, 0.2, 0.2), ROUNDS)
    assert undecided_at_edge(result, ["", ""]) == result
    edge = undecided_at_edge(result, ["", "DIANA: 8 is the largest step"])
    assert edge.verdict is UNDECIDED
    assert edge.measured.startswith(
        "edge of the grid (DIANA: 8 is the largest step): with these 1.9"
    )


def test_row_0_and_framing_stand_beside(make):
    """The first message is 40 of the bits of one side, and its framing as much as its payload."""
    k = np.arange(51)
    plain = {"bits_up": 5.0 * k, "framing_bits_up": 0.0 * k}
    dear = {"bits_up": 5.0 * (k + 40), "framing_bits_up": 5.0 * k}
    sides = three(make, 0.4, 0.4, 0.4, columns=dear), three(make, 0.2, 0.2, 0.2, columns=plain)
    result = compare("", *sides, BITS, targets=(0.1,))
    assert result.verdict is FAILS and result.measured.endswith("; without row 0: holds")
    assert result.numbers["by_target"]["0.1"]["ratios"] == pytest.approx([12 / 46] * 3)
    others = result.numbers["other_costs"]
    assert others["row 0"]["0.1"]["ratios"] == [2.0] * 3
    assert others["framing"]["0.1"]["ratios"] == pytest.approx([12 / 52] * 3)
    claim = state("", "they say", "", [result])
    assert moved_by(claim) == ["without row 0"] and firmness([claim]) == "0 of 1 firm"
    assert sensitivity([claim, claim])["without row 0"] == (2, 0)


def test_a_firm_verdict_and_what_moves_others(make, crossing):
    clear_one = compare("", three(make, 0.4, 0.4, 0.4), three(make, 0.2, 0.2, 0.2), ROUNDS)
    small = compare(
        "", three(make, 0.2, 0.2, 0.2), three(make, 0.19, 0.19, 0.19), ROUNDS, targets=(1e-4,)
    )
    assert small.verdict is HOLDS and 1.03 < small.numbers["median"] < 1.1
    crosses = compare("", *crossing, ROUNDS)
    claims = [state("", "they say", "", [one]) for one in (clear_one, small, crosses)]
    assert moved_by(claims[0]) == [] and "10% from 1" in moved_by(claims[1])
    assert moved_by(claims[2]) == [
        "the first target",
        "the middle target",
        "the deepest target alone",
    ]
    assert firmness(claims) == "1 of 3 firm" and comparisons(claims) == 3
    open_ = compare("", three(make, 0.2, 0.4, 0.3), three(make, 0.4, 0.2, 0.3), ROUNDS)
    undecided = state("", "they say", "", [open_])
    assert (
        undecided.verdict is Verdict.UNDECIDED and firmness([*claims, undecided]) == "1 of 3 firm"
    )
    assert sensitivity([*claims, undecided])["the first target"] == (1, 0)
    message = state("", "they say", "", [Evidence("", "", HOLDS)])
    assert moved_by(message) is None and firmness([message]) == ""


def test_what_is_on_record_is_judged_again(make, tmp_path):
    """The same from its JSON; and by the rules of today where the file says otherwise."""
    result = compare("", three(make, 0.4, 0.4, 0.4), three(make, 0.2, 0.2, 0.2), ROUNDS)
    claim = state("a", "they say", "there", [result, Evidence("", "", TIE)])
    assert claim.verdict is FAILS  # by the tie
    old = dataclasses.replace(claim, verdict=TIE)
    [stored] = read(write(tmp_path / "x.claims.json", [old]))
    assert stored == old and claim_again(stored) == claim == claim_again(claim)


def test_not_decided(make):
    """Nobody got to the first target; no seed has both; seconds of ranks that took turns."""
    slow, slower = three(make, *[0.04] * 3), three(make, *[0.02] * 3)
    result = compare("", slow, slower, ROUNDS)
    assert result.verdict is UNDECIDED and "got to 0.1 of |grad f(x^0)|^2" in result.measured
    assert compare("", [make(0.2, 1)], [make(0.1, 2)], ROUNDS).verdict is UNDECIDED
    assert compare("", [make(0.2, 1)], [make(0.1, 1)], ROUNDS).measured.endswith(
        "(1 seed) to 0.0001"
    )
    few, beside = (
        three(make, *[0.1] * 3, attrs=a) for a in ({"oversubscribed": 1}, {"side_by_side": 2})
    )
    fast = three(make, *[0.4] * 3)
    for axis in (SECONDS, Axis("time_encode", log=False)):
        for logs in (few, beside):
            result = compare("", fast, logs, axis)
            assert result.verdict is UNDECIDED
            assert result.measured == "more ranks than cores, or runs side by side"
    for axis in (ROUNDS, BITS):
        assert compare("", fast, few, axis).verdict is HOLDS


def test_a_lower_bound_must_be_the_larger_cost(make):
    """The fast run's bits to 0.1 are more than all that the other one sent in its short run."""
    dear = make(0.2, columns={"bits_up": 5 * 1e6 * np.arange(51)})
    cut = make(0.04)
    assert compare("", [dear], [cut], ROUNDS, exact=True).verdict is HOLDS
    assert compare("", [dear], [cut], BITS, exact=True).verdict is UNDECIDED


def test_a_noise_floor_is_judged_above(curve):
    """Below its floor an oscillating method dips to a target by chance: it decides nothing."""
    k, rng = np.arange(201), np.random.default_rng(1)
    noisy = curve(np.maximum(np.exp(-0.2 * k), 2e-3 * np.exp(1.5 * rng.standard_normal(201))))
    falling = curve(np.exp(-0.1 * k))
    floor = Reach(noisy, ROUNDS, GRADIENT).floor
    assert 2e-3 < floor < 5e-2
    assert Reach(falling, ROUNDS, GRADIENT).floor == 0
    assert noisy.column("grad_norm_sq").min() < 1e-3  # the old rule's level is below 1e-3
    result = compare("", [noisy], [falling], ROUNDS, exact=True)
    assert result.numbers["target"] == 0.1 and result.verdict is HOLDS
    plateau = curve(np.maximum(np.exp(-0.2 * k), 2e-3))
    assert Reach(plateau, ROUNDS, GRADIENT).floor == 0


def some(*verdicts):
    return [
        Evidence(f"set {i}", "1.2 times", verdict, {"median": 1 + i})
        for i, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("rule", "verdicts", "verdict"),
    [
        (every, [HOLDS, HOLDS], HOLDS),
        (every, [HOLDS, UNDECIDED, FAILS], FAILS),
        (every, [HOLDS, UNDECIDED, TIE], FAILS),
        (every, [HOLDS, TIE], FAILS),
        (every, [HOLDS, UNDECIDED, CROSSES], CROSSES),
        (every, [HOLDS, UNDECIDED], UNDECIDED),
        (every, [], UNDECIDED),
        (most, [HOLDS, HOLDS, FAILS], HOLDS),
        (most, [HOLDS, FAILS], FAILS),
        (most, [HOLDS, UNDECIDED, FAILS], UNDECIDED),
        (most, [HOLDS, TIE, FAILS], FAILS),
        (most, [], UNDECIDED),
    ],
)
def test_several_data_sets_are_one_claim(rule, verdicts, verdict):
    claim = state("a", "they say", "there", some(*verdicts), rule)
    assert claim.verdict is verdict and len(claim.evidence) == len(verdicts)


def test_when_d_is_larger():
    result = larger_half(some(FAILS, FAILS, FAILS, HOLDS, HOLDS))
    assert [one.counts for one in result] == [False] * 3 + [True] * 2
    claim = state("a", "when d is larger", "there", result)
    assert claim.verdict is HOLDS and "set 2 (aside): 1.2 times" in claim.measured
    assert [one.counts for one in larger_half(some(HOLDS))] == [True]
    claim = state("a", "", "there", some(*[HOLDS] * 10, TIE, FAILS))
    assert claim.measured == "10 of 12, 1 to 12 times; does not hold: set 11 (12); tie: set 10 (11)"


def test_an_order():
    assert growing([1, 2, 3]) is HOLDS and growing([1, 3, 2]) is FAILS
    assert growing([1, 1.01, 3]) is TIE and growing([1]) is UNDECIDED
    assert growing([1, float("nan")]) is UNDECIDED


def test_a_value_at_a_cost_is_the_median_of_the_last_tenth(curve):
    log = curve([*np.full(80, 2.0), *np.full(10, 5.0), *np.arange(1.0, 11.0)])
    assert value_at(log, GRADIENT, ROUNDS, 99) == 5.5
    assert value_at(log, GRADIENT, ROUNDS, 50) == 2.0
    assert np.isnan(value_at(log, GRADIENT, ROUNDS, 0))  # row 0 alone


def test_json_and_back(tmp_path, make):
    sides = three(make, 0.2, 0.2, 0.2), three(make, 0.1, 0.1, 0.1)
    measured = state("yes", "we see", "a", [compare("x", *sides, ROUNDS)])
    others = [Claim(f"{v} it", "", "b", "0.5 times", v) for v in Verdict]
    claims = [measured, *others]
    path = write(tmp_path / "figures" / "paper-x.claims.json", claims)
    content = json.loads(path.read_text())
    assert [claim["verdict"] for claim in content] == ["holds", *map(str, Verdict)]
    assert content[0]["evidence"][0]["numbers"]["seeds"] == [1, 2, 3]
    assert read(path) == claims
    text = table("x", claims)
    assert text.startswith(
        "x: 1 holds; of this project 1 holds, 1 does not hold, 1 crosses, 1 tie, 1 not decided"
        '\n\na: "we see"\n  holds'
    )
    assert "  does not hold  does not hold it: 0.5 times" in text
    both = state("both", "", "", some(HOLDS, TIE))
    assert both.measured == "set 0: 1.2 times; set 1: 1.2 times"
    assert "                 - set 1: tie: 1.2 times" in table("x", [both]).splitlines()


@pytest.mark.parametrize(
    "content", ["", "{}1", "3", '[{"claim": "alone"}]', '["text"]', OLD, WORD, NUMBER]
)
def test_what_is_no_list_of_claims(tmp_path, content):
    path = tmp_path / "x.claims.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.claims\.json: not a list of .*draw the figure again"):
        read(path)


def test_the_command_counts_study_by_study(tmp_path, capsys):
    one = Claim("a | b", "they say", "there", "2 times", TIE)
    write(tmp_path / "first-fig1.claims.json", [one, dataclasses.replace(one, verdict=HOLDS)])
    write(tmp_path / "first-fig2.claims.json", [dataclasses.replace(one, verdict=UNDECIDED)])
    write(tmp_path / "second-fig1.claims.json", [dataclasses.replace(one, verdict=FAILS)])
    assert main(["study", "--claims", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "first: 1 holds, 1 tie, 1 not decided",
        "  tie            fig1  a | b: 2 times",
        "  holds          fig1  a | b: 2 times",
        "  not decided    fig2  a | b: 2 times",
        "",
        "second: 1 does not hold",
        "  does not hold  fig1  a | b: 2 times",
    ]
    assert main(["study", "--claims", str(tmp_path), "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "| study | hold | do not hold | cross | ties | not decided | firm |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| first | 1 | 0 | 0 | 1 | 1 |  |",
    ]
    assert main(["study", "--claims", str(tmp_path), "--sensitivity"]) == 0
    assert "0 comparisons, of which chance alone would decide 0" in capsys.readouterr().out
    assert '| fig1 | "they say" (there) | a \\| b | tie | 2 times |' in lines
    assert overview({}) == ""
