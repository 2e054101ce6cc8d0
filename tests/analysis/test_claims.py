"""Comparisons, judged from logs whose answers are known; written, and judged again."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from mpisim.analysis import claims as api
from mpisim.analysis.claims import Claim, Evidence, Verdict, compare, judging, state
from mpisim.analysis.claims.judging import again, by_chance, interval, judged, moved_by, sensitivity
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read as read_log

HOLDS, FAILS, CROSSES, TIE, UNDECIDED = Verdict
ROUNDS, BITS = Axis("round", log=False), Axis("bits_up", log=False)


@pytest.fixture
def make(make_log):
    """make(rate, seed): |grad f(x^k)|^2 = exp(-rate k), k = 0, ..., 50, in a run of a minute."""

    def one(rate, seed=1, attrs=(), **more):
        attrs = {"seconds_elapsed": 60.0} | dict(attrs)
        return read_log(make_log(rate=rate, seed=seed, attrs=attrs, **more))

    return one


@pytest.fixture
def curve(make):
    """curve(y, seed): a log with these values of |grad f(x^k)|^2."""
    return lambda y, seed=1: make(0, seed, rounds=len(y) - 1, columns={"grad_norm_sq": y})


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([5.0], UNDECIDED),  # one seed, and two
        ([1.15, 1.2, 1.3], HOLDS),
        ([1.1, 1.2, 3.0], UNDECIDED),  # the interval of three has 1 in it
        ([1.02, 1.021, 1.022, 1.023, 1.024], TIE),  # surely above 1, and by nothing
        *(([0.99, 1.0, 1.05], TIE), ([1.0, 1.0, 1.0], TIE)),  # surely near 1
        ([0.5, 0.55, 0.6], FAILS),
        ([0.9, 1.1, 1.2, 1.3, 1.4], UNDECIDED),  # four of five on one side are chance
        ([1.1, 1.1, 1.2, 1.3, 1.4], HOLDS),
        ([2.0, np.inf, np.inf, np.inf, np.inf], HOLDS),
    ],
)
def test_the_interval_over_the_seeds_decides(ratios, verdict):
    assert api.judge(ratios, fewest=3) is verdict
    opposite = {HOLDS: FAILS, FAILS: HOLDS}.get(verdict, verdict)
    assert api.judge(tuple(1 / ratio for ratio in ratios), fewest=3) is opposite
    assert api.judge(ratios) is (verdict if len(ratios) == 5 else UNDECIDED)


def test_the_interval_is_students():
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 10):
        logs = rng.standard_normal(n)
        reference = stats.t.interval(0.95, n - 1, logs.mean(), stats.sem(logs))
        assert interval(tuple(np.exp(logs))) == pytest.approx(np.exp(reference))


def test_what_draws_nothing_needs_no_seeds():
    verdicts = [api.clear(ratio) for ratio in (1.04, 1.02, 0.98, 0.9, np.nan)]
    assert verdicts == [HOLDS, TIE, TIE, FAILS, UNDECIDED]
    assert api.judge((2.0,), exact=True) is HOLDS and api.judge((0.99,), exact=True) is TIE
    for ratio, verdict in ((1.1, HOLDS), (0.7, FAILS)):
        table = {"0.1": {"ratios": [ratio], "bounds": [0]}}
        assert judged({"by_target": table, "exact": True}, "around").verdict is verdict


def test_holds_at_the_deepest_target_that_all_reached(make):
    fast = [make(rate, seed) for seed, rate in ((1, 0.3), (2, 0.4), (3, 0.5), (9, 1.0))]
    slow = [make(0.1, seed) for seed in (3, 2, 1)]
    result = compare("there", fast, slow, ROUNDS)
    numbers, by_target = result.numbers, result.numbers["by_target"]
    # 0.01 is reached in round 47 by exp(-k / 10), which does not get to 0.001 in 50
    assert result.verdict is HOLDS and result.where == "there" and result.word == "fewer"
    assert numbers["seeds"] == [1, 2, 3] and numbers["target"] == 0.01
    exact, deepest = by_target["0.01"], by_target["1e-06"]
    assert exact["ratios"] == pytest.approx([47 / 16, 47 / 12, 47 / 10])
    assert exact["bounds"] == [0, 0, 0] and numbers["median"] == pytest.approx(47 / 12)
    assert numbers["costs"] == [[16, 47], [12, 47], [10, 47]]
    # the slow ones need more than their 50 rounds to 1e-6, which the fast reach in 47, 35, 28
    assert deepest["bounds"] == [1, 1, 1]
    assert deepest["ratios"] == pytest.approx([50 / 47, 50 / 35, 50 / 28])
    low, high = interval(tuple(exact["ratios"]))
    text = f"3.92 times (95%: {low:.3g} to {high:.3g}, 3 seeds) to 0.01 of |grad f(x^0)|^2"
    assert result.measured.startswith(text)
    assert "; > 1.43 times (" in result.measured and result.measured.endswith("to 1e-06")
    assert compare("", slow, fast, ROUNDS).verdict is FAILS


def test_a_side_is_one_setting_with_each_seed_once(make):
    fast, slow = three(make, 0.4, 0.5), three(make, 0.2, 0.25)
    assert compare("", [*fast, *fast], slow, ROUNDS) == compare("", fast, slow, ROUNDS)
    with pytest.raises(InputError, match=r"differ in method\.stepsize: theory and 0\.5"):
        compare("", fast, [*slow, make(0.1, 3, stepsize="0.5")], ROUNDS)


def three(make, *rates, **more):
    """A log of each of these rates, or three of the only one."""
    rates = rates * 3 if len(rates) == 1 else rates
    return [make(rate, seed, **more) for seed, rate in enumerate(rates, 1)]


def test_bounds_decide_alone_where_no_target_was_reached_by_all(make):
    """To 0.1 in 12 of the 50 rounds that the other needs more of, to 0.01 in 24, to 0.001 in 35."""
    result = compare("", three(make, 0.2), three(make, 0.02), ROUNDS)
    assert result.verdict is HOLDS and result.numbers["target"] == 0.1
    assert result.measured.startswith("> 4.17 times") and result.numbers["bounds"] == [1, 1, 1]
    claim = state("", "", "", [dataclasses.replace(result, where=f"set {i}") for i in range(4)])
    assert claim.measured == "4 of 4"  # no bound among the ratios


@pytest.mark.parametrize(("ratio", "bound", "verdict"), [(2.0, 1, HOLDS), (0.5, -1, FAILS)])
def test_a_bound_that_leaves_both_sides_open_decides_nothing(ratio, bound, verdict):
    """At least 0.5 may be above 1, too, and one seed of five is enough for that."""
    exact = {"ratios": [ratio] * 5, "bounds": [0] * 5}
    for bounds in ([bound] * 5, [0, 0, 0, 0, bound]):
        deeper = {"ratios": [1 / ratio] * 5, "bounds": bounds}
        both = judged({"by_target": {"0.1": exact, "0.01": deeper}}, "fewer")
        assert both.verdict is verdict and not both.crosses
        assert judged({"by_target": {"0.01": deeper}}, "fewer").verdict is UNDECIDED
    nothing = {"ratios": [0.0] * 5, "bounds": [-1] * 5}  # one side spent nothing
    assert judged({"by_target": {"0.1": nothing}}, "fewer").verdict is FAILS


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


def test_runs_of_less_than_a_minute_need_five_seeds(make):
    short = {"seconds_elapsed": 50.0, "seconds_before": 9.0}
    for seeds, attrs, verdict in ((3, short, UNDECIDED), (5, short, HOLDS), (3, {}, HOLDS)):
        sides = [three(make, *[rate] * seeds, attrs=attrs) for rate in (0.4, 0.2)]
        result = compare("", *sides, ROUNDS)
        assert result.verdict is verdict and result.numbers["fewest"] == (3 if not attrs else 5)
        assert len(result.numbers["runs"]) == 2 * seeds
        sides[0][0].attrs["seconds_elapsed"] = 5000.0  # a pause of one run changes nothing
        assert compare("", *sides, ROUNDS).numbers["fewest"] == result.numbers["fewest"]


def test_the_words_of_papers_have_numbers(make):
    for word, holds, fails in (
        *(("fewer", [1.3], []), ("significantly", [1.6], [1.3])),
        *(("much", [3.0], [0.5, 1.6]), ("around", [0.9, 1.2], [2.0])),
    ):
        verdicts = {r: api.of_seeds("", [r] * 3, word, 3).verdict for r in (*holds, *fails)}
        assert verdicts == dict.fromkeys(holds, HOLDS) | dict.fromkeys(fails, FAILS)
    sides = three(make, 0.13), three(make, 0.1)
    assert compare("", *sides, ROUNDS, targets=(0.1,), word="significantly").verdict is FAILS


def test_an_edge_of_the_grid_decides_nothing(make):
    result = compare("", three(make, 0.4), three(make, 0.2), ROUNDS)
    assert api.undecided_at_edge(result, ["", ""]) == result
    edge = api.undecided_at_edge(result, ["", "DIANA: 8 is the largest step"])
    text = "edge of the grid (DIANA: 8 is the largest step): with these 1.9"
    assert edge.verdict is UNDECIDED and edge.measured.startswith(text)
    assert edge != result and again(edge) == edge and again(result) == result


def test_row_0_and_framing_stand_beside(make):
    """The first message is 40 of the bits of one side, and its framing as much as its payload."""
    k = np.arange(51)
    plain = {"bits_up": 5.0 * k, "framing_bits_up": 0.0 * k}
    dear = {"bits_up": 5.0 * (k + 40), "framing_bits_up": 5.0 * k}
    sides = three(make, 0.4, columns=dear), three(make, 0.2, columns=plain)
    result = compare("", *sides, BITS, targets=(0.1,))
    assert result.verdict is FAILS and result.measured.endswith("; without row 0: holds")
    assert result.numbers["by_target"]["0.1"]["ratios"] == pytest.approx([12 / 46] * 3)
    others = result.numbers["other_costs"]
    assert others["row 0"]["0.1"]["ratios"] == [2.0] * 3
    assert others["framing"]["0.1"]["ratios"] == pytest.approx([12 / 52] * 3)
    rounds = compare("", *sides, ROUNDS, targets=(0.1,))
    both = judging.with_costs(result, "framing", rounds).numbers["other_costs"]
    assert both == others | {"framing": rounds.numbers["by_target"]}
    claim = state("", "they say", "", [result])
    assert moved_by(claim) == ["without row 0"] and api.firmness([claim]) == "0 of 1 firm"
    assert sensitivity([claim, claim])["without row 0"] == (2, 0)


def test_a_firm_verdict_and_what_moves_others(make, crossing):
    clear = compare("", three(make, 0.4), three(make, 0.2), ROUNDS)
    small = compare("", three(make, 0.2), three(make, 0.19), ROUNDS, targets=(1e-4,))
    assert small.verdict is HOLDS and 1.03 < small.numbers["median"] < 1.1
    crosses = compare("", *crossing, ROUNDS)
    claims = [state("", "they say", "", [one]) for one in (clear, small, crosses)]
    assert moved_by(claims[0]) == [] and "10% from 1" in moved_by(claims[1])
    targets = ["the first target", "the middle target", "the deepest target alone"]
    assert moved_by(claims[2]) == targets
    assert api.firmness(claims) == "1 of 3 firm" and len(api.comparisons(claims)) == 3
    mixed = compare("", three(make, 0.2, 0.4, 0.3), three(make, 0.4, 0.2, 0.3), ROUNDS)
    claims.append(state("", "they say", "", [mixed]))
    assert claims[-1].verdict is UNDECIDED and api.firmness(claims) == "1 of 3 firm"
    assert sensitivity(claims)["the first target"] == (1, 0)
    message = state("", "they say", "", [Evidence("", "", HOLDS)])
    assert moved_by(message) is None and api.firmness([message]) == ""


def test_not_decided(make):
    """Nobody got to the first target; no seed has both; seconds of ranks that took turns."""
    result = compare("", three(make, 0.04), three(make, 0.02), ROUNDS)
    assert result.verdict is UNDECIDED and "got to 0.1 of |grad f(x^0)|^2" in result.measured
    assert compare("", [make(0.2, 1)], [make(0.1, 2)], ROUNDS).verdict is UNDECIDED
    result = compare("", [make(0.2, 1)], [make(0.1, 1)], ROUNDS)
    assert result.measured.endswith("(1 seed) to 0.0001")
    fast = three(make, 0.4)
    for attrs in ({"oversubscribed": 1}, {"side_by_side": 2}, {"resumed_elsewhere": 1}):
        logs = three(make, 0.1, attrs=attrs)
        for axis in ("seconds", "time_encode"):
            result = compare("", fast, logs, Axis(axis, log=False))
            assert result.verdict is UNDECIDED
            assert "runs side by side, or a resume elsewhere" in result.measured
        assert compare("", fast, logs, BITS).verdict is HOLDS


def test_a_lower_bound_must_be_the_larger_cost(make):
    """The fast run's bits to 0.1 are more than all that the other one sent in its short run."""
    sides = [make(0.2, columns={"bits_up": 5 * 1e6 * np.arange(51)})], [make(0.04)]
    assert compare("", *sides, ROUNDS, exact=True).verdict is HOLDS
    assert compare("", *sides, BITS, exact=True).verdict is UNDECIDED


