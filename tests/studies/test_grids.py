"""The grids of the studies have the settings of the papers, which grids.toml lists."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.labels import flatten
from run.marina import fig1

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


@pytest.mark.real
@pytest.mark.parametrize("data", fig1.ORDER)
def test_the_regulariser_is_the_published_one(data, need_data):
    need_data(data)
    point = next(p for p in points_of("marina-fig1", "quick")[1] if p["problem"]["data"] == data)
    problem = parse(point).problem.loaded(5, 0, 5, 1, np.dtype(np.float64))
    without = problem.published_norms().max() - problem.l2
    assert problem.l2 == pytest.approx(1e-6 * without, rel=1e-6)
