"""Problems whose gradients are computed where they are needed, without an (m, d) array."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

import numpy as np

from mpisim.core.lazy_rows import LazyRows
from mpisim.problems.base import Problem


class LazyGradients(LazyRows):
    """Gradients at x of the block's workers, or some, with the bits of `Problem.gradients`.

    problem : an `ExplicitProblem`
    x : shape (d,), (rows, d), or (copies, d) with the points of an ensemble
    members : the workers whose gradients these rows are, all of the block unless given
    """

    def __init__(self, problem: Any, x: np.ndarray, members: np.ndarray | None = None):
        self.problem, self.x, self.members = problem, x, members
        self.workers = slice(None) if members is None else members
        rows = problem.m if members is None else len(members)
        self.shape, self.dtype = (rows, problem.d), problem.dtype
        self.one_point = x.ndim == 1
        self.point_each = x.ndim == 2 and len(x) == rows

    def __getitem__(self, workers: np.ndarray) -> LazyRows:
        members = workers if self.members is None else self.members[workers]
        return type(self)(self.problem, self.x[workers] if self.point_each else self.x, members)

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
            of: Any = other.members
            if of is self.members or np.array_equal(of, self.members):  # type: ignore[arg-type]
                return self.coordinates(ptr, indices, other.x)
        return super().take_less(other, ptr, indices)


class ExplicitProblem(Problem, rows_of_points=True):
    """A problem that gives f and single coordinates of its gradients without an (m, d) array."""

    explicit = True

    @abstractmethod
    def loss_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient (d,), float64, over all n workers and the same on every rank."""

    @abstractmethod
    def lazy_gradients(
        self, x: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray | LazyGradients:
        """`gradients`, not computed yet.

        One that is written without ``members`` computes those of ``members`` at once.
        """

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        if members is None:
            return cast(LazyGradients, self.lazy_gradients(x)).dense()
        return super().gradients(x, members=members)
