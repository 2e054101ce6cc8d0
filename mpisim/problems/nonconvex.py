"""Binary classification with a bounded, non-convex loss."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from mpisim.problems.base import problem
from mpisim.problems.glm import Glm
from mpisim.problems.loss_kernels import NONCONVEX


# phi = (1 - s)^2 with s = sigma(z): phi'' = 2 s (1 - s)^2 (3 s - 1), and its derivative vanishes
# where 12 s^2 - 9 s + 1 = 0. The larger root gives the larger |phi''|, about 0.15406.
def _second(s: float) -> float:
    return 2 * s * (1 - s) * (1 - s) * (3 * s - 1)


CURVATURE = _second((9 + sqrt(33)) / 24)
LEAST_CURVATURE = _second((9 - sqrt(33)) / 24)
PUBLISHED_CURVATURE = 0.15405


@problem("nonconvex-loss", "non-convex loss")
class NonconvexLoss(Glm):
    """f_i(x) = mean (1 - 1 / (1 + exp(-y a . x)))^2 + (l2 / 2) |x|^2 (MARINA, (11), has l2 = 0)."""

    kind = NONCONVEX
    slope = 8 / 27  # 2 s (1 - s)^2 at s = 1/3
    curvature = CURVATURE
    spread = (LEAST_CURVATURE / CURVATURE, 1.0)
    published: ClassVar[Literal["one", "mean", "sharp"]] = "one"

    def published_norms(self) -> np.ndarray:
        """0.15405 max_t |a_t|^2 + l2, as in the MARINA experiments."""
        return PUBLISHED_CURVATURE * self.design.largest_norms_sq() + self.l2
