"""What the lines of a sweep call its points, and the time that they say is left."""

from __future__ import annotations

import pytest

from mpisim.runs.experiment import parse
from mpisim.runs.sweep.points import Point
from mpisim.runs.sweep.progress import Pace, name_of, time_left
from tests.helpers import table

MARINA = {"name": "marina", "stepsize": 0.1}
CASES = [
    (MARINA, {"name": "rand-k", "k": 10}, {}, "MARINA RandK"),
    (
        MARINA,
        {"name": "randk", "k": 10},
        {"run.seed": 3, "method.name": "marina", "compressor.k": 10},
        "MARINA RandK k=10 seed 3",
    ),
    (
        {"name": "ef21-bc", "stepsize": 0.1},
        {"name": "topk", "k": 2},
        {"method.stepsize": {"theory": 4.0}, "problem.data": "data/sample", "title": "x"},
        "EF21 (two-way) TopK sample 4 × theory",
    ),
    (
        {"name": "diana", "stepsize": 0.1},
        {"name": "smooth", "inner": {"name": "quant-plus", "beta": 20.0}},
        {"method.stepsize": 0.125, "compressor.inner.beta": 20.0, "run.seed": 1},
        "DIANA smooth inner.beta=20 step 0.125 seed 1",
    ),
    ({"name": "gd", "stepsize": "theory"}, None, {"method.stepsize": "theory"}, "GD 1 × theory"),
]


@pytest.mark.parametrize(("method", "compressor", "settings", "name"), CASES)
def test_a_point_is_called_by_what_varies(method, compressor, settings, name):
    config = parse(table(method, compressor, problem={"name": "logistic"})).to_toml()
    assert name_of(Point("marina-randk-0", "x.h5", settings, config)) == name


def test_a_point_that_is_no_experiment():
    assert name_of(Point("marina-sample", "", {}, "")) == "marina-sample"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((10.0, 0.0, 5.0, 5.0), ""),
        ((10.0, 4.0, 2.0, 0.0), ", about 5.0 s left"),
        ((10.0, 4.0, 2.0, 22.0), ", about 5.0 s left, 1 min 00 s with all groups"),
    ],
)
def test_time_left(numbers, text):
    assert time_left(*numbers) == text


def test_points_take_as_long_as_those_of_their_size():
    """Size 100 in 10 s, size 1 in 5 s: not 1/100 of it. Two at a time, so half of what is left."""
    pace = Pace({0: 100.0, 1: 1.0, 2: 1.0, 3: 100.0, 4: 1.0}, 0.0)
    assert pace.left(1.0) == ""
    pace.ran(0, 10.0)
    assert pace.left(5.0) == ", about 5.2 s left"  # 100 took 5 s, 103 are left
    pace.ran(1, 4.0)
    pace.ran(2, 6.0)
    assert pace.left(10.0) == ", about 7.5 s left"  # runs of 10 and of 5 s


def test_points_that_took_no_time():
    pace = Pace({0: 2.0, 1: 4.0}, 0.0)
    pace.ran(0, 0.0)
    assert pace.left(3.0) == ", about 6.0 s left"
