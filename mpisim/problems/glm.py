"""Generalized linear models: f_i(x) = mean over its rows of phi(a . x, y), plus a penalty."""

from __future__ import annotations

import dataclasses
from math import isfinite
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import eigh

from mpisim.core.eigen import largest_eigenvalue
from mpisim.core.schema import require
from mpisim.problems import kernels
from mpisim.problems.base import Problem
from mpisim.problems.data.shards import DataOptions, Shards, load_shards, prepare
from mpisim.problems.rows import DENSE_FROM, Rows, lay_out

GRAM_LIMIT = 1500  # up to this many rows or columns a worker's eigenvalues come from LAPACK


@dataclasses.dataclass(eq=False)
class Glm(Problem):
    """What the models share; a model names its phi and bounds its second derivative.

    Class attributes: ``kind``, the kernels' phi; ``curvature``, sup |phi''| over z; ``labels``.
    """

    data: str
    workers: int | None = None
    split: Literal["contiguous", "shuffled", "sorted-by-norm", "homogeneous"] = "contiguous"
    remainder: Literal["drop", "spread"] = "drop"
    bias: bool = False
    scale: Literal["none", "row-max-abs", "feature-max-abs"] = "none"
    l2: float = 0.0

    nonnegative = True  # so are phi and the penalties of all models
    kind: ClassVar[int]
    curvature: ClassVar[float]
    labels: ClassVar[Literal["binary", "real"]] = "binary"

    def check(self) -> None:
        require(
            self.workers is None or self.workers >= 1, "problem.workers", self.workers, "at least 1"
        )
        require(isfinite(self.l2) and self.l2 >= 0, "problem.l2", self.l2, "finite and at least 0")

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`; `InputError` where the data is absent or malformed."""
        options = DataOptions(
            self.data, n, self.split, self.remainder, self.bias, self.scale, seed, self.labels
        )
        prepared = prepare(options)
        entries = prepared.nnz + self.bias * prepared.rows
        dense = entries >= DENSE_FROM * prepared.rows * prepared.features
        shards = load_shards(prepared, options, first, count)
        self.seed = seed
        self.attach(shards, n, first, dtype, dense)

    def attach(self, shards: Shards, n: int, first: int, dtype: np.dtype, dense: bool) -> None:
        """Take the rows of a block that starts at worker ``first`` of ``n``.

        ``dense``: keep them as dense rows; the same on all ranks.
        """
        self.table = lay_out(shards, np.dtype(dtype), dense)
        self.n, self.first, self.m, self.d = n, first, self.table.m, shards.d
        self.dtype, self.rows = np.dtype(dtype), self.table.counts
        self.identical = n == 1 or self.split == "homogeneous"
        self.identity = f"{self.name} on {shards.name} sha256:{shards.sha256}"
        self._scale = self.weight(self.rows)

    def weight(self, count: np.ndarray) -> np.ndarray:
        """What the sum over ``count`` rows is multiplied with: 1 / count, or as the model says."""
        return 1.0 / np.maximum(count, 1)

    def penalty(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The penalty at x and its gradient (d,), both float64."""
        return 0.5 * self.l2 * float(x @ x), self.l2 * x

    @property
    def seeded(self) -> bool:
        return self.split == "shuffled"

    @property
    def shared_curvature(self) -> float:
        """The largest curvature of the penalty, the same for all workers."""
        return self.l2

    def losses(self, x: np.ndarray) -> np.ndarray:
        return self._evaluate(x, kernels.LOSS)[0]

    def gradients(self, x: np.ndarray) -> np.ndarray:
        return self._evaluate(x, kernels.GRADIENT)[1]

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._evaluate(x, kernels.LOSS | kernels.GRADIENT)

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        point = self.point(x)
        _, shift = self.penalty(point.astype(np.float64))
        return self.table.sweep_batch(
            self.kind, point[None], batch, self._batch_scale(batch), shift.astype(self.dtype)
        )

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        x, y = self.point(x), self.point(y)
        shift = np.zeros(self.d, self.dtype)
        if self.shared_curvature > 0:  # there is a penalty
            of_x, of_y = (self.penalty(v.astype(np.float64))[1] for v in (x, y))
            shift[:] = of_x - of_y
        return self.table.batch_changes(self.kind, x, y, batch, self._batch_scale(batch), shift)

    def _batch_scale(self, batch: np.ndarray) -> np.ndarray:
        """The mean over the batch stands for the mean over all of the worker's rows."""
        return self._scale * self.rows / max(batch.shape[1], 1)

    def point(self, x: np.ndarray) -> np.ndarray:
        """x as the kernels want it: contiguous, aligned, writable, of the arithmetic's type."""
        if x.dtype == self.dtype and x.flags.carray:
            return x
        return np.require(x, self.dtype, ["C", "A", "W"])

    def _evaluate(self, x: np.ndarray, want: int) -> tuple[np.ndarray, np.ndarray]:
        point = self.point(x)
        value, shift = self.penalty(point.astype(np.float64))
        losses, gradients, _ = self.table.sweep(
            self.kind, want, point[None], self._scale, shift.astype(self.dtype)
        )
        return losses + value, gradients

    def margins(self, x: np.ndarray) -> np.ndarray:
        """a_t . x for all rows of the block, shape (rows,)."""
        point, none = self.point(x)[None], np.empty(0, self.dtype)
        _, _, dots = self.table.sweep(self.kind, kernels.DOTS, point, self._scale, none)
        return dots

    def sample_norms(self) -> np.ndarray:
        """sup |phi''| max_t |a_t|^2, and the penalty's curvature."""
        norms, scale = self.table.norms_sq(), self._scale * self.rows
        pairs = zip(self.table.starts, self.table.stops, strict=True)
        largest = np.array([norms[start:stop].max(initial=0.0) for start, stop in pairs])
        return self.curvature * scale * largest.reshape(self.m) + self.shared_curvature

    def largest_hessian(self) -> Weighted:
        """M_i = (sup |phi''| / r_i) A_i^T A_i + (the penalty's largest curvature) I."""
        weights = np.full(len(self.table.labels), self.curvature)
        return Weighted(self.table, self._scale, weights, self.shared_curvature)


@dataclasses.dataclass(frozen=True)
class Weighted:
    """H_i = scale_i sum_t weights_t a_t a_t^T + shared I; see `mpisim.problems.base.Matrices`.

    ``weights``, shape (rows,), must be >= 0 for `norms`.
    """

    table: Rows
    scale: np.ndarray
    weights: np.ndarray
    shared: float

    def times(self, v: np.ndarray) -> np.ndarray:
        v = np.ascontiguousarray(v, self.table.dtype)
        xs = v.reshape(-1, self.table.d)
        zero = np.zeros(self.table.d, self.table.dtype)
        want = kernels.GRADIENT
        product = self.table.sweep(
            kernels.PRODUCT, want, xs, self.scale, zero, labels=self.weights
        )[1]
        return product + self.shared * v

    def rows(self, i: int, start: int, stop: int) -> np.ndarray:
        out = self.table.gram(i, self.weights, start, stop) * self.scale[i]
        out[np.arange(stop - start), np.arange(start, stop)] += self.shared
        return out

    def norms(self) -> np.ndarray:
        if self.table.one_copy:
            return np.repeat(self._norm(0), self.table.m)
        return np.array([self._norm(i) for i in range(self.table.m)])

    def without_shared(self) -> Weighted:
        return dataclasses.replace(self, shared=0.0)

    def _norm(self, i: int) -> float:
        """Of the smaller of A^T W A and W^1/2 A A^T W^1/2, which have the same eigenvalues."""
        count, d = int(self.table.counts[i]), self.table.d
        if d <= min(count, GRAM_LIMIT):
            gram = self.table.gram(i, self.weights, 0, d)
        elif count <= GRAM_LIMIT:
            roots = np.sqrt(self.weights[self.table.starts[i] : self.table.stops[i]])
            a = self.table.dense_rows(i) * roots[:, None]
            gram = a @ a.T
        else:
            own = dataclasses.replace(
                self, table=self.table.worker(i), scale=np.ones(1), shared=0.0
            )
            top = largest_eigenvalue(lambda v: own.times(v)[0], d)
            return top * float(self.scale[i]) + self.shared
        size = len(gram)
        top = eigh(gram, eigvals_only=True, subset_by_index=[size - 1, size - 1])[0]
        return float(top) * float(self.scale[i]) + self.shared
