"""The study of fleets: its quadratic against dense matrices, and its verdicts on known seconds."""

from itertools import product

import numpy as np
import pytest

from mpisim.analysis.claims import Evidence, Verdict, on_seconds, state
from mpisim.analysis.claims.judging import claim_again
from mpisim.problems.base import PROBLEMS
from mpisim.runs.log.reader import read
from run.fleet.times import Times, ahead, by_step, rivals
from run.fleet.winners import first_of
from run.netlab import fleet
from tests.problems.support import constants_of


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
    assert ahead("US", fast, slow).verdict is Verdict.HOLDS
    assert ahead("US", slow, fast).verdict is Verdict.FAILS
    assert ahead("US", fast, never).verdict is Verdict.HOLDS
    assert ahead("US", never, fast).verdict is Verdict.FAILS
    for pair in ((never, short), (short, never), (short, fast), (fast, short)):
        assert ahead("US", *pair).verdict is Verdict.UNDECIDED  # the runs were too short to say
    at_edge = Times("gd", never.seconds, 6, reached=False, edge=True)
    assert ahead("US", at_edge, fast).verdict is Verdict.UNDECIDED
    assert ahead("US", fast, Times("gd", {7: 3.0}, 1)).verdict is Verdict.UNDECIDED  # no fleet
    edge = Times("gd", slow.seconds, 20, edge=True)
    assert ahead("US", fast, edge).verdict is Verdict.UNDECIDED
    two = Times("gd", slow.seconds, 2)  # runs, on ten fleets each
    assert len(ahead("US", fast, two).numbers["ratios"]) == 2
    at_edge = Times("scaffnew", fast.seconds, 6, edge=True)  # with a better step it is faster still
    assert ahead("US", at_edge, slow).verdict is Verdict.HOLDS


def test_a_multiple_of_the_theory_step_is_one_step(make_log):
    """Seeds split the data, so theory steps differ: the best seed was taken for the best step."""
    runs = []
    for seed, step in product((1, 2), (4.0, 2.0, 8.0)):
        of = {"stepsize": f"{{ theory = {step} }}", "attrs": {"stepsize": step + seed / 10}}
        runs.append(read(make_log(seed=seed, **of)))
    steps = [[log.config["method"]["stepsize"]["theory"] for log in of] for of in by_step(runs)]
    assert steps == [[2.0] * 2, [4.0] * 2, [8.0] * 2]


def test_a_cell_of_the_map_is_decided_against_all_others():
    """Two draws in five on another side, and medians 1% apart, decide nothing."""
    fast = Times("fedavg", dict.fromkeys(range(5), 1.0), 5)
    slow = Times("gd", dict.fromkeys(range(20), 3.0), 20)
    close = Times("scaffnew", dict.fromkeys(range(20), 1.01), 20)
    noisy = Times("diana", dict(enumerate((0.1, 0.1, 5.0, 5.0, 5.0))), 5)
    assert rivals(fast, [slow, close, noisy]) == [close, noisy]
    assert first_of("", [fast, slow], ("fedavg",)).verdict is Verdict.HOLDS
    assert first_of("", [fast, close, slow], ("fedavg", "scaffnew")).verdict is Verdict.HOLDS
    assert first_of("", [fast, close, slow], ("fedavg",)).verdict is Verdict.TIE
    assert first_of("", [fast, slow], ("gd",)).verdict is Verdict.FAILS


def test_seconds_of_more_ranks_than_cores_decide_nothing(make_log):
    """What was measured stays, and nobody who judges the record again takes it for a verdict."""

    def cases(**attrs):
        log = read(make_log(attrs=attrs))
        return [fleet.Seconds(case, 1.0, 1.02, [log]) for case in fleet.CASES]

    assert [claim.verdict for claim in fleet.claims(cases())] == ["holds", "holds"]
    for claim in fleet.claims(cases(oversubscribed=1)):
        assert claim.verdict == "not decided" and "more ranks than cores" in claim.measured
        assert {one.verdict for one in claim.evidence} == {"not decided"}
        assert claim_again(claim) == claim
    one = next(fleet.claims(cases(oversubscribed=1))).evidence[0]
    assert one.measured == "1.02 s for 1.00 s, +2.0%"
    logs = [read(make_log(attrs={"oversubscribed": 1}))]
    compared = state("", "", "", [Evidence("", "", Verdict.HOLDS, {"by_target": {}}, word="fewer")])
    assert not on_seconds(compared, logs).evidence
