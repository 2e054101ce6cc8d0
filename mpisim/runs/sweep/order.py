"""Which point a group of ranks takes next, and how many of the big ones fit into memory at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Hashable, Sequence
from math import inf


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


def choose(
    works: Sequence[Work], taken: Collection[int], loaded: Hashable, groups: int
) -> Work | None:
    """The point that a free group takes; None if all are taken.

    The biggest point of the problem that the group has ``loaded``. If there is none, the group
    turns to the problem with the most work among those that nobody has begun, or, failing that,
    among all. A point that is larger than the group's share of what is left goes first, whatever is
    loaded: if it started last, the others would wait for it.
    """
    waiting = [work for work in works if work.number not in taken]
    if not waiting:
        return None
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
