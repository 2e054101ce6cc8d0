"""The study of fleets: its quadratic against dense matrices, and its verdicts on known seconds."""

import numpy as np
import pytest

from mpisim.analysis.claims import Evidence, Verdict, on_seconds, state
from mpisim.analysis.claims.judging import claim_again
from mpisim.problems.base import PROBLEMS
from mpisim.runs.log.reader import read
from run.fleet.times import Times, ahead
from run.netlab import fleet
from tests.problems.support import constants_of

HOLDS, FAILS, *_, UNDECIDED = Verdict


@pytest.fixture(scope="module")
def diagonal():
    from run.fleet import problem  # registers it

    yield lambda **keys: problem.Diagonal(**keys).loaded(5, 0, 5, 1, np.dtype(float))
    del PROBLEMS["diagonal"]


def test_the_quadratic_against_its_hessians(diagonal):
    d = 40
    made = diagonal(dimension=d, difference=0.4, kappa=7.0)
    x, origin = np.random.default_rng(0).standard_normal(d), np.zeros(d)
    # the f_i are quadratic with a diagonal Hessian: columns from differences of gradients
    H = np.array([made.gradients(e) - made.gradients(origin) for e in np.eye(d)])  # (d, n, d)
    H_i = H.transpose(1, 2, 0)
    mean = H_i.mean(axis=0)
    assert mean == pytest.approx(np.diag(made.a), abs=1e-12)
    form = made.closed_form
    L_i, *others = constants_of(H_i)
    assert form.L_i == pytest.approx(L_i)
    assert [form.L, form.L_plus, form.L_pm] == pytest.approx(others)
    assert form.mu == pytest.approx(np.linalg.eigvalsh(mean)[0])
    assert form.mu_i == pytest.approx(np.linalg.eigvalsh(H_i).min())
    # f is the same for every difference, and x* is its minimiser
    same = diagonal(dimension=d, difference=0.0, kappa=7.0)
    assert made.losses(x).mean() == pytest.approx(same.losses(x).mean())
    best, least = made.minimum()
    assert made.gradients(best).mean(axis=0) == pytest.approx(origin, abs=1e-12)
    assert made.losses(best).mean() == pytest.approx(least)


def test_who_is_ahead():
    fast = Times("scaffnew", {j: 1.0 + 0.01 * j for j in range(6)}, 6)
    slow = Times("gd", {j: 2.0 + 0.01 * j for j in range(20)}, 20)
    never = Times("gd", dict.fromkeys(range(6), 50.0), 6, reached=False)
    short = Times("gd", dict.fromkeys(range(6), 0.5), 6, reached=False)
    at_edge = Times("gd", never.seconds, 6, reached=False, edge=True)
    slow_edge = Times("gd", slow.seconds, 20, edge=True)
    fast_edge = Times("scaffnew", fast.seconds, 6, edge=True)  # a better step is faster still
    for first, second, verdict in (
        *((fast, slow, HOLDS), (slow, fast, FAILS), (fast, never, HOLDS), (never, fast, FAILS)),
        # the runs were too short to say
        *((never, short, UNDECIDED), (short, never, UNDECIDED)),
        *((short, fast, UNDECIDED), (fast, short, UNDECIDED)),
        *((at_edge, fast, UNDECIDED), (fast, slow_edge, UNDECIDED), (fast_edge, slow, HOLDS)),
        (fast, Times("gd", {7: 3.0}, 1), UNDECIDED),  # no fleet
    ):
        assert ahead("US", first, second).verdict is verdict
    two = Times("gd", slow.seconds, 2)  # runs, on ten fleets each
    assert len(ahead("US", fast, two).numbers["ratios"]) == 2


def test_seconds_of_more_ranks_than_cores_decide_nothing(make_log):
    """What was measured stays, and nobody who judges the record again takes it for a verdict."""

    def claims(**attrs):
        log = read(make_log(attrs=attrs))
        return list(fleet.claims([fleet.Seconds(case, 1.0, 1.02, [log]) for case in fleet.CASES]))

    assert [claim.verdict for claim in claims()] == ["holds", "holds"]
    rough = claims(oversubscribed=1)
    for claim in rough:
        assert claim.verdict == "not decided" and "more ranks than cores" in claim.measured
        assert {one.verdict for one in claim.evidence} == {"not decided"}
        assert claim_again(claim) == claim
    assert rough[0].evidence[0].measured == "1.02 s for 1.00 s, +2.0%"
    logs = [read(make_log(attrs={"oversubscribed": 1}))]
    compared = state("", "", "", [Evidence("", "", HOLDS, {"by_target": {}}, word="fewer")])
    assert not on_seconds(compared, logs).evidence
