"""From a [sweep] table to tables of points."""

import io
import os
import signal
from itertools import product
from math import inf
from pathlib import Path

import pytest
from mpi4py import MPI

from mpisim.core.errors import InputError, OutputError
from mpisim.runs.sweep.executor import _require_shared, limits
from mpisim.runs.sweep.grid import read
from mpisim.runs.sweep.plan import plan
from mpisim.runs.sweep.points import Claims, Outcome, Point, new_claims, read_summary
from mpisim.runs.sweep.progress import Board, PointLines
from mpisim.runs.sweep.runner import Watch, choose
from tests.helpers import table
from tests.runs.sweep.support import write


def steps(points):
    return [point["method"]["stepsize"] for point in points]


def test_the_product_of_all_dimensions(tmp_path):
    sweep = """
    problem.data = ["a", "b"]
    compressor.inner.k = [4, 5]
    [[sweep.methods]]
    method = { name = "marina", p = 0.5 }
    [[sweep.methods]]
    method = { name = "diana" }
    compressor = { name = "qsgd" }
    """
    folder, points = read(write(tmp_path, sweep), [])
    assert folder == Path("logs/grid")
    result = []
    for p in points:
        assert p["compressor"]["k"] == 10 and p["run"] == {"rounds": 12}
        of_method = p["method"]["name"], p["method"].get("p"), p["compressor"]["name"]
        result.append((of_method, p["problem"]["data"], p["compressor"]["inner"]["k"]))
    pairs = ("diana", None, "qsgd"), ("marina", 0.5, "randk")
    assert sorted(result) == sorted(product(pairs, "ab", (4, 5)))


def test_multiples_are_of_theory_steps_only(tmp_path):
    sweep = """
    multiples = [0.5, 1, 4]
    [[sweep.methods]]
    method = { name = "marina" }
    [[sweep.methods]]
    method = { name = "ef", stepsize = 1 }
    """
    own = "steps = [0.1, 1]\n[[sweep.a]]\nmultiples = [2]\n[[sweep.a]]\ncompressor = { k = 5 }"
    assert steps(read(write(tmp_path, own), [])[1]) == [{"theory": 2.0}, 0.1, 1.0]
    assert steps(read(write(tmp_path, own), ["sweep.steps=[7]"])[1]) == [7.0, 7.0]
    _, points = read(write(tmp_path, sweep), [])
    assert steps(points) == [{"theory": 0.5}, "theory", {"theory": 4.0}, 1.0]


def test_settings_win_over_the_file_at_every_point(tmp_path):
    file = write(tmp_path, "run.seed = [1, 2]")
    _, points = read(file, ["run.rounds=5", "sweep.run.seed=[7, 8, 9]", "method.stepsize=3"])
    assert [p["run"] for p in points] == [{"rounds": 5, "seed": s} for s in (7, 8, 9)]
    assert steps(points) == [3.0] * 3
    folder, points = read(file, ["run.seed=4", "sweep.folder=elsewhere"])
    assert [p["run"]["seed"] for p in points] == [4, 4] and folder == Path("elsewhere")


REFUSED = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("case", REFUSED)
def test_bad_tables_are_one_line(case, tmp_path):
    sweep, line = case.split(" -> ")
    with pytest.raises(InputError) as error:
        read(write(tmp_path, sweep), [])
    assert line in str(error.value) and "\n" not in str(error.value)


EIGHT = {"theory": 8.0}


@pytest.mark.parametrize(
    ("name", "values", "lists", "expected", "given"),
    [
        ("multiples", "[1]", ("[2, 4]", ""), [{"theory": 2.0}, {"theory": 4.0}, "theory"], EIGHT),
        ("seeds", "[1, 2]", ("", "[5]"), [1, 2, 5], 8),
        ("steps", "[0.5]\nmultiples = [2, 4]", ("[1, 2]", ""), [1.0, 2.0, 0.5], 8.0),
    ],
)
def test_an_alternative_may_have_another_list(name, values, lists, expected, given, tmp_path):
    sweep = f"{name} = {values}\n"
    for k, own in enumerate(lists):
        sweep += f"[[sweep.pairs]]\ncompressor = {{ k = {k} }}\n"
        sweep += f"{name} = {own}\n" if own else ""
    table, key = ("run", "seed") if name == "seeds" else ("method", "stepsize")

    def result(*settings):
        points = read(write(tmp_path, sweep), list(settings))[1]
        return [p[table][key] for p in sorted(points, key=lambda p: p["compressor"]["k"])]

    assert result() == expected
    assert result(f"sweep.{name}=[8]") == [given, given]
    sweep = sweep.replace("".join(lists), "[-1]")
    with pytest.raises(InputError, match=rf"sweep\.pairs, number [12]\.{name}: \[-1\]"):
        result()


def points(*sizes, problems=""):
    """One for each size, and for each letter of ``problems``."""
    return [
        Point(f"p{i}", f"{i}.h5", {}, "", number=i, size=size, problem=tuple(problems[i : i + 1]))
        for i, size in enumerate(sizes)
    ]


