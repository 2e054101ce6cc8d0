"""Claims: measured in logs whose answers are known, written, read and printed."""

import json

import numpy as np
import pytest

from mpisim.analysis.claims import Claim, common_level, fewer, needed, ordered, read, table, write
from mpisim.analysis.curves import Axis
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read as read_log

WORD = '[{"claim": "a", "source": "b", "measured": "c", "holds": "False"}]'
ROUNDS, BITS = Axis("round", log=False), Axis("bits_up", log=False)


@pytest.fixture
def make(make_log):
    """make(rate, seed): a log with |grad f(x^k)|^2 = exp(-rate k), k = 0, ..., 50."""
    return lambda rate, seed=1, **more: read_log(make_log(rate=rate, seed=seed, **more))


def test_the_common_level_is_the_worst_of_the_best(make):
    bumpy = np.array([4.0, 1.0, 3.0, 2.0, np.nan])
    logs = [make(0.1), make(0.2), make(0, rounds=4, columns={"grad_norm_sq": bumpy})]
    assert common_level(logs) == 1.0
    assert common_level(logs[:2]) == pytest.approx(np.exp(-0.1 * 50))


def test_needed_is_where_the_running_minimum_gets_there(make):
    y = np.array([4.0, 1.0, 3.0, 0.5, 2.0])
    log = make(0, rounds=4, columns={"grad_norm_sq": y, "round": np.arange(0, 50, 10)})
    running = np.minimum.accumulate(y)
    for level in (5.0, 4.0, 3.5, 1.0, 0.7, 0.5):
        assert needed(log, ROUNDS, level) == 10 * np.argmax(running <= level)
    assert needed(log, ROUNDS, 0.4) == np.inf
    assert needed(log, BITS, 3.5) == log.columns["bits_up"][1] / 5


def test_the_ratio_is_the_median_over_seeds(make):
    # exp(-50 / 10) is the level: reached at round 50 by the slow, at 50, 25, 5 by the fast.
    fast = [make(rate, seed) for seed, rate in ((1, 0.1), (2, 0.2), (3, 1.0), (9, 1.0))]
    slow = [make(0.1, seed) for seed in (3, 2, 1)]
    claim = fewer("fast is faster", "here", fast, slow, ROUNDS)
    assert claim.holds
    assert claim.details["seeds"] == [1, 2, 3]
    assert claim.details["ratios"] == pytest.approx([1, 2, 10])
    assert claim.details["median_ratio"] == pytest.approx(2)
    assert claim.details["level_of_start"] == pytest.approx(np.exp(-5))
    assert "2 times (1 to 10)" in claim.measured
    assert not fewer("slow is faster", "here", slow, fast, ROUNDS).holds


def test_equal_methods_do_not_hold(make):
    assert not fewer("", "", [make(0.1)], [make(0.1)], ROUNDS).holds


def test_a_method_that_never_moves_is_reported(make):
    stuck = make(-0.1)
    claim = fewer("", "", [make(0.1)], [stuck], ROUNDS)
    assert not claim.holds and "never got below" in claim.measured


def test_no_common_seed_is_reported(make):
    claim = fewer("", "", [make(0.1, 1)], [make(0.1, 2)], ROUNDS)
    assert not claim.holds and "no seed" in claim.measured


def test_order(make):
    groups = {"fast": [make(0.4), make(0.5)], "slow": [make(0.1), make(0.2)]}
    assert ordered("", "", groups, ROUNDS).holds
    assert not ordered("", "", dict(reversed(groups.items())), ROUNDS).holds
    assert not ordered("", "", {"a": groups["fast"], "b": groups["fast"]}, ROUNDS).holds
    assert "slow: 37.5" in ordered("", "", groups, ROUNDS).measured  # (50 + 25) / 2


def test_json_and_back(tmp_path, make):
    measured = fewer("yes", "a", [make(0.2)], [make(0.1)], ROUNDS)
    claims = [measured, Claim("no", "b", "0.5 times", False)]
    path = write(tmp_path / "figures" / "x.claims.json", claims)
    content = json.loads(path.read_text())
    assert all(claim.keys() >= {"claim", "source", "measured", "holds"} for claim in content)
    assert read(path) == claims
    text = table("x", claims)
    assert "1 of 2 claims hold" in text and "NO   no" in text and "yes  yes" in text


@pytest.mark.parametrize("content", ["", "{}1", "3", '[{"claim": "alone"}]', '["text"]', WORD])
def test_what_is_no_list_of_claims(tmp_path, content):
    path = tmp_path / "x.claims.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.claims\.json: not a list of claims"):
        read(path)


@pytest.mark.parametrize("holds", [np.True_, np.False_])
def test_numbers_of_numpy_are_numbers_in_json(tmp_path, holds):
    claim = Claim("a", "b", "c", holds, {"n": np.int64(3), "x": np.float32(0.5), "v": np.arange(2)})
    [found] = json.loads(write(tmp_path / "figure.claims.json", [claim]).read_text())
    assert found["holds"] is bool(holds)
    assert found["details"] == {"n": 3, "x": 0.5, "v": [0, 1]}
    assert f"{int(holds)} of 1 claims hold" in table(
        "figure", read(tmp_path / "figure.claims.json")
    )


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read"):
        read(tmp_path / "x.claims.json")


SECONDS = Axis("seconds", log=False)


def test_seconds_of_runs_with_more_ranks_than_cores_are_not_judged(make, tmp_path):
    fair = {"fast": [make(0.4)], "slow": [make(0.1)]}
    few = fair | {"slow": [make(0.1, attrs={"oversubscribed": 1})]}
    for axis, groups, verdict in (
        (SECONDS, fair, True),
        (SECONDS, few, None),
        (Axis("time_encode", log=False), few, None),
        (ROUNDS, few, True),
        (BITS, few, True),
    ):
        less = fewer("", "", groups["fast"], groups["slow"], axis)
        for claim in (less, ordered("", "", groups, axis)):
            assert claim.holds is verdict
            assert ("not judged: more ranks than cores" in claim.measured) == (verdict is None)
    found = [Claim("a", "b", "c", verdict) for verdict in (True, False, None)]
    assert read(write(tmp_path / "x.claims.json", found)) == found
    text = table("x", found)
    assert "1 of 3 claims hold, 1 not judged" in text
    assert [line.split()[0] for line in text.splitlines()[3:]] == ["yes", "NO", "--"]
