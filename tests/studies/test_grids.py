"""The grids of the studies have the settings of the papers, which grids.toml lists."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.labels import flatten
from mpisim.runs.preview import ranks_of
from run.marina import fig1
from run.saq import curves, schemes, table2

# SAQ, Table 2
WORKERS = {"german.numer": 4, "svmguide3": 4, "splice": 6, "a9a": 8, "w8a": 8, "covtype": 6}
SEEDS = {"seconds": (3, 3), "table2": (1, 1)}  # quick and paper; of other grids 5
GRIDS = tomllib.loads(Path(__file__).with_name("grids.toml").read_text())


def points_of(name, scale):
    study, figure = find(name)
    return figure.source.all_points(study.folder, scale)


@pytest.mark.parametrize(("name", "scale"), [(name, s) for name in GRIDS for s in GRIDS[name]])
def test_settings(name, scale):
    wanted = flatten(GRIDS[name][scale])
    folder, points = points_of(name, scale)
    assert wanted.pop("logs", str(folder)) == str(folder) and wanted.pop("points") == len(points)
    flat = list(map(flatten, points))
    for key, values in wanted.items():
        seen = {str(one[key]) for one in flat if key in one}
        seen = seen or {str(flatten(parse(point).table)[key]) for point in points}  # a default
        assert seen == {str(value) for value in values}, key


def test_settings_that_depend_on_each_other():
    for point in points_of("marina-fig1", "quick")[1]:  # the same bits for all
        assert point["run"]["rounds"] * 32 == point["run"]["stop"]["bits_up"]
    for name, condition in (("permk-fig1", None), ("permk-fig3", "PL")):  # Theorem 5's step
        steps = [point["method"]["stepsize"] for point in points_of(name, "paper")[1]]
        assert {dict(s).get("condition") for s in steps if s != "theory"} == {condition}
    for method in (point["method"] for point in points_of("cdadam-fig1", "quick")[1]):
        assert method["stepsize"] == (0.1 if method["name"] == "ef21-2way" else 1e-4)


@pytest.mark.parametrize(
    ("one", "others"),
    [("permk-fig1", (4, 6)), ("permk-fig3", (5, 7)), ("permk-fig8", (9, 10))],
)
def test_figures_share_their_runs(one, others):
    study, _, _ = one.partition("-")
    for other in others:
        for scale in ("quick", "paper"):
            folder, points = points_of(f"{study}-fig{other}", scale)
            assert (folder, points) == points_of(one, scale)


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("name", ["saq-fig4", "saq-code-fig4", "saq-table2"])
def test_saqs_grids(name, scale):
    """Table 2's data and workers, Section B.1's setting, 5 seeds and 5,000 rounds."""
    study, figure = find(name)
    paper = scale == "paper"
    assert str(figure.source.folder(study.folder)) == "logs/saq"
    drawn = set()
    for grid in figure.source.grids:
        points = grid.all_points(study.folder, scale)[1]
        data = {"a8a": "a9a"} if "code" in grid.file else {}
        sets = {p["problem"]["data"]: p["problem"]["workers"] for p in points}
        assert {data.get(name, name): n for name, n in sets.items()} == WORKERS
        assert (
            len({point["run"].get("seed", 1) for point in points})
            == SEEDS.get(grid.file, (5, 5))[paper]
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


def test_the_code_has_the_infinity_norm_everywhere():
    """But for rand-tau+, which has no norm; quant is one block, with the Euclidean omega."""
    study, figure = find("saq-code-fig4")
    for grid in figure.source.grids:
        for point in grid.all_points(study.folder, "quick")[1]:
            table = point["compressor"]
            inner = table.get("inner", table)
            assert inner.get("norm") == "inf" or inner["name"] == "rand-tau-plus"
            assert inner["name"] != "qsgd"


@pytest.mark.real
@pytest.mark.parametrize("data", fig1.ORDER)
def test_the_regulariser_is_the_published_one(data, need_data):
    need_data(data)
    point = next(p for p in points_of("marina-fig1", "quick")[1] if p["problem"]["data"] == data)
    problem = parse(point).problem.loaded(5, 0, 5, 1, np.dtype(np.float64))
    without = problem.published_norms().max() - problem.l2
    assert problem.l2 == pytest.approx(1e-6 * without, rel=1e-6)
