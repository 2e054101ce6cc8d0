"""The grids of SAQ's figures: Table 2's data, Section B.1's setting, ranks, norms."""

import pytest

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.preview import ranks_of
from run.saq import curves, schemes, table2

WORKERS = {"german.numer": 4, "svmguide3": 4, "splice": 6, "a9a": 8, "w8a": 8, "covtype": 6}
SEEDS = {"seconds": (3, 3), "table2": (1, 1)}  # quick and paper; of other grids 3 and 5


def test_figures_that_share_runs():
    """One source for the paper's figures, one for the code's; what is drawn is in its grids."""
    for prefix in ("", "code-"):
        figures = [find(f"saq-{prefix}fig{number}")[1] for number in (4, 5, 6, 7, 8)]
        assert len({figure.source for figure in figures}) == 1
        assert {label for figure in figures for label in figure.draw.args[1]} == set(curves.LOOKS)


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("name", ["saq-fig4", "saq-code-fig4", "saq-table2"])
def test_the_grids(name, scale):
    """Table 2's data and workers, Section B.1's setting, 5 seeds and 5,000 rounds."""
    study, figure = find(name)
    paper = scale == "paper"
    assert str(figure.source.folder(study.folder)) == "logs/saq"
    drawn = set()
    for grid in figure.source.grids:
        points = grid.whole(study.folder, scale)[1]
        data = {"a8a": "a9a"} if "code" in grid.file else {}
        sets = {p["problem"]["data"]: p["problem"]["workers"] for p in points}
        assert {data.get(name, name): n for name, n in sets.items()} == WORKERS
        assert (
            len({point["run"].get("seed", 1) for point in points})
            == SEEDS.get(grid.file, (3, 5))[paper]
        )
        timed, labels = grid.file == "seconds", set()
        for point in points:
            experiment = parse(point)
            problem, run = experiment.table["problem"], point["run"]
            assert (problem["split"], problem["scale"]) == ("sorted-by-norm", "row-max-abs")
            assert problem["l2"] == 1e-3 and run["reference"]
            assert run["rounds"] >= 5000 or not paper
            assert ranks_of(experiment) == (2 if timed else None)
            labels.add(schemes.label(type("Log", (), {"config": experiment.table})))
            if "code" in grid.file and "DIANA (" in schemes.label(type("L", (), {"config": point})):
                assert point["method"]["rule"] == "published"
        drawn |= set() if timed and name == "saq-table2" else labels
        assert len(points) % len(labels) == 0
        if timed:
            assert labels == set(curves.LOOKS)
    assert drawn == (set(table2.LABELS) if name == "saq-table2" else set(curves.LOOKS))


def test_a_rank_for_each_worker_where_seconds_are_taken_apart():
    study, figure = find("saq-seconds")
    for point in figure.source.whole(study.folder, "paper")[1]:
        assert ranks_of(parse(point)) == point["problem"]["workers"]


def test_the_code_has_the_infinity_norm_everywhere():
    """But for rand-tau+, which has no norm; quant is one block, with the Euclidean omega."""
    study, figure = find("saq-code-fig4")
    for grid in figure.source.grids:
        for point in grid.whole(study.folder, "quick")[1]:
            table = point["compressor"]
            inner = table.get("inner", table)
            assert inner.get("norm") == "inf" or inner["name"] == "rand-tau-plus"
            assert inner["name"] != "qsgd"
