"""Which point a group of ranks takes next, and how many of the big ones fit into memory at once."""

from __future__ import annotations

import dataclasses
import tomllib
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from math import inf

from mpisim.core.machine import gigabytes
from mpisim.runs.experiment import Experiment, parse
from mpisim.runs.preview import dimension
from mpisim.runs.setup import problem_key
from mpisim.runs.sweep.points import Point

ROUND = 100_000  # numbers in whose time a round does what does not grow with n or d
STATES = 4  # arrays (n, d) of a method with dense state: h, a gradient, a difference, a message


@dataclasses.dataclass(frozen=True)
class Work:
    """What is known of a point before it runs.

    number : of the point in the plan
    size : of the run, relative to others: rounds x (a constant + workers x dimension)
    bytes : that the run takes at most, as far as this is known; 0 if it is not
    problem : equal for points with the same problem
    """

    number: int
    size: float
    bytes: float
    problem: Hashable


def works_of(points: Sequence[Point], numbers: Iterable[int]) -> list[Work]:
    """The `Work` of the points with these numbers."""
    return [_work(number, parse(tomllib.loads(points[number].config))) for number in numbers]


def _work(number: int, experiment: Experiment) -> Work:
    run, d = experiment.run, dimension(experiment)
    n = getattr(experiment.problem, "workers", None) or 1
    state = float(STATES * n * d * run.precision.arithmetic.itemsize)
    size = float(run.rounds * (ROUND + n * max(d, 1)))
    return Work(number, size, state, problem_key(experiment))


def choose(
    works: Sequence[Work], taken: Collection[int], loaded: Hashable, groups: int
) -> Work | None:
    """The point that a free group takes; None if all are taken.

    The first of the plan if there is one group. Else the biggest point of the problem that the
    group has ``loaded``. If there is none, the group turns to the problem with the most work among
    those that nobody has begun, or, failing that, among all. A point that is larger than the
    group's share of what is left goes first, whatever is loaded: if it started last, the others
    would wait for it.
    """
    waiting = [work for work in works if work.number not in taken]
    if not waiting or groups == 1:
        return waiting[0] if waiting else None
    left: dict[Hashable, float] = {}
    for work in waiting:
        left[work.problem] = left.get(work.problem, 0.0) + work.size
    largest = _largest(waiting)
    if largest.size * groups > sum(left.values()):
        return largest
    problem = loaded
    if loaded not in left:
        begun = {work.problem for work in works if work.number in taken}
        fresh = [problem for problem in left if problem not in begun]
        problem = max(fresh or left, key=lambda problem: left[problem])
    return _largest([work for work in waiting if work.problem == problem])


def _largest(works: Sequence[Work]) -> Work:
    return max(works, key=lambda work: (work.size, -work.number))


def limits(works: Sequence[Work], groups: int, available: float) -> list[float]:
    """The bytes that a point may need at most to be taken by each group, shape (groups,).

    No limit if any points fit side by side. Else the first groups, as many as the largest points
    leave half of the memory to, take any point (the first one in any case), and the others those
    that fit into their share of the rest.
    """
    needed = sorted((work.bytes for work in works), reverse=True)
    if not needed or sum(needed[:groups]) <= available:
        return [inf] * groups
    many = max(1, min(groups - 1, int(available / 2 // needed[0])))
    rest = max(0.0, available - many * needed[0])
    return [inf] * many + [rest / (groups - many)] * (groups - many)


def share(leaders: Sequence[tuple[str, float]]) -> float:
    """The bytes that all runs may take together, from each group's machine and what is free there.

    As if all machines were as small, for each group, as the smallest.
    """
    on_machine = Counter(machine for machine, _ in leaders)
    return len(leaders) * min(free / on_machine[machine] for machine, free in leaders)


def say_what_fits(works: Sequence[Work], most: Sequence[float], free: float) -> None:
    """Print a line if not all groups can take all points."""
    largest = max(work.bytes for work in works)
    able = sum(largest <= limit for limit in most)
    if able < len(most):
        big = sum(work.bytes > min(most) for work in works)
        print(
            f"{big} of {len(works)} points need up to {gigabytes(largest)} each, {gigabytes(free)}"
            f" are free: {able} of them at a time, not {len(most)}",
            flush=True,
        )
