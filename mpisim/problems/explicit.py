"""Problems that give single coordinates of their gradients, without an (m, d) array."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from mpisim.problems.base import Problem


class ExplicitProblem(Problem, rows_of_points=True):
    """A problem that gives f and single coordinates of its gradients without an (m, d) array."""

    explicit = True

    @abstractmethod
    def loss_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient (d,), float64, over all n workers and the same on every rank."""

    @abstractmethod
    def coordinates(self, x: np.ndarray, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """The coordinates indices[ptr[i]:ptr[i+1]] of worker i's gradient at x, shape (ptr[-1],).

        x : shape (d,) or (m, d)

        They have the bits of `gradients`, and the cost of each does not grow with d.
        """

    @abstractmethod
    def write_gradients(self, x: np.ndarray, first: int, out: np.ndarray) -> None:
        """Write rows first, ... of `gradients` into ``out`` (rows, d), rounded once to its type.

        x : shape (d,), or (m, d) with the points of all workers
        """

    def gradients(self, x: np.ndarray) -> np.ndarray:
        out = np.empty((self.m, self.d), self.dtype)
        self.write_gradients(x, 0, out)
        return out

    def coordinate_changes(
        self, x: np.ndarray, y: np.ndarray, ptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        """`coordinates` at x minus those at y, to the bit."""
        return self.coordinates(x, ptr, indices) - self.coordinates(y, ptr, indices)

    def subtract_gradients(
        self, x: np.ndarray, first: int, less: np.ndarray, out: np.ndarray
    ) -> None:
        """Write rows first, ... of `gradients` minus the rows ``less`` into ``out`` (rows, d)."""
        self.write_gradients(x, first, out)
        out -= less

    def largest_differences(
        self, x: np.ndarray, less: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The k largest of each row of `gradients` minus ``less`` (m, d), found in one pass.

        Indices and values as from `mpisim.core.lazy_rows.LazyRows.largest`; None if the problem has
        no pass of its own for this k.
        """
        return None

    def largest_innovations(
        self, x: np.ndarray, state: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """`largest_differences`, from bounds kept while ``state`` changes as `innovations` says."""
        return None
