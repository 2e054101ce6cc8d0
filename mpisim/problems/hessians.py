"""Weighted Gram matrices A_i^T W_i A_i, the Hessians of generalized linear models; and bounds of
single samples' gradients, where phi' is bounded."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mpisim.core.numerics.eigen import eigvalsh, largest_eigenvalue
from mpisim.core.numerics.sums import inner_products
from mpisim.problems.design import DesignMatrix
from mpisim.problems.loss_kernels import GRADIENT, PRODUCT
from mpisim.problems.row_kernels import DENSE

GRAM_LIMIT = 150  # up to this many rows or columns a worker's eigenvalues come from the matrix


@dataclasses.dataclass(frozen=True)
class WeightedGram:
    """H_i = scale_i sum_t weights_t a_t a_t^T + shared I; see `mpisim.core.protocols.Matrices`.

    ``weights``, shape (rows,), must be >= 0 for `norms`.
    """

    design: DesignMatrix
    scale: np.ndarray
    weights: np.ndarray
    shared: float

    def times(self, v: np.ndarray) -> np.ndarray:
        v = np.ascontiguousarray(v, self.design.dtype)
        xs = v.reshape(-1, self.design.d)
        _, product, _ = self.design.sweep(PRODUCT, GRADIENT, xs, self.scale, labels=self.weights)
        return product + self.shared * v

    def rows(self, i: int, start: int, stop: int) -> np.ndarray:
        out = self.design.gram(i, self.weights, start, stop) * self.scale[i]
        out[np.arange(stop - start), np.arange(start, stop)] += self.shared
        return out

    def diagonals(self) -> np.ndarray:
        return self.design.squares(self.weights) * self.scale[:, None] + self.shared

    def norms(self) -> np.ndarray:
        if self.design.one_copy:
            return np.repeat(self._norm(0), self.design.m)
        return np.array([self._norm(i) for i in range(self.design.m)])

    def without_shared(self) -> WeightedGram:
        return dataclasses.replace(self, shared=0.0)

    def _norm(self, i: int) -> float:
        return self._largest(i) * float(self.scale[i]) + self.shared

    def _largest(self, i: int) -> float:
        """The largest eigenvalue of A^T W A, or of W^1/2 A A^T W^1/2, which has the same ones."""
        count, d = int(self.design.counts[i]), self.design.d
        if min(count, d) > GRAM_LIMIT:
            alone = WeightedGram(self.design.subset(np.array([i])), np.ones(1), self.weights, 0.0)
            return largest_eigenvalue(lambda v: alone.times(v)[0], d)
        if d <= count:
            gram = self.design.gram(i, self.weights, 0, d)
        else:
            roots = np.sqrt(self.weights[self.design.starts[i] : self.design.stops[i]])
            gram = inner_products(self.design.dense_rows(i) * roots[:, None])
        return float(eigvalsh(gram).max(initial=0.0))


@dataclasses.dataclass(frozen=True)
class ClassMatrices:
    """H_i of C x C blocks, some of them `WeightedGram`, the others 0, plus shared I.

    blocks : {(row, column): block}, symmetric
    """

    classes: int
    blocks: dict[tuple[int, int], WeightedGram]
    shared: float

    def times(self, v: np.ndarray) -> np.ndarray:
        parts = v.reshape(*v.shape[:-1], self.classes, v.shape[-1] // self.classes)
        out: list[Any] = [0.0] * self.classes
        for (a, b), block in self.blocks.items():
            out[a] = out[a] + block.times(parts[..., b, :])
        return np.concatenate(out, axis=1) + self.shared * v

    def rows(self, i: int, start: int, stop: int) -> np.ndarray:
        d = next(iter(self.blocks.values())).design.d
        out = np.zeros((stop - start, self.classes * d))
        for (a, b), block in self.blocks.items():
            low, high = np.clip([start, stop], a * d, (a + 1) * d).tolist()
            rows = block.rows(i, low - a * d, high - a * d)
            out[low - start : high - start, b * d : (b + 1) * d] = rows
        out[np.arange(stop - start), np.arange(start, stop)] += self.shared
        return out

    def diagonals(self) -> np.ndarray:
        parts = [self.blocks[c, c].diagonals() for c in range(self.classes)]
        return np.concatenate(parts, axis=1) + self.shared

    def norms(self) -> np.ndarray:
        """Of equal blocks on the diagonal alone."""
        return self.blocks[0, 0].norms() + self.shared

    def without_shared(self) -> ClassMatrices:
        return dataclasses.replace(self, shared=0.0)


def gradient_bounds(
    design: DesignMatrix, scale: np.ndarray, slope: float, penalty: float
) -> np.ndarray:
    """G, G_inf and sigma^2 of each worker, shape (m, 3): CD-Adam, Assumptions 6.2 and 6.3.

    A sample's gradient is scale_i phi' a_t + the penalty's, with |phi'| <= ``slope`` and each
    coordinate of the penalty's at most ``penalty``; scale : shape (m,), 1 where f_i is a mean. The
    penalty cancels in sigma^2, which is at most the mean of |scale_i phi' a_t|^2.
    """
    steep = slope * scale
    squares = design.squares(np.ones(len(design.labels))).sum(axis=1) / np.maximum(design.counts, 1)
    euclidean = steep * np.sqrt(design.largest_norms_sq()) + penalty * np.sqrt(design.d)
    largest = steep * _largest_entries(design) + penalty
    return np.column_stack([euclidean, largest, steep**2 * squares])


def _largest_entries(design: DesignMatrix) -> np.ndarray:
    """max_tj |a_tj| of each worker, shape (m,), 0 without entries."""
    parts = (
        design.store[3][start:stop] if design.form == DENSE else design.entries(start, stop)[2]
        for start, stop in zip(design.starts, design.stops, strict=True)
    )
    return np.array([float(np.abs(values).max(initial=0.0)) for values in parts])
