"""From a [sweep] table to tables of points."""

from itertools import product
from operator import itemgetter
from pathlib import Path

import pytest

from mpisim.core.errors import InputError
from mpisim.runs.sweep.grid import read
from tests.runs.sweep.support import write


def steps(points):
    return [point["method"]["stepsize"] for point in points]


def test_the_product_of_all_dimensions(tmp_path):
    sweep = """
    problem.data = ["a", "b"]
    run.seed = [1, 2, 3]
    compressor.inner.k = [4, 5]
    [[sweep.methods]]
    method = { name = "marina", p = 0.5 }
    [[sweep.methods]]
    method = { name = "diana" }
    compressor = { name = "qsgd" }
    """
    folder, points = read(write(tmp_path, sweep), [])
    assert folder == Path("logs/grid")
    result = [
        ((m["name"], c["name"]), problem["data"], run["seed"], c["inner"]["k"])
        for m, c, problem, run in map(itemgetter("method", "compressor", "problem", "run"), points)
    ]
    pairs = [("marina", "randk"), ("diana", "qsgd")]
    assert sorted(result) == sorted(product(pairs, "ab", (1, 2, 3), (4, 5)))
    assert all(p["run"]["rounds"] == 12 and p["compressor"]["k"] == 10 for p in points)
    assert all(("p" in p["method"]) == (p["method"]["name"] == "marina") for p in points)


def test_multiples_are_of_theory_steps_only(tmp_path):
    sweep = """
    multiples = [0.5, 1, 4]
    [[sweep.methods]]
    method = { name = "marina" }
    [[sweep.methods]]
    method = { name = "ef", stepsize = 1 }
    """
    _, points = read(write(tmp_path, sweep), [])
    assert steps(points) == [{"theory": 0.5}, "theory", {"theory": 4.0}, 1.0]


def test_settings_win_over_the_file_at_every_point(tmp_path):
    file = write(tmp_path, "run.seed = [1, 2]")
    _, points = read(file, ["run.rounds=5", "sweep.run.seed=[7, 8, 9]", "method.stepsize=3"])
    assert [p["run"] for p in points] == [{"rounds": 5, "seed": s} for s in (7, 8, 9)]
    assert steps(points) == [3.0] * 3
    _, points = read(file, ["run.seed=4", "sweep.folder=elsewhere"])
    assert [p["run"]["seed"] for p in points] == [4, 4]
    assert read(file, ["sweep.folder=elsewhere"])[0] == Path("elsewhere")


REFUSED = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("case", REFUSED)
def test_bad_tables_are_one_line(case, tmp_path):
    sweep, line = case.split(" -> ")
    with pytest.raises(InputError) as error:
        read(write(tmp_path, sweep), [])
    assert line in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "all_points", "first", "second", "given"),
    [
        ("multiples", "[1]", "[2, 4]", "", [{"theory": 8.0}]),
        ("seeds", "[1, 2]", "", "[5]", [8]),
        ("steps", "[0.5]\nmultiples = [2, 4]", "[1, 2]", "", [8.0]),  # numbers have no multiples
    ],
)
def test_an_alternative_may_have_another_list(name, all_points, first, second, given, tmp_path):
    lists = [f"{name} = {values}" if values else "" for values in (first, second)]
    pairs = (f"[[sweep.pairs]]\ncompressor = {{ k = {k} }}\n{lists[k - 1]}\n" for k in (1, 2))
    sweep = f"{name} = {all_points}\n" + "".join(pairs)
    table, key = ("run", "seed") if name == "seeds" else ("method", "stepsize")

    def result(*settings):
        points = read(write(tmp_path, sweep), list(settings))[1]
        return [(p["compressor"]["k"], p[table][key]) for p in points]

    expected = {"seeds": [(1, 1), (1, 2), (2, 5)], "steps": [(1, 1.0), (1, 2.0), (2, 0.5)]}
    expected["multiples"] = [(1, {"theory": 2.0}), (1, {"theory": 4.0}), (2, "theory")]
    assert result() == expected[name]
    assert result(f"sweep.{name}=[8]") == [(k, value) for k in (1, 2) for value in given]
    sweep = sweep.replace(first or second, "[-1]")
    with pytest.raises(InputError, match=rf"sweep\.pairs, number [12]\.{name}: \[-1\]"):
        result()
