"""SAQ's Figures 4 to 8 and Table 2, from logs made by hand; their grids of runs."""

import h5py
import numpy as np
import pytest
import tomli_w

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import read
from mpisim.runs.ranks import ranks_of
from run.saq import claims, curves, table2

WORKERS = {"german.numer": 4, "svmguide3": 4, "splice": 6, "a9a": 8, "w8a": 8, "covtype": 6}
SPEED = {"quant": 0.05, "block quant+": 0.2, "quant+": 0.5}
INNER = {
    "quant": {"name": "qsgd", "codec": "elias"},
    "block quant+": {"name": "block-quant-plus", "steps": "root", "codec": "elias"},
    "quant+": {"name": "quant-plus", "steps": "varying", "codec": "elias"},
}


@pytest.fixture
def make(make_log):
    """make(method, scheme, data, d, start, seed): a log whose |x^k - x*|^2 is 4 exp(-speed k)."""

    def one(
        method,
        scheme,
        data="a9a",
        d=123,
        start=0,
        seed=1,
        rounds=100,
        speed=None,
        codec=None,
        oversubscribed=0,
    ):
        inner = INNER[scheme] | ({"codec": codec} if codec else {})
        plus = method.endswith("+")
        config = {
            "problem": {"name": "logistic", "data": data, "workers": 5},
            "method": {"name": method.rstrip("+"), "stepsize": "theory"},
            "compressor": {"name": "smooth", "inner": inner} if plus else inner,
            "run": {"rounds": rounds, "seed": seed},
        }
        k = np.arange(rounds + 1)
        columns = {
            "distance_sq": 4 * np.exp(-(speed or SPEED[scheme]) * k),
            "bits_up": start * 8e6 + 8e3 * k,
            "time_compute": 0.5 * start + 1e-3 * k,
        }
        drop = [f"time_{p}" for p in ("compress", "encode", "communicate", "decode", "server")]
        drop += ["time_optimizer", "time_other"]
        path = make_log(
            rounds=rounds,
            columns=columns,
            drop=drop,
            seed=seed,
            method=method.rstrip("+"),
            attrs={
                "config": tomli_w.dumps(config),
                "dimension": d,
                "oversubscribed": oversubscribed,
            },
        )
        with h5py.File(path, "a") as file:
            file["workers/rows"] = np.full(5, 200)
        return path

    return one


def logs_of(*paths):
    return [read(path) for path in paths]


def test_axes(make):
    [log] = logs_of(make("diana+", "quant+", start=2))
    assert curves.label(log) == "DIANA+ (quant+)"
    assert curves.BYTES.values(log)[:2] == pytest.approx([2, 2.001])
    assert curves.SECONDS.values(log)[:2] == pytest.approx([1, 1.001])
    assert curves.ERROR.values(log)[[0, 10]] == pytest.approx([1, np.exp(-5)])


def test_ratios_and_what_is_sent_before_round_0(make):
    """DIANA is at 0.01 in round 93, DIANA+ in round 24, after megabytes of set-up."""
    for start, verdict in ((0, "holds"), (1, "does not hold")):
        logs = [
            log
            for seed in (1, 2, 3)
            for log in logs_of(
                make("diana", "quant", seed=seed),
                make("diana+", "block quant+", start=start, seed=seed),
            )
        ]
        compared = claims.Comparison("DIANA+ (block quant+)", "DIANA (quant)", "")
        rounds, sent, seconds = (
            claims.pair(curves.runs(logs), compared, cost, "a9a") for cost in curves.COSTS
        )
        assert rounds.verdict == "holds" and rounds.numbers["by_target"]["0.01"]["ratios"] == (
            pytest.approx([93 / 24] * 3)
        )
        assert sent.numbers["by_target"]["0.01"]["median"] == pytest.approx(0.093 / (start + 0.024))
        later = sent.numbers["without_start"]["by_target"]["0.01"]
        assert later["median"] == pytest.approx(93 / 24)
        assert sent.verdict == seconds.verdict == verdict
        assert ("; without what is sent before round 0: " in sent.measured) == (start == 1)
        assert "|x^0 - x*|^2" in rounds.measured


def figure_4(make, starts):
    sets = {"svmguide3": 22, "splice": 60, "w8a": 300}
    return logs_of(
        *(
            make(method, scheme, data, d, starts[data] if method == "diana+" else 0, seed)
            for data, d in sets.items()
            for method, scheme in (("diana", "quant"), ("diana+", "block quant+"))
            for seed in (1, 2)
        )
    )


def claims_of(name, logs):
    return list(find(f"saq-{name}")[1].claims(logs))


def test_claims_over_all_data_sets(make):
    logs = figure_4(make, {"svmguide3": 1, "splice": 0, "w8a": 0})
    found = {c.claim: c for c in claims_of("fig4", logs)}
    text = "DIANA+ (block quant+) needs fewer {} than DIANA (quant) when d is larger"
    assert len(found) == 2 * 3 and "when d is larger" in found[text.format("rounds")].quote
    sent = found[text.format("megabytes")]
    assert sent.verdict == "holds"
    small, *_ = sent.evidence
    assert small.where == "svmguide3 (d = 22)" and not small.counts
    assert small.verdict == "does not hold"
    assert [one.counts for one in found[text.format("rounds")].evidence] == [False, False, True]
    gone = found["DCGD+ (block quant+) needs fewer rounds than DCGD (quant) when d is larger"]
    assert gone.verdict == "not decided"
    logs = figure_4(make, {"svmguide3": 0, "splice": 0, "w8a": 1})
    found = {c.claim: c for c in claims_of("fig4", logs)}
    assert found[text.format("megabytes")].verdict == "does not hold"