def test_a_noise_floor_is_judged_above(curve):
    """Below its floor an oscillating method dips to a target by chance: it decides nothing."""
    k, rng = np.arange(201), np.random.default_rng(1)
    noisy = curve(np.maximum(np.exp(-0.2 * k), 2e-3 * np.exp(1.5 * rng.standard_normal(201))))
    falling = curve(np.exp(-0.1 * k))
    plateau = curve(np.maximum(np.exp(-0.2 * k), 2e-3))
    floors = [api.Reach(log, ROUNDS, GRADIENT).floor for log in (noisy, falling, plateau)]
    assert 2e-3 < floors[0] < 5e-2 and floors[1:] == [0, 0]
    assert noisy.column("grad_norm_sq").min() < 1e-3  # a dip below the floor
    result = compare("", [noisy], [falling], ROUNDS, exact=True)
    assert result.numbers["target"] == 0.1 and result.verdict is HOLDS


def test_targets_are_shares_of_the_start_of_each_seed(curve):
    """Also where a seed begins below what is a tenth of another's start; not below rounding."""
    k, starts = np.arange(41), {1: 1.0, 2: 0.05, 3: 20.0}

    def targets(*rates):
        sides = [[curve(y * np.exp(-r * k), seed) for seed, y in starts.items()] for r in rates]
        return compare("", *sides, ROUNDS).numbers["by_target"]

    assert targets(0.4, 0.2)["0.1"]["ratios"] == [2, 2, 2]
    assert min(map(float, targets(4, 2))) == 1e-27


