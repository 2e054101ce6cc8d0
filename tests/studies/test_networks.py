"""Figures of networks, from logs written by hand: no PyTorch is needed."""

import dataclasses

import numpy as np
import pytest

from mpisim.analysis import labels
from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import Log
from run.cdadam import pi
from run.marina import fig2

D, N, ROWS = 1000, 8, 11
NAMES = ["cdadam-fig1", "cdadam-fig3", "cdadam-fig5", "cdadam-fig10", "cdadam-table2"]
MESSAGES = {"amsgrad": 32 * D, "cd-adam": 32 + D, "1bit-adam": 32 + D, "ef21-2way": 60 * 16}


def figure(name):
    """The figure called STUDY-NAME."""
    return find(name)[1]


def log_of(method, rate, k=0.016, **more):
    """A log whose loss falls by e^-rate in each of 10 rounds, all rounds logged."""
    rounds = np.arange(ROWS)
    warm = 2 if method == "1bit-adam" else 0
    bits = np.cumsum([0, *np.where(rounds[:-1] < warm, 32 * D, MESSAGES.get(method, 100))])
    loss = np.exp(-rate * rounds)
    compressor = {"identity": {}, "topk": {"k": k}, "randk": {"k": k}, "scaled-sign": {}}
    name = {"amsgrad": "identity", "ef21-2way": "topk", "vr-marina": "randk", "vr-diana": "randk"}
    chosen = more.pop("compressor", name.get(method, "scaled-sign"))
    table = {
        "problem": {"name": "torch", "workers": N},
        "method": {"name": method, "stepsize": 0.1, "batch": 16},
        "compressor": {"name": chosen} | compressor[chosen],
        "run": {"rounds": ROWS - 1},
    }
    columns = {
        "round": rounds,
        "loss": loss,
        "grad_norm_sq": loss**2,
        "bits_up": N * bits,
        "bits_down": N * bits,
        "oracle_calls": rounds * N * 16,
        "test_loss": 1.1 * loss,
        "test_grad_norm_sq": loss**2,
        "train_accuracy": 1 - 0.9 * loss,
        "test_accuracy": 1 - 0.9 * loss,
        "time_compute": 0.5 * rounds,
        "time_compress": 0.1 * rounds if method in ("cd-adam", "ef21-2way") else 0.0 * rounds,
        "pi_up": np.append(np.nan, np.full(ROWS - 1, 0.65)),
        "pi_up_max": np.append(np.nan, np.full(ROWS - 1, 0.7)),
        "pi_down": np.append(np.nan, np.full(ROWS - 1, 0.6)),
    }
    return Log(
        path=f"{method}-{rate}",
        attrs={
            "method": method,
            "workers": N,
            "dimension": D,
            "method_warmup": 2,
            "stepsize": 0.1,
            "status": "done",
        },
        columns=columns,
        workers={"rows": np.full(N, 250)},
        units={},
        descriptions={},
        config=parse(table).table,
    )


@pytest.fixture
def logs():
    return [
        log_of("cd-adam", 0.10),
        log_of("amsgrad", 0.10),
        log_of("1bit-adam", 0.11),
        log_of("ef21-2way", 0.05),
    ]


def test_the_bits_saved_are_interpolated(logs):
    amsgrad, one_bit, pi = figure("cdadam-fig1").claims(logs)
    assert amsgrad.details["ratio"] == pytest.approx(32 * D / (32 + D), rel=1e-9)
    # to each row's loss between the first and the last, too, and so it is said
    assert amsgrad.details["ratios"] == pytest.approx([32 * D / (32 + D)] * (ROWS - 2), rel=1e-9)
    assert amsgrad.measured.endswith("; 31 to 31 times before")
    assert amsgrad.holds and pi.holds and "0.650 to 0.650" in pi.measured
    rounds = 10 * 0.10 / 0.11  # of 1-bit Adam, to CD-Adam's last loss
    wanted = (2 * 32 * D + (rounds - 2) * (32 + D)) / (10 * (32 + D))
    assert one_bit.details["ratio"] == pytest.approx(wanted, rel=1e-9)
    slow = [log_of("cd-adam", 0.01), *logs[1:]]
    assert not next(iter(figure("cdadam-fig1").claims(slow))).holds


