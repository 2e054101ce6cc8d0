"""Figures of networks, from logs written by hand: no PyTorch is needed."""

import dataclasses

import numpy as np
import pytest

from mpisim.analysis import labels
from run.cdadam import pi, table2
from tests.studies.networks import (
    ROWS,
    D,
    figure,
    four_logs,
    log_of,
    seeded,
    with_columns,
)


@pytest.fixture
def logs():
    return four_logs()


def test_the_bits_saved_are_judged_along_the_curve(logs):
    amsgrad, one_bit, pi = figure("cdadam-fig1").claims(logs)
    found = amsgrad.evidence[0].numbers["by_target"]
    assert [*found] == ["0.9", "0.8", "0.7", "0.6", "0.5", "0.4"]  # exp(-1): where they end
    ratios = [one["median"] for one in found.values()]
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
    whole = one_bit.evidence[-1]
    assert whole.numbers["median"] == pytest.approx((2 * 32 * D + 8 * (32 + D)) / (10 * (32 + D)))
    assert whole.verdict == "does not hold" and not whole.counts  # 7.2: not within 25% of 5


def test_seeds_are_compared_with_their_own(logs):
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


def test_claims_at_equal_cost(logs):
    claims = list(figure("cdadam-fig3").claims(logs))
    assert [len(claim.evidence) for claim in claims] == [2] * 5
    held = {
        (claim.claim.rpartition(" ")[2], one.where): one.verdict
        for claim in claims[:4]
        for one in claim.evidence
    }
    norm = "training gradient norm, 1-bit Adam"
    # Within CD-Adam's bits 1-bit Adam has row 0 alone: its warm-up is not compressed.
    assert held["bits", norm] == "not decided" and held["epochs", norm] == "does not hold"
    assert held["bits", "training gradient norm, EF21 (two-way)"] == "holds"
    assert held["bits", "test accuracy, 1-bit Adam"] == "not decided"
    assert [claim.verdict for claim in claims[:2]] == ["does not hold", "not decided"]
    short = dataclasses.replace(logs[3], columns={k: v[:8] for k, v in logs[3].columns.items()})
    for claim in list(figure("cdadam-fig3").claims([*logs[:3], short]))[:4]:
        assert claim.evidence[0].verdict == "not decided"
        assert claim.evidence[0].measured == "10 and 7 rounds"


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


def test_pi_outside_the_range_is_said(logs):
    [claim] = figure("cdadam-pi").claims(logs)
    assert claim.verdict == "holds"
    lost, printed, kept = claim.evidence
    assert (lost.verdict, printed.verdict, kept.verdict) == ("holds", "does not hold", "holds")
    assert lost.counts and not printed.counts and not kept.counts
    assert printed.numbers == {"low": 0.4, "high": 0.4} and lost.numbers["low"] == 0.65
    assert pi.in_range([with_columns(logs[0], pi_down=np.full(ROWS, 0.5))]).verdict == "holds"
    outside = with_columns(logs[0], pi_up=np.full(ROWS, 0.5))
    for runs in ([outside], [logs[0], outside]):
        assert pi.in_range(runs).verdict == "does not hold"
    nothing = with_columns(logs[0], pi_up=np.full(ROWS, np.nan))
    assert pi.in_range([nothing]).verdict == "not decided"


def test_larger_n_and_tau():
    base = log_of("cd-adam", 0.1)

    def sized(n, batch, rate):
        log = log_of("cd-adam", rate)
        log.config["method"]["batch"] = batch
        return dataclasses.replace(log, attrs=log.attrs | {"workers": n})

    fig11 = figure("cdadam-fig11")
    logs = [sized(2, 16, 0.05), sized(4, 16, 0.07), sized(8, 16, 0.1), sized(8, 4, 0.06)]
    assert [claim.verdict for claim in fig11.claims(logs)] == ["holds", "holds"]
    logs[1] = sized(4, 16, 0.02)
    assert [claim.verdict for claim in fig11.claims(logs)] == ["does not hold", "holds"]
    assert labels.training(base.config, base.n) == "ResNet-18 on CIFAR-10, n = 8, batch 16"
    base.config["problem"] |= {"model": "small-cnn", "width": 2.0, "pool": 2}
    small = "small-cnn on CIFAR-10 (2 times its channels, images averaged over 2 x 2 pixels)"
    assert labels.training(base.config, 4) == f"{small}, n = 4, batch 16"


def test_a_missing_method_is_said(logs):
    fig5 = figure("cdadam-fig5")
    [claim] = fig5.claims(logs[1:])
    assert claim.verdict == "not decided" and claim.measured == "no complete run of CD-Adam"
    for claim in fig5.claims(logs[:2]):
        assert claim.verdict == "not decided" and "no complete run of 1-bit" in claim.measured
    *better, worse = fig5.claims([logs[0], logs[3]])
    for claim in better:
        *others, last = claim.evidence
        assert claim.verdict == "not decided" and last.measured == "no complete run of 1-bit Adam"
        assert [one.verdict for one in others] == ["holds", "holds"]
    assert worse.claim.startswith("1-bit Adam is behind") and worse.verdict == "not decided"