def test_chance_decides_one_in_20_and_one_in_12_of_second_looks():
    ratios = range(1, 6), range(1, 11), (2, 3, 4), (5,)
    claims = [state("", "", "", [api.of_seeds("", some, "fewer", 5) for some in ratios])]
    several = api.comparisons(claims)
    assert len(several) == 4 and by_chance(several) == pytest.approx(1 / 20 + 1 / 12)


def test_a_value_at_a_cost_is_the_median_of_the_last_tenth(curve):
    log = curve(np.r_[np.full(80, 2.0), np.full(10, 5.0), np.arange(1.0, 11.0)])
    assert [api.value_at(log, GRADIENT, ROUNDS, k) for k in (99, 50)] == [5.5, 2.0]
    assert np.isnan(api.value_at(log, GRADIENT, ROUNDS, 0))  # row 0 alone


def test_json_and_back(tmp_path, make):
    """A claim that is read is judged again, by the rules of today."""
    result = compare("x", three(make, 0.2), three(make, 0.1), ROUNDS)
    claims = [state("yes", "we see", "a", [result])]
    claims += [Claim(f"{v} it", "", "b", "0.5 times", v) for v in Verdict]
    mixed = state("a", "they say", "there", [result, Evidence("", "", TIE)])
    assert mixed.verdict is FAILS  # by the tie
    old = dataclasses.replace(mixed, verdict=TIE)
    path = api.write(tmp_path / "paper-x.claims.json", [*claims, old])
    content = json.loads(path.read_text())
    assert [claim["verdict"] for claim in content[:6]] == ["holds", *map(str, Verdict)]
    stored = api.read(path)
    assert stored == [*claims, old] and api.claim_again(stored[-1]) == mixed
    counts = "1 holds, 1 does not hold, 1 crosses, 1 tie, 1 not decided"
    text = api.table("x", claims)
    assert text.startswith(f'x: 1 holds; of this project {counts}\n\na: "we see"\n  holds')
    assert "  does not hold  does not hold it: 0.5 times" in text
