"""The demo's data, its second grid, and its picture."""

import tomllib
from pathlib import Path

import numpy as np

from mpisim.problems.data import libsvm
from mpisim.runs.sweep import grid as sweeps
from tools.demo import __main__ as demo
from tools.demo import words

GRID = tomllib.loads((Path(demo.__file__).with_name("grid.toml")).read_text())


def test_words():
    """Rows of norm 1, the same each time; each topic has frequent words of its own."""
    text = words.libsvm(topics=2)
    assert text == words.libsvm(topics=2)
    table = libsvm.parse(text.encode(), "words")
    assert table.rows == 2 * words.ROWS and table.features <= words.WORDS
    assert set(np.unique(table.labels)) == {-1, 1}
    norms = [sum(float(e.split(":")[1]) ** 2 for e in row.split()[1:]) for row in text.splitlines()]
    assert np.allclose(norms, 1, atol=1e-2)
    rows = [{e.split(":")[0] for e in row.split()[1:]} for row in text.splitlines()]
    first, second = (set.union(*rows[i : i + words.ROWS]) for i in (0, words.ROWS))
    assert len(first & second) < 0.5 * len(first)


def test_each_method_is_repeated_at_its_step_on_all_ranks():
    steps = {one["method"]["name"]: 2.0**k for k, one in enumerate(GRID["sweep"]["methods"])}
    _, points = sweeps.points(demo.repeated(GRID, steps), [], "logs")
    assert len(points) == len(demo.SEEDS) * len(steps)
    for point in points:
        assert point["method"]["stepsize"] == steps[point["method"]["name"]]
        assert point["run"]["ranks"] == "all" and point["run"]["stop"] == GRID["run"]["stop"]
    assert GRID["run"]["stop"] == {demo.TARGET.y: demo.TARGET.level}


def test_every_method_has_the_same_steps_and_a_curve():
    assert all(one.keys() <= {"method", "compressor"} for one in GRID["sweep"]["methods"])
    assert "gd" in {one["method"]["name"] for one in GRID["sweep"]["methods"]}
