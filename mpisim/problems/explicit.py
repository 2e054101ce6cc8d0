"""Problems that are known without an array of all workers' gradients."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from mpisim.problems.base import Problem


class ExplicitProblem(Problem):
    """A problem that gives f and single coordinates of its gradients without an (m, d) array."""

    explicit = True

    @abstractmethod
    def whole(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient (d,), float64, over all n workers and the same on every rank."""

    @abstractmethod
    def coordinates(self, x: np.ndarray, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """The coordinates indices[ptr[i]:ptr[i+1]] of worker i's gradient at x, shape (ptr[-1],).

        They have the bits of `gradients`, and the cost of each does not grow with d.
        """

    @abstractmethod
    def write_gradients(self, x: np.ndarray, first: int, out: np.ndarray) -> None:
        """Write rows first, ... of `gradients` into ``out`` (rows, d), rounded once to its type."""

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
