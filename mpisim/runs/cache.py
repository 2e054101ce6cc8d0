"""What a run keeps loaded for the next one: its problem, the constants, the minimiser."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.comm.side_channel import SideChannel
from mpisim.comm.star import Star
from mpisim.problems.base import Problem
from mpisim.runs.experiment import Experiment
from mpisim.theory.minimiser import minimiser
from mpisim.theory.smoothness import Bound, Constants, constants


class ProblemCache:
    """The last problem loaded on this rank; a run with an equal problem reuses it.

    Problems are equal if their ``[problem]`` tables, workers, blocks, arithmetic and, if it matters
    to the problem, seeds are equal. Methods that take a ``star`` are collective when they compute,
    so all ranks must call them in the same order.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._problem: Problem | None = None
        self._constants: dict[Bound, Constants] = {}
        self._minimiser: tuple[np.ndarray, float] | None = None

    def problem(self, experiment: Experiment, blocks: SideChannel) -> Problem:
        """The experiment's problem, loaded for this rank's workers; `InputError` as `load` says."""
        # all starts, not this rank's block alone: ranks that keep a problem must all keep it, or
        # some would skip an exchange that others make
        key = (*problem_key(experiment), blocks.rank, *blocks.starts.tolist())
        if self._problem is None or key != self._key:
            self._problem, self._constants, self._minimiser = (
                None,
                {},
                None,
            )  # free the memory first
            block, run = (blocks.n, blocks.first, blocks.m), experiment.run
            self._problem = experiment.problem.loaded(*block, run.seed, run.precision.arithmetic)
            self._key = key
        return self._problem

    def constants(self, star: Star, bound: Bound = "sharp") -> Constants:
        """The smoothness constants of the problem; `InputError` if none are known."""
        assert self._problem is not None
        if bound not in self._constants:
            self._constants[bound] = constants(self._problem, star, bound)
        return self._constants[bound]

    def minimiser(self, star: Star) -> tuple[np.ndarray, float]:
        """x* and f(x*); `InputError` if the problem is not convex."""
        assert self._problem is not None
        if self._minimiser is None:
            self._minimiser = minimiser(self._problem, star)
        return self._minimiser


def problem_key(experiment: Experiment) -> tuple[Any, ...]:
    """Equal for experiments whose problems are the same on the same ranks."""
    seed = experiment.run.seed if experiment.problem.seeded else None
    return repr(experiment.table["problem"]), experiment.run.dtype, seed