def test_seconds_with_more_ranks_than_cores_are_drawn_with_a_note_and_not_judged(make, tmp_path):
    """One run of one data set is enough for what is said of all of them; bits are judged."""
    logs = logs_of(
        make("diana", "quant", "splice", 60, oversubscribed=1),
        make("diana+", "block quant+", "splice", 60),
        make("diana", "quant", "svmguide3", 22),
        make("diana+", "block quant+", "svmguide3", 22),
    )
    found = [claim for claim in claims_of("fig4", logs) if "DIANA+" in claim.claim]
    assert [claim.verdict for claim in found] == ["holds", "holds", "not decided"]
    assert [one.verdict for one in found[2].evidence] == ["holds", "not decided"]
    assert found[2].evidence[1].measured == "more ranks than cores, or runs side by side"
    figure = find("saq-fig4")[1].draw(logs)
    figure.savefig(tmp_path / "figure.png")
    noted = [(p.get_xlabel(), [t.get_text() for t in p.texts]) for p in figure.axes if p.texts]
    assert noted == [("seconds", ["more ranks than cores, or runs side by side"])]
    rough = logs_of(make("diana+", "quant+", codec="elias", oversubscribed=1))
    _, sent, seconds = table2.claims(rough)
    assert sent.verdict == "holds" and seconds.verdict == "not decided"


def test_missing_runs_decide_nothing(make):
    found = claims_of("fig7", logs_of(make("diana+", "quant+")))
    assert [claim.verdict for claim in found] == ["not decided"] * 3
    assert "no seed has both runs" in found[0].measured


def test_it_draws(make, tmp_path):
    logs = figure_4(make, {"svmguide3": 1, "splice": 0, "w8a": 0})
    figure = find("saq-fig4")[1].draw(logs)
    figure.savefig(tmp_path / "figure.png")
    assert len(figure.axes) == 9
    assert figure.axes[0].get_title() == "svmguide3, d = 22"
    assert [panel.get_xlabel() for panel in figure.axes[::3]] == [
        "round",
        "megabytes sent, all workers",
        "seconds",
    ]
    assert all(len(panel.lines) == 2 for panel in figure.axes)


def test_table_2(make, tmp_path):
    paths = [
        make(method, scheme, start=start, codec=codec, rounds=rounds)
        for method, scheme, start in (("diana", "quant", 0), ("diana+", "quant+", 0.005))
        for codec, rounds in (("elias", 100), ("e1", 100), ("entropy", 40))
    ]
    logs = logs_of(*paths)
    found = table2.runs(logs)
    assert len(found) == 6
    assert table2.message_bits(logs[:3]) == pytest.approx([8e3 / 5] * 3)
    sizes, sent, seconds = table2.claims(logs)
    assert sizes.verdict == "does not hold"
    assert sizes.measured == "a9a: d = 123, n = 5, m = 200, not d = 123, n = 8, m = 2,837"
    own = [claim.evidence[0].numbers for claim in (sent, seconds)]
    assert own[0]["share"] == pytest.approx(0.005 / 5.005)  # in 5,000 rounds of 0.001
    assert own[0]["rounds_for_a_tenth"] == pytest.approx(45)
    assert own[1]["share"] == pytest.approx(0.0025 / 5.0025)
    assert sent.verdict == seconds.verdict == "holds" and own[0]["rounds_measured"] == 100
    table2.draw(logs).savefig(tmp_path / "table.png")


def test_figures_that_share_runs():
    """One grid, and so one folder of logs; each figure draws labels that are in it."""
    figures = [find(f"saq-fig{number}")[1] for number in (4, 5, 6, 7, 8)]
    assert len({figure.source for figure in figures}) == 1
    drawn = {label for figure in figures for label in figure.draw.args[1]}
    assert drawn == set(curves.LOOKS)


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("name", ["saq-fig4", "saq-table2"])
def test_the_grid(name, scale):
    """Table 2's data and workers, Section B.1's setting, 5 seeds and 5,000 rounds."""
    study, figure = find(name)
    folder, grid = figure.source.whole(study.folder, scale)
    assert str(folder) == ("logs/saq" if name == "saq-fig4" else "logs/saq-table2")
    assert {p["problem"]["data"]: p["problem"]["workers"] for p in grid} == WORKERS
    seeds = {point["run"].get("seed", 1) for point in grid}
    number = 1 if name == "saq-table2" else 3 if scale == "quick" else 5
    assert len(seeds) == number and len(grid) == 6 * (9 if number == 1 else 10 * number)
    labels = set()
    for point in grid:
        experiment = parse(point)
        problem = experiment.table["problem"]
        assert (problem["split"], problem["scale"]) == ("sorted-by-norm", "row-max-abs")
        assert problem["l2"] == 1e-3 and point["run"]["reference"]
        assert scale == "quick" or point["run"]["rounds"] == 5000
        assert ranks_of(experiment) == point["problem"]["workers"]
        labels.add(curves.label(type("Log", (), {"config": experiment.table})))
    assert labels == (set(curves.LOOKS) if name == "saq-fig4" else set(table2.LABELS))
