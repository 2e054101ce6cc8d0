"""Figures of networks, from logs written by hand: no PyTorch is needed."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import Log
from run.cdadam import table2

D, N, ROWS = 1000, 8, 11
COMPRESSORS = {"amsgrad": {"name": "identity"}, "ef21-2way": {"name": "topk", "k": 0.016}}
RATES = {"cd-adam": 0.10, "amsgrad": 0.10, "1bit-adam": 0.11, "ef21-2way": 0.05}


def log_of(method, rate, seed=1):
    """A log whose loss falls by e^-rate in each of 10 rounds, all rounds logged."""
    rounds = np.arange(ROWS)
    message = {"amsgrad": 32 * D, "ef21-2way": 60 * 16}.get(method, 32 + D)
    warm = 2 if method == "1bit-adam" else 0
    bits = np.cumsum([0, *np.where(rounds[:-1] < warm, 32 * D, message)])
    loss = np.exp(-rate * rounds)
    table = {
        "problem": {"name": "torch", "workers": N},
        "method": {"name": method, "stepsize": 0.1, "batch": 16},
        "compressor": COMPRESSORS.get(method, {"name": "scaled-sign"}),
        "run": {"rounds": ROWS - 1},
    }
    columns = {"round": rounds, "loss": loss, "test_loss": 1.1 * loss}
    columns |= dict.fromkeys(("grad_norm_sq", "test_grad_norm_sq"), loss**2)
    columns |= dict.fromkeys(("train_accuracy", "test_accuracy"), 1 - 0.9 * loss)
    columns |= {"bits_up": N * bits, "bits_down": N * bits, "oracle_calls": rounds * N * 16}
    compress = 0.1 if method in ("cd-adam", "ef21-2way") else 0.0
    columns |= {"time_compute": 0.5 * rounds, "time_compress": compress * rounds}
    for name, pi in (("up", 0.65), ("up_max", 0.7), ("down", 0.35), ("code", 0.4)):
        columns[f"pi_{name}"] = np.append(np.nan, np.full(ROWS - 1, pi))
    attrs = {"method": method, "workers": N, "dimension": D, "method_warmup": 2}
    attrs |= {"seed": seed, "stepsize": 0.1, "status": "done"}
    workers, config = {"rows": np.full(N, 250)}, parse(table).table
    return Log(Path(f"{method}-{rate}"), attrs, columns, workers, {}, config)


def claims_of(name, logs):
    """Of the figure called STUDY-NAME."""
    return list(find(name)[1].claims(logs))


@pytest.fixture
def logs():
    """A run of each method with one seed."""
    return [log_of(method, rate) for method, rate in RATES.items()]


def test_the_bits_saved_are_judged_along_the_curve(logs):
    amsgrad, one_bit, pi = claims_of("cdadam-fig1", logs)
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


def test_table_2_counts(logs):
    claims = {claim.claim: claim for claim in claims_of("cdadam-table2", logs)}
    sent = claims["methods send the bits of the table, EF21 at most those"]
    assert sent.verdict == "holds"
    formulas = {one.where: one.numbers["formula"] for one in sent.evidence}
    assert len(formulas) == 4 and formulas["EF21 (two-way)"] == 2 * 64 * 16 * 10
    overhead = claims["CD-Adam's overhead over uncompressed is small: around the same time"]
    assert overhead.evidence[0].numbers["ratios"] == pytest.approx([1.2])
    # The gradients of one run took longer, by chance: they are the same for all methods.
    columns = logs[0].columns | {"time_compute": 0.9 * logs[0].column("round")}
    slow = dataclasses.replace(logs[0], columns=columns)
    drawn = {method: rest for method, rest, *_ in table2.rows([slow, *logs[1:]])}
    assert drawn["cd-adam"] == pytest.approx(0.6) and drawn["amsgrad"] == pytest.approx(0.5)
    rough = [dataclasses.replace(logs[0], attrs=logs[0].attrs | {"oversubscribed": 1}), *logs[1:]]
    verdicts = [claim.verdict for claim in claims_of("cdadam-table2", rough)]
    assert verdicts == ["holds", "not decided", "not decided"]


@pytest.mark.parametrize(("midway", "verdict"), [(1.2, "does not hold"), (0.8, "holds")])
def test_midway_is_one_row(midway, verdict):
    """At epoch 5 of 10, wherever else EF21 is ahead."""
    logs = []
    for seed in (1, 2, 3):
        other = log_of("ef21-2way", 0.1, seed)
        factor = np.where(np.arange(ROWS) == 5, midway, np.where(np.arange(ROWS) == 7, 0.5, 1))
        columns = other.columns | {"loss": factor * other.column("loss")}
        logs += [log_of("cd-adam", 0.1, seed), dataclasses.replace(other, columns=columns)]
    claims = claims_of("cdadam-fig8", logs)
    [claim] = [one for one in claims if one.claim.startswith("midway EF21 is ahead")]
    assert claim.evidence[0].verdict == verdict
    assert claim.evidence[0].numbers["ratios"] == pytest.approx([1 / midway] * 3)
