"""How long a point takes compared with others, and how much memory, before it has run."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence

from mpisim.runs.cache import problem_key
from mpisim.runs.experiment import Experiment, parse
from mpisim.runs.headline import dimension
from mpisim.runs.sweep.order import Work
from mpisim.runs.sweep.points import Point

ROUND = 100_000  # numbers in whose time a round does what does not grow with n or d
STATES = 4  # arrays (n, d) of a method with dense state: h, a gradient, a difference, a message


def works_of(points: Sequence[Point], numbers: Iterable[int]) -> list[Work]:
    """The `Work` of the points with these numbers."""
    return [_work(number, parse(tomllib.loads(points[number].config))) for number in numbers]


def _work(number: int, experiment: Experiment) -> Work:
    run, d = experiment.run, dimension(experiment)
    n = getattr(experiment.problem, "workers", None) or 1
    state = float(STATES * n * d * run.precision.arithmetic.itemsize)
    size = float(run.rounds * (ROUND + n * max(d, 1)))
    return Work(number, size, state, problem_key(experiment))
