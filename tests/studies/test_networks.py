"""Figures of networks, from logs written by hand: no PyTorch is needed."""

import dataclasses

import numpy as np
import pytest

from run.cdadam import table2
from tests.studies.networks import D, figure, four_logs, log_of, seeded, with_columns


@pytest.fixture
def logs():
    return four_logs()


def test_the_bits_saved_are_judged_along_the_curve(logs):
    amsgrad, one_bit, pi = figure("cdadam-fig1").claims(logs)
    result = amsgrad.evidence[0].numbers["by_target"]
    assert [*result] == ["0.9", "0.8", "0.7", "0.6", "0.5", "0.4"]  # exp(-1): where they end
    ratios = [one["median"] for one in result.values()]
    assert ratios == pytest.approx([32 * D / (32 + D)] * 6, rel=1e-9)
    assert "around 32 at 6 of 6 levels" in amsgrad.evidence[0].measured
    assert amsgrad.verdict == "holds" and "around 32x" in amsgrad.quote
    assert [one.where for one in amsgrad.evidence] == ["training loss", "test error", "all rounds"]
    error = amsgrad.evidence[1].numbers["by_target"]  # 0.9 of the loss: the same shares
    assert error["0.4"]["ratios"] == pytest.approx([32 * D / (32 + D)], rel=1e-9)
    assert pi.verdict == "holds" and "lost, workers: 0.650 to 0.650" in pi.measured
    rounds = -np.log(0.4) / 0.11  # of 1-bit Adam
    wanted = (2 * 32 * D + (rounds - 2) * (32 + D)) / (-np.log(0.4) / 0.10 * (32 + D))
    levels = one_bit.evidence[0].numbers["by_target"]
    assert levels["0.4"]["median"] == pytest.approx(wanted, rel=1e-9)
    # In its warm-up 1-bit Adam sends what AMSGrad does, so 5 cannot be all along the curve.
    assert levels["0.9"]["median"] > 25 and one_bit.verdict == "does not hold"
    full = one_bit.evidence[-1]
    assert full.numbers["median"] == pytest.approx((2 * 32 * D + 8 * (32 + D)) / (10 * (32 + D)))
    assert full.verdict == "does not hold" and not full.counts  # 7.2: not within 25% of 5


def test_seeds_are_compared_with_equal_seeds(logs):
    """The ratios of each seed count, and a seed that only one method has does not."""
    seeds = [seeded(log_of("cd-adam", rate), i) for i, rate in ((1, 0.1), (2, 0.2), (3, 0.3))]
    rivals = [seeded(log_of("ef21-2way", rate), i) for i, rate in ((2, 0.1), (1, 0.05))]
    claims = list(figure("cdadam-fig6").claims([*seeds, *rivals]))
    loss = claims[0].evidence[0]
    assert loss.numbers["seeds"] == [1, 2] and loss.verdict == "holds"
    assert loss.numbers["ratios"] == pytest.approx([np.exp(0.5), np.exp(1.0)])
    rivals[0] = seeded(log_of("ef21-2way", 0.25), 2)
    claim = next(iter(figure("cdadam-fig6").claims([*seeds, *rivals])))
    assert claim.evidence[0].verdict in ("does not hold", "not decided")
    alone = [seeds[0], seeded(rivals[0], 4)]
    missing = next(iter(figure("cdadam-fig6").claims(alone))).evidence[0]
    assert (missing.verdict, missing.measured) == ("not decided", "no seed has both runs")


def test_table_2_counts(logs):
    claims = {claim.claim: claim for claim in figure("cdadam-table2").claims(logs)}
    sent = claims["methods send the bits of the table, EF21 at most those"]
    assert sent.verdict == "holds"
    formulas = {one.where: one.numbers["formula"] for one in sent.evidence}
    assert len(formulas) == 4 and formulas["EF21 (two-way)"] == 2 * 64 * 16 * 10
    overhead = claims["CD-Adam's overhead over uncompressed is small: around the same time"]
    assert overhead.evidence[0].numbers["ratios"] == pytest.approx([1.2])
    # The gradients of one run took longer, by chance: they are the same for all methods.
    slow = with_columns(logs[0], time_compute=0.9 * logs[0].column("round"))
    drawn = {method: rest for method, rest, *_ in table2.rows([slow, *logs[1:]])}
    assert drawn["cd-adam"] == pytest.approx(0.6) and drawn["amsgrad"] == pytest.approx(0.5)
    rough = [dataclasses.replace(logs[0], attrs=logs[0].attrs | {"oversubscribed": 1}), *logs[1:]]
    verdicts = [claim.verdict for claim in figure("cdadam-table2").claims(rough)]
    assert verdicts == ["holds", "not decided", "not decided"]