def test_claims_at_equal_cost(logs):
    claims = list(figure("cdadam-fig3").claims(logs))
    assert len(claims) == 8
    held = {claim.claim: claim.holds for claim in claims}
    assert held["CD-Adam has the smaller training gradient norm than EF21 (two-way) at equal bits"]
    norm = "CD-Adam has the smaller training gradient norm than 1-bit Adam at equal"
    assert held[f"{norm} bits"] and not held[f"{norm} epochs"]
    assert held["CD-Adam has the higher test accuracy than 1-bit Adam at equal bits"]


def test_table_2_counts(logs):
    claims = {claim.claim: claim for claim in figure("cdadam-table2").claims(logs)}
    for method in ("AMSGrad", "CD-Adam", "1-bit Adam"):
        assert claims[f"{method} sends the bits of the table"].holds
    assert claims["EF21 sends at most the bits of the table"].details["formula"] == 2 * 64 * 16 * 10
    assert claims["CD-Adam's overhead over uncompressed is small"].details["ratio"] == 1.2


def test_pi_outside_the_range_is_said(logs):
    assert figure("cdadam-pi").claims(logs)[0].holds
    low = dataclasses.replace(logs[0], columns=logs[0].columns | {"pi_up": np.full(ROWS, 0.5)})
    assert not pi.in_range(low).holds


def test_marina_takes_the_best_step(monkeypatch):
    logs = [log_of("vr-marina", 0.3), log_of("vr-diana", 0.1)]
    found = {("vr-diana", 0.016): logs[1], ("vr-marina", 0.016): logs[0]}
    monkeypatch.setattr(fig2, "runs", lambda _: found)
    epochs, bits = fig2.claims(logs)
    assert epochs.holds and bits.holds
    assert epochs.details["costs"][1] / epochs.details["costs"][0] == pytest.approx(3, rel=1e-9)


def test_larger_n_and_tau():
    base = log_of("cd-adam", 0.1)

    def sized(n, batch, rate):
        log = log_of("cd-adam", rate)
        log.config["method"]["batch"] = batch
        return dataclasses.replace(log, attrs=log.attrs | {"workers": n})

    fig11 = figure("cdadam-fig11")
    logs = [sized(2, 16, 0.05), sized(4, 16, 0.07), sized(8, 16, 0.1), sized(8, 4, 0.06)]
    assert [claim.holds for claim in fig11.claims(logs)] == [True, True]
    logs[1] = sized(4, 16, 0.02)
    assert [claim.holds for claim in fig11.claims(logs)] == [False, True]
    assert labels.training(base.config, base.n) == "ResNet-18 on CIFAR-10, n = 8, batch 16"


@pytest.mark.parametrize("name", [*NAMES, "cdadam-pi", "cdadam-fig11"])
def test_it_draws(name, logs, tmp_path):
    drawn = figure(name).draw(logs if name != "cdadam-fig11" else logs[:1])
    drawn.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    for legend in drawn.legends:
        extent = legend.get_window_extent()
        assert extent.x0 >= 0 and extent.x1 <= drawn.bbox.width


def test_a_missing_method_is_said(logs):
    fig5 = figure("cdadam-fig5")
    for few, names in ((logs[:2], ("EF21", "1-bit Adam")), (logs[1:], ("CD-Adam",))):
        claims = list(fig5.claims(few))
        assert len(claims) == len(names) and not any(claim.holds for claim in claims)
        for claim, name in zip(claims, names, strict=True):
            assert claim.measured.startswith(f"not measured: no complete run of {name}")
    *others, last = fig5.claims([logs[0], logs[3]])
    assert "1-bit Adam" in last.measured and not last.holds
    assert len(others) == 6 and all("EF21" in claim.claim for claim in others)
