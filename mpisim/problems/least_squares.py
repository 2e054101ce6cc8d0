"""Linear regression."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from mpisim.problems.base import problem
from mpisim.problems.glm import Glm
from mpisim.problems.gram import WeightedGram
from mpisim.problems.loss_kernels import SQUARES


@problem("least-squares", "least squares")
class LeastSquares(Glm):
    """f_i(x) = (1 / 2) mean (a . x - y)^2 + (l2 / 2) |x|^2, or the sum over the rows.

    With ``reduction = "sum"`` (PermK paper, A.8.1) the mean over a minibatch is multiplied by the
    worker's number of rows, so that it remains an unbiased estimate of the gradient.
    """

    reduction: Literal["mean", "sum"] = "mean"

    kind = SQUARES
    curvature = 1.0
    labels = "real"
    convex = True
    attained = "everywhere"
    published: ClassVar[Literal["one", "mean", "sharp"]] = "mean"

    def weight(self, count: np.ndarray) -> np.ndarray:
        return np.ones(len(count)) if self.reduction == "sum" else super().weight(count)

    def hessian(self, x: np.ndarray) -> WeightedGram:
        """(1 / r_i) A_i^T A_i + l2 I, at every x."""
        return self.largest_hessian()
