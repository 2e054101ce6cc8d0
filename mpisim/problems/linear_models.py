"""The generalized linear models: logistic regression, of two classes or more, a bounded non-convex
loss, least squares."""

from __future__ import annotations

import dataclasses
import itertools
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np

from mpisim.core.protocols import Matrices
from mpisim.core.schema import require
from mpisim.problems import loss_kernels
from mpisim.problems.base import Problem, problem
from mpisim.problems.data.prepared import Shards
from mpisim.problems.glm import Glm
from mpisim.problems.hessians import ClassMatrices, WeightedGram
from mpisim.problems.loss_kernels import DOTS, PRODUCT, sigmoid
from mpisim.problems.sweeps import probabilities


class _Logistic(Glm):
    kind = loss_kernels.LOGISTIC
    slope = 1.0  # sigma(-z)
    curvature = 0.25  # sigma (1 - sigma), largest for every row at once at x = 0
    spread = (0.0, 1.0)
    attained = "origin"


@problem("logistic", "logistic loss")
class Logistic(_Logistic):
    """f_i(x) = mean log(1 + exp(-y a . x)) + (l2 / 2) |x|^2 (SAQ, section 5)."""

    convex = True
    in_ensembles = True

    def hessian(self, x: np.ndarray) -> WeightedGram:
        """(1 / r_i) sum_t sigma(z_t) sigma(-z_t) a_t a_t^T + l2 I."""
        z = self.margins(x)
        return WeightedGram(self.design, self._scale, sigmoid(z) * sigmoid(-z), self.l2)


@problem("logistic-nonconvex-reg", "logistic loss, non-convex regulariser")
class LogisticNonconvexReg(_Logistic):
    """f_i(x) = mean log(1 + exp(-y a . x)) + lambda sum_j x_j^2 / (1 + x_j^2) (CD-Adam, 7.1)."""

    lambda_: float = 0.1

    def check(self) -> None:
        super().check()
        require(0 <= self.lambda_ < inf, "problem.lambda", self.lambda_, "finite and at least 0")

    def penalty(self, xs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = super().penalty(xs)
        with np.errstate(over="ignore"):
            t = 1 / (1 + xs * xs)  # 0 where x^2 overflows
        small = np.where(np.abs(xs) < 1, xs, 0.0)
        terms = np.where(np.abs(xs) < 1, small * small * t, 1 - t)
        return values + self.lambda_ * terms.sum(axis=1), gradients + 2 * self.lambda_ * xs * t * t

    @property
    def penalty_slope(self) -> float:
        """lambda 3 sqrt(3) / 8, where x_j^2 = 1/3, without l2."""
        return super().penalty_slope + self.lambda_ * 3 * sqrt(3) / 8

    @property
    def shared_curvature(self) -> float:
        """l2 + 2 lambda: (x^2 / (1 + x^2))'' lies in [-1/2, 2] and is 2 at 0."""
        return self.l2 + 2 * self.lambda_


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

    kind = loss_kernels.NONCONVEX
    in_ensembles = True
    slope = 8 / 27  # 2 s (1 - s)^2 at s = 1/3
    curvature = CURVATURE
    spread = (LEAST_CURVATURE / CURVATURE, 1.0)
    published: ClassVar[Literal["one", "mean", "sharp"]] = "one"

    def published_norms(self) -> np.ndarray:
        """0.15405 max_t |a_t|^2 + l2, as in the MARINA experiments."""
        return PUBLISHED_CURVATURE * self.design.largest_norms_sq() + self.l2


@problem("least-squares", "least squares")
class LeastSquares(Glm):
    """f_i(x) = (1 / 2) mean (a . x - y)^2 + (l2 / 2) |x|^2, or the sum over the rows.

    With ``reduction = "sum"`` (PermK paper, A.8.1) the mean over a minibatch is multiplied by the
    worker's number of rows, so that it remains an unbiased estimate of the gradient.
    """

    reduction: Literal["mean", "sum"] = "mean"

    kind = loss_kernels.SQUARES
    curvature = 1.0
    labels = "real"
    convex = True
    in_ensembles = True
    attained = "everywhere"
    published: ClassVar[Literal["one", "mean", "sharp"]] = "mean"

    def weight(self, count: np.ndarray) -> np.ndarray:
        return np.ones(len(count)) if self.reduction == "sum" else super().weight(count)

    def hessian(self, x: np.ndarray) -> Matrices:
        """(1 / r_i) A_i^T A_i + l2 I, at every x."""
        return self.largest_hessian()


@problem("multinomial-logistic", "multinomial logistic loss")
class MultinomialLogistic(Glm):
    """f_i(W) = mean (log sum_c exp(w_c . a) - w_y . a) + (l2 / 2) |W|^2, w_c a row for each class.

    x is W (C, features), row by row. Classes are the labels of the data, ascending.
    """

    kind = loss_kernels.SOFTMAX
    curvature = 0.5  # diag(p) - p p^T <= I / 2
    labels = "classes"
    convex = True
    spread = (0.0, 1.0)

    def attach(self, shards: Shards, n: int, first: int, dtype: np.dtype, dense: bool) -> None:
        super().attach(shards, n, first, dtype, dense)
        self.shapes = ((self.design.classes, self.d),)
        self.d *= self.design.classes

    def label_shares(self) -> np.ndarray | None:
        if super().label_shares() is None:
            return None
        labels = self.design.labels
        counts = [self.design.count(labels == c) for c in range(self.design.classes)]
        return np.stack(counts, axis=1) / self.rows[:, None]

    def flip_labels(self, x: np.ndarray) -> np.ndarray:
        """Class c becomes C - 1 - c (Karimireddy et al., 2022)."""
        W = x.reshape(*x.shape[:-1], *self.shapes[0])
        return W[..., ::-1, :].reshape(x.shape)

    def predicted(self, dots: np.ndarray) -> np.ndarray:
        return dots

    def hessian(self, x: np.ndarray) -> ClassMatrices:
        """(1 / r_i) sum_t (diag(p_t) - p_t p_t^T) (x) a_t a_t^T + l2 I, p_t the probabilities."""
        W, design = self._points(x).reshape(self.shapes[0]), self.design
        rows = dataclasses.replace(design, classes=1)
        z = [rows.sweep(PRODUCT, DOTS, w[None], self._scale)[2] for w in W]
        p = probabilities(np.array(z))
        pairs = itertools.product(range(len(p)), repeat=2)
        return self._matrices({(a, b): p[a] * ((a == b) - p[b]) for a, b in pairs}, self.l2)

    def largest_hessian(self) -> ClassMatrices:
        """M_i = (1 / (2 r_i)) I (x) A_i^T A_i + l2 I."""
        weights = np.full(len(self.design.labels), self.curvature)
        diagonal = {(c, c): weights for c in range(self.design.classes)}
        return self._matrices(diagonal, self.shared_curvature)

    def _matrices(self, weights: dict[tuple[int, int], np.ndarray], shared: float) -> ClassMatrices:
        rows = dataclasses.replace(self.design, classes=1)
        blocks = {at: WeightedGram(rows, self._scale, w, 0.0) for at, w in weights.items()}
        return ClassMatrices(self.design.classes, blocks, shared)

    hessian_triangles = Problem.hessian_triangles
