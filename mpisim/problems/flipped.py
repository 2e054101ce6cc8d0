"""The gradients that workers ask for whose labels are flipped, of the attack "label-flip"."""

from __future__ import annotations

import numpy as np

from mpisim.problems.base import Problem


class FlippedLabels:
    """A problem with ``odd_labels``, seen by workers some of which have every label flipped.

    Then f_i is x -> f_i(-x), with the gradient -grad f_i(-x). A GLM's Hessian is that at x.
    """

    def __init__(self, problem: Problem, flipped: np.ndarray):
        """flipped : which of the block's workers, shape (m,), bool"""
        self._problem = problem
        self._signs = np.where(flipped, -1.0, 1.0).astype(problem.dtype)[:, None]

    def losses(self, x: np.ndarray) -> np.ndarray:
        return self._problem.losses(self._signs * x)

    def gradients(self, x: np.ndarray) -> np.ndarray:
        return self._signs * self._problem.gradients(self._signs * x)

    def gradients_of(self, x: np.ndarray, members: np.ndarray) -> np.ndarray:
        signs = self._signs[members]
        return signs * self._problem.gradients_of(signs * x, members)

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return self._signs * self._problem.batch_gradients(self._signs * x, batch)

    def batch_gradients_of(
        self, x: np.ndarray, batch: np.ndarray, members: np.ndarray
    ) -> np.ndarray:
        signs = self._signs[members]
        return signs * self._problem.batch_gradients_of(signs * x, batch, members)

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        signs = self._signs
        return signs * self._problem.batch_changes(signs * x, signs * y, batch)
