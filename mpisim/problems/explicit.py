"""Problems whose gradients are computed where they are needed, without an (m, d) array."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mpisim.core.lazy_rows import LazyRows
from mpisim.problems.base import Problem


class LazyGradients(LazyRows):
    """The gradients of the block's workers at x, with the bits of `Problem.gradients`.

    problem : an `ExplicitProblem`
    x : shape (d,), (m, d), or (copies, d) with the points of an ensemble
    """

    def __init__(self, problem: Any, x: np.ndarray):
        self.problem, self.x = problem, x
        self.shape, self.dtype = (problem.m, problem.d), problem.dtype

    @abstractmethod
    def coordinates(
        self, ptr: np.ndarray, indices: np.ndarray, before: np.ndarray | None
    ) -> np.ndarray:
        """`take`, minus the same at the point ``before`` unless that is None.

        The cost of each coordinate does not grow with d.
        """

    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return self.coordinates(ptr, indices, None)

    def take_less(
        self, other: LazyRows | np.ndarray, ptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        if isinstance(other, LazyGradients) and other.problem is self.problem:
            return self.coordinates(ptr, indices, other.x)
        return super().take_less(other, ptr, indices)


class ExplicitProblem(Problem, rows_of_points=True):
    """A problem that gives f and single coordinates of its gradients without an (m, d) array."""

    explicit = True

    @abstractmethod
    def loss_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient (d,), float64, over all n workers and the same on every rank."""

    @abstractmethod
    def lazy_gradients(self, x: np.ndarray) -> LazyGradients:
        """`gradients` at x (d,) or (m, d), not computed yet."""

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        if members is None:
            return self.lazy_gradients(x).dense()
        return super().gradients(x, members=members)
