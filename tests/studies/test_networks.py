"""Figures of networks, from logs written by hand: no PyTorch is needed."""

import dataclasses

import numpy as np
import pytest

from mpisim.analysis import labels
from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import Log
from run.cdadam import pi

ACCURACIES = ("train_accuracy", "test_accuracy")
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
    name = {"amsgrad": "identity", "ef21-2way": "topk"}
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
        "pi_down": np.append(np.nan, np.full(ROWS - 1, 0.35)),
        "pi_code": np.append(np.nan, np.full(ROWS - 1, 0.4)),
    }
    return Log(
        path=f"{method}-{rate}",
        attrs={
            "method": method,
            "workers": N,
            "dimension": D,
            "method_warmup": 2,
            "seed": 1,
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
    assert pi.verdict == "holds" and "kept, server: 0.650 to 0.650" in pi.measured
    rounds = -np.log(0.4) / 0.11  # of 1-bit Adam
    wanted = (2 * 32 * D + (rounds - 2) * (32 + D)) / (-np.log(0.4) / 0.10 * (32 + D))
    levels = one_bit.evidence[0].numbers["by_target"]
    assert levels["0.4"]["median"] == pytest.approx(wanted, rel=1e-9)
    # In its warm-up 1-bit Adam sends what AMSGrad does, so 5 cannot be all along the curve.
    assert levels["0.9"]["median"] > 25 and one_bit.verdict == "does not hold"
    whole = one_bit.evidence[-1]
    assert whole.numbers["median"] == pytest.approx((2 * 32 * D + 8 * (32 + D)) / (10 * (32 + D)))
    assert whole.verdict == "holds" and not whole.counts


@pytest.mark.parametrize(("rate", "verdict"), [(0.05, "does not hold"), (0.01, "not decided")])
def test_slower_rounds_save_fewer_bits(logs, rate, verdict):
    slow = [log_of("cd-adam", rate), *logs[1:]]
    assert next(iter(figure("cdadam-fig1").claims(slow))).verdict == verdict


def test_levels_where_fewer_bits_are_saved_are_told(logs):
    """From round 3 on CD-Adam is slower, and at 0.6 of the start AMSGrad needs but 19 times."""
    rounds = np.arange(ROWS)
    loss = np.exp(-np.where(rounds < 3, 0.1 * rounds, 0.3 + 0.04 * (rounds - 3)))
    slower = with_columns(logs[0], loss=loss)
    claim = next(iter(figure("cdadam-fig1").claims([slower, logs[1]])))
    first = claim.evidence[0]
    verdicts = [one["verdict"] for one in first.numbers["by_target"].values()]
    assert verdicts == ["holds", "holds", "holds", "does not hold"]
    assert "around 32 at 3 of 4 levels, from 0.9 to 0.7" in first.measured
    assert claim.verdict == first.verdict == "does not hold"
    other = [seeded(log, 2) for log in logs[:2]]  # which is as fast as AMSGrad
    claim = next(iter(figure("cdadam-fig1").claims([slower, logs[1], *other])))
    assert claim.evidence[0].verdict == "tie"


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
    assert claim.evidence[0].verdict == "tie"
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
    assert held["bits", norm] == "holds" and held["epochs", norm] == "does not hold"
    assert held["bits", "training gradient norm, EF21 (two-way)"] == "holds"
    assert held["bits", "test accuracy, 1-bit Adam"] == "holds"
    assert [claim.verdict for claim in claims[:2]] == ["does not hold", "holds"]
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
    overhead = claims["CD-Adam's overhead over uncompressed is small"]
    assert overhead.evidence[0].numbers["ratio"] == 1.2
    rough = [dataclasses.replace(logs[0], attrs=logs[0].attrs | {"oversubscribed": 1}), *logs[1:]]
    verdicts = [claim.verdict for claim in figure("cdadam-table2").claims(rough)]
    assert verdicts == ["holds", "not decided", "not decided"]


def test_pi_outside_the_range_is_said(logs):
    [claim] = figure("cdadam-pi").claims(logs)
    assert claim.verdict == "holds"
    kept, printed, lost = claim.evidence
    assert (kept.verdict, printed.verdict, lost.verdict) == ("holds", "does not hold", "holds")
    assert kept.counts and not printed.counts and not lost.counts
    assert printed.numbers == {"low": 0.4, "high": 0.4} and kept.numbers["low"] == 0.65
    assert pi.in_range([with_columns(logs[0], pi_up=np.full(ROWS, 0.5))]).verdict == "holds"
    outside = with_columns(logs[0], pi_down=np.full(ROWS, 0.5))
    for runs in ([outside], [logs[0], outside]):
        assert pi.in_range(runs).verdict == "does not hold"
    nothing = with_columns(logs[0], pi_down=np.full(ROWS, np.nan))
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


def seeded(log, seed):
    return dataclasses.replace(log, attrs=log.attrs | {"seed": seed})


def with_columns(log, **columns):
    return dataclasses.replace(log, columns=log.columns | columns)


def claim_of(name, logs, start):
    """The claim of figure ``name`` whose text begins with ``start``."""
    [found] = [claim for claim in figure(name).claims(logs) if claim.claim.startswith(start)]
    return found


def test_at_first_curves_are_similar_or_apart(logs):
    """Within 10% of each other in the first quarter, which is two rounds here."""
    own, *_, ef21 = logs
    start = "at first EF21 is where CD-Adam is"
    found = claim_of("cdadam-fig6", logs, start)  # (ef21 - own) is 0.05 a round: 1.105 after two
    assert [one.where for one in found.evidence] == ["training loss", "training accuracy"] * 2
    assert found.evidence[0].numbers["low"] == pytest.approx(np.exp(0.05))
    assert found.evidence[0].numbers["high"] == pytest.approx(np.exp(2 * 0.05))
    assert found.evidence[0].verdict == "does not hold"
    closer = [own, log_of("1bit-adam", 0.2), log_of("ef21-2way", 0.09)]
    assert claim_of("cdadam-fig6", closer, start).verdict == "holds"
    behind = [own, log_of("1bit-adam", 0.05), log_of("ef21-2way", 0.09)]
    assert claim_of("cdadam-fig6", behind, start).evidence[2].verdict == "does not hold"
    # Over bits 1-bit Adam's warm-up makes it slow, and no accuracy is spoken of.
    bits = claim_of("cdadam-fig3", closer, start)
    assert [one.where for one in bits.evidence] == ["training loss"] * 2
    assert bits.evidence[1].verdict == "holds" and "warmup" in bits.quote
    missing = claim_of("cdadam-fig3", [own, ef21], start)
    assert missing.verdict == "not decided" and "1-bit Adam" in missing.measured


def test_1_bit_adam_is_behind_both_at_equal_bits(logs):
    start = "1-bit Adam is behind CD-Adam and EF21"
    found = claim_of("cdadam-fig9", logs, start)
    assert found.verdict == "holds" and len(found.evidence) == 4
    assert found.evidence[2].where == "EF21 (two-way), training loss, 1-bit Adam"
    bits = {name: logs[0].column(name) for name in ("bits_up", "bits_down")}
    without_warmup = [*logs[:2], with_columns(log_of("1bit-adam", 0.2), **bits), logs[3]]
    assert claim_of("cdadam-fig9", without_warmup, start).verdict == "does not hold"


@pytest.mark.parametrize("name", ["cdadam-fig7", "cdadam-fig8"])
def test_ef21_may_be_ahead_on_the_way(name, logs):
    own, *_, ef21 = logs
    start = "EF21 is ahead"
    behind = claim_of(name, logs, start)
    assert behind.verdict == "does not hold" and "intermediately" in behind.quote
    ahead = [np.where(np.arange(ROWS) == 4, 0.5, 1) * ef21.column(y) for y in ("loss", "test_loss")]
    better = [np.where(np.arange(ROWS) == 4, 0.99, ef21.column(y)) for y in ACCURACIES]
    faster = with_columns(ef21, loss=ahead[0], test_loss=ahead[1])
    found = claim_of(name, [own, *logs[1:3], faster], start)
    assert [one.verdict for one in found.evidence] == ["holds"] * 2 + ["does not hold"] * 2
    # 2.7 e^-0.2 / e^-0.4 over rounds; over bits EF21's round 4 is less than one of CD-Adam's
    share = found.evidence[0].numbers["median"]
    assert name.endswith("7") or share == pytest.approx(2 * np.exp(4 * (0.05 - 0.10)))
    faster = with_columns(faster, **dict(zip(ACCURACIES, better, strict=True)))
    assert claim_of(name, [own, *logs[1:3], faster], start).verdict == "holds"
    assert claim_of(name, logs[:3], start).verdict == "not decided"


def test_the_norm_of_1_bit_adam_is_lower_and_diverges(logs):
    own, amsgrad, one_bit, ef21 = logs
    start, least = "1-bit Adam's gradient norm", 1e-9
    assert claim_of("cdadam-fig9", logs, start).verdict == "does not hold"
    cheap = with_columns(one_bit, bits_up=own.column("bits_up"), bits_down=own.column("bits_down"))
    for values, verdict in (
        ([1, 0.01, 0.01, *[9.0] * 8], "holds"),  # of the squared norm
        ([1, 0.01, 0.01, *[least] * 8], "does not hold"),  # it does not grow
        ([1, 9.0, 9.0, *[9.0] * 8], "does not hold"),  # it is never lower
    ):
        squares = np.array(values)
        changed = with_columns(cheap, grad_norm_sq=squares, test_grad_norm_sq=squares)
        found = claim_of("cdadam-fig9", [own, amsgrad, changed, ef21], start)
        assert [one.verdict for one in found.evidence] == [verdict] * 2
    assert claim_of("cdadam-fig9", [own, ef21], start).verdict == "not decided"


def test_1_bit_adam_may_be_ahead_in_training(logs):
    start = "1-bit Adam is ahead in training"
    found = claim_of("cdadam-fig10", logs, start)
    assert [one.where for one in found.evidence] == [
        "training loss, CD-Adam",
        "training accuracy, CD-Adam",
    ]
    assert found.evidence[0].numbers["median"] == pytest.approx(np.exp(10 * 0.01))
    slow = [*logs[:2], log_of("1bit-adam", 0.09), logs[3]]
    assert claim_of("cdadam-fig10", slow, start).verdict == "does not hold"


@pytest.mark.parametrize("name", [*NAMES, "cdadam-pi", "cdadam-fig11"])
def test_it_draws(name, logs, tmp_path):
    drawn = figure(name).draw(logs if name != "cdadam-fig11" else logs[:1])
    drawn.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    for legend in drawn.legends:
        extent = legend.get_window_extent()
        assert extent.x0 >= 0 and extent.x1 <= drawn.bbox.width


@pytest.mark.parametrize(
    ("name", "scale", "model", "rounds", "seeds"),
    [
        ("cdadam-fig1", "quick", "small-cnn", 2400, [1, 2, 3]),
        ("cdadam-fig1", "whole", "resnet18", 300, [1]),
        ("cdadam-fig6", "paper", "resnet18", 4882, [1]),
        ("cdadam-fig8", "quick", "vgg16", 2400, [1, 2]),
        ("cdadam-fig9", "whole", "wrn-16-4", 300, [1]),
        ("cdadam-table2", "quick", "resnet18", 48, [1]),
    ],
)
def test_the_grids(name, scale, model, rounds, seeds):
    """Each scale has the paper's steps and schedule, and thin networks only where it says so."""
    study, network = find(name)
    _, grid = network.source.whole(study.folder, scale)
    points = [parse(point).table for point in grid]
    assert {p["problem"]["model"] for p in points} == {model}
    assert {p["run"]["rounds"] for p in points} == {rounds}
    assert sorted({p["run"]["seed"] for p in points}) == seeds
    assert {p["problem"]["pool"] for p in points} == {2 if scale == "quick" else 1}
    assert scale == "quick" or {p["problem"]["width"] for p in points} == {1.0}
    for method in (p["method"] for p in points):
        assert method["stepsize"] == (0.1 if method["name"] == "ef21-2way" else 1e-4)
        assert method["schedule"] == {"at": [0.5, 0.75], "factor": 0.1}


def test_seeds_are_drawn_row_by_row(logs):
    """A seed that sends a little less does not make the curve begin with it alone."""
    own = logs[0]
    less = {name: 0.99 * own.column(name) for name in ("bits_up", "bits_down")}
    slower = {"loss": 2 * own.column("loss")}
    other = seeded(with_columns(own, **less, **slower), 2)
    panel = figure("cdadam-fig5").draw([own, other]).axes[0]
    drawn = panel.lines[0].get_xydata()
    assert drawn[:, 0] == pytest.approx(0.995 * (32 + D) * 2 * np.arange(1, ROWS))
    assert drawn[:, 1] == pytest.approx(1.5 * own.column("loss")[1:])
    short = dataclasses.replace(other, columns={k: v[:8] for k, v in other.columns.items()})
    assert len(figure("cdadam-fig5").draw([own, short]).axes[0].lines[0].get_xdata()) == 400


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
