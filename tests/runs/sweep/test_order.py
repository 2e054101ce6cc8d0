"""Which point is taken next, and how many fit into memory."""

from math import inf

import pytest

from mpisim.runs.sweep.order import Work, choose, limits


def works(*sizes_and_problems):
    return [Work(i, size, 0, problem) for i, (size, problem) in enumerate(sizes_and_problems)]


MANY = works(*[(1, "a")] * 4, *[(1, "b")] * 6, (2, "a"))
CASES = {  # points, taken, loaded, groups -> number
    "nothing is left": (MANY, range(11), "a", 2, None),
    "the problem with the most work, biggest first": (MANY, [], None, 2, 10),
    "then one that nobody has begun": (MANY, [10], None, 2, 4),
    "a loaded problem is kept": (MANY, [4, 10], "a", 2, 0),
    "also if it has the least work left": (MANY, [4, 10, 0, 1], "a", 2, 2),
    "when it has no more, the most work left": (MANY, [4, 10, 0, 1, 2, 3], "a", 2, 5),
    "all are begun: help with the most work": (MANY, [4, 10], None, 3, 5),
    "what the others would wait for goes first": (
        works((1, "a"), (1, "a"), (1, "a"), (5, "b")),
        [0],
        "a",
        2,
        3,
    ),
    "but not if there is enough else to do": (
        works(*[(1, "a")] * 9, (5, "b")),
        [0],
        "a",
        2,
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_next_point(name):
    points, taken, loaded, groups, number = CASES[name]
    found = choose(points, set(taken), loaded, groups)
    assert (found and found.number) == number


def test_all_are_taken_once_and_problems_are_not_loaded_anew():
    taken, loads = [], []
    loaded = [None, None]
    while (work := choose(MANY, taken, loaded[group := len(taken) % 2], 2)) is not None:
        taken.append(work.number)
        loads += [work.problem] if loaded[group] != work.problem else []
        loaded[group] = work.problem
    assert sorted(taken) == list(range(11)) and len(loads) <= 3


@pytest.mark.parametrize(
    ("needed", "groups", "free", "found"),
    [
        ([1, 1, 1], 2, 2, [inf, inf]),
        ([1, 1, 9], 2, 10, [inf, inf]),  # the largest two fit
        ([9, 9, 1], 2, 10, [inf, 1]),  # one big point at a time; small ones beside it
        ([9, 9, 1], 3, 36, [inf, inf, inf]),
        ([9, 9, 9, 9], 4, 24, [inf, 5, 5, 5]),
        ([4, 4, 4, 4], 4, 15, [inf, 11 / 3, 11 / 3, 11 / 3]),
        ([9, 9], 2, 5, [inf, 0]),  # one at least, whatever is free
        ([0, 0], 2, 0, [inf, inf]),  # nothing is known
        ([], 2, 0, [inf, inf]),
    ],
)
def test_big_points_do_not_multiply(needed, groups, free, found):
    points = [Work(i, 1, size, "a") for i, size in enumerate(needed)]
    assert limits(points, groups, free) == found