MANY = points(*[1] * 10, 2, problems="aaaabbbbbba")
CASES = {  # points, taken, loaded, groups -> number
    "nothing is left": (MANY, range(11), "a", 2, None),
    "the problem with the most work, biggest first": (MANY, [], None, 2, 10),
    "then one that nobody has begun": (MANY, [10], None, 2, 4),
    "a loaded problem is kept": (MANY, [4, 10], "a", 2, 0),
    "also if it has the least work left": (MANY, [4, 10, 0, 1], "a", 2, 2),
    "when it has no more, the most work left": (MANY, [4, 10, 0, 1, 2, 3], "a", 2, 5),
    "all are begun: help with the most work": (MANY, [4, 10], None, 3, 5),
    "what others would wait for goes first": (points(1, 1, 1, 5, problems="aaab"), [0], "a", 2, 3),
    "but not if there is enough else": (points(*[1] * 9, 5, problems="aaaaaaaaab"), [0], "a", 2, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_next_point(name):
    several, taken, loaded, groups, number = CASES[name]
    point = choose(several, set(taken), loaded and (loaded,), groups)
    assert (point and point.number) == number


def test_the_memory_of_a_point_is_that_of_its_vectors_or_matrices(tmp_path):
    """Four for each of 20 workers, with d = 100 numbers or the d (d + 1) / 2 of a triangle."""
    problem = {"name": "quadratic", "workers": 20, "dimension": 100, "lambda": 1.0}
    fednl = {"name": "fednl", "hessian": {"name": "topk", "k": 9}}
    tables = [table(method | {"stepsize": 1.0}) for method in ({"name": "gd"}, fednl)]
    grid = [one | {"problem": problem} for one in tables]
    needed = {point.bytes for point in plan(tmp_path, grid, 1)}
    assert needed == {4 * 20 * 100 * 8, 4 * 20 * 5050 * 8}


@pytest.mark.parametrize(
    ("needed", "groups", "free", "most"),
    [
        ([1, 1, 9], 2, 10, [inf, inf]),  # the largest two fit
        ([9, 9, 1], 2, 10, [inf, 1]),  # one big point at a time; small ones beside it
        ([9, 9, 9, 9], 4, 24, [inf, 5, 5, 5]),
        ([9, 9], 2, 5, [inf, 0]),  # one at least, whatever is free
        ([0, 0], 2, 0, [inf, inf]),  # nothing is known
        ([], 2, 0, [inf, inf]),
    ],
)
def test_big_points_do_not_multiply(needed, groups, free, most, capsys):
    several = [Point("p", "", {}, "", number=i, bytes=size) for i, size in enumerate(needed)]
    assert limits(several, groups, free, print) == most
    assert (capsys.readouterr().out != "") == (most != [inf] * groups)


@pytest.fixture
def claims(tmp_path):
    with new_claims(tmp_path) as made:
        yield made


def test_a_point_is_claimed_once(tmp_path):
    killed = tmp_path / ".side-by-side-0"
    killed.mkdir()
    (killed / "3.taken").touch()
    with new_claims(tmp_path) as claims:
        assert not killed.exists() and claims.taken() == set()
        other = Claims(claims.folder)
        assert claims.take(3) and not other.take(3) and other.take(12)
        assert claims.taken() == {3, 12}
        other.end(12, Outcome("skipped", "no data", 1.5))
        assert claims.ended(()) == {12: ("skipped", "no data", 1.5, False, "")}
        assert claims.ended({12}) == {}
        with new_claims(tmp_path) as of_another_sweep:
            assert of_another_sweep.take(3) and claims.folder.is_dir()
    assert not any(tmp_path.iterdir())
    with pytest.raises(OutputError, match=r"side-by-side-\w+: cannot be used: No such file"):
        claims.take(4)


def test_a_folder_that_is_not_shared(tmp_path, claims):
    elsewhere = Claims(tmp_path / "another")
    _require_shared(MPI.COMM_SELF, claims, True)
    _require_shared(MPI.COMM_SELF, elsewhere, False)
    with pytest.raises(InputError, match=r"is not shared with .*--ranks-per-run 1 runs one after"):
        _require_shared(MPI.COMM_SELF, elsewhere, True)


@pytest.mark.parametrize(
    ("parent", "also", "stop", "number"),
    [
        (os.getppid(), 0, "", 0),
        (os.getppid(), signal.SIGINT, "", signal.SIGINT),
        (os.getppid(), 0, "interrupted", signal.SIGINT),
        (-1, 0, "", signal.SIGTERM),  # mpirun was killed; its ranks do not go on alone
    ],
)
def test_a_group_stops_with_the_others(parent, also, stop, number, claims):
    if stop:
        claims.stop(stop)
    assert Watch(claims, lambda: also, parent)() == number


def test_one_line_of_progress(tmp_path, capsys, claims):
    several, stream = points(8, 1, 1, 2, 0), io.StringIO()
    several[4].end(Outcome("skipped", "no"))
    times = iter([100.0, 101.0, 111.0])
    how = claims, PointLines(several), "", True, stream
    board = Board(tmp_path, several[:4], *how, clock=lambda: next(times))
    claims.take(0)
    claims.take(1)
    board.update()
    assert stream.getvalue() == "" == capsys.readouterr().out
    claims.end(0, Outcome("diverged", "", 4.0))
    claims.take(2)
    board.update()
    assert capsys.readouterr().out == "[1/5] 0.h5: diverged in 4.0 s\n"
    # 8 of 12 in 11 s
    line = "1 of 5 points done (1 diverged), 2 running, 1 failed, about 5.5 s left\n"
    assert stream.getvalue() == line
    assert [p.status for p in read_summary(tmp_path)] == ["diverged", "", "", "", "skipped"]
