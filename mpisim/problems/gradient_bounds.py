"""Bounds of single samples' gradients in generalized linear models, where phi' is bounded."""

from __future__ import annotations

import numpy as np

from mpisim.problems.design import DesignMatrix
from mpisim.problems.row_kernels import DENSE, ONES


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
    indptr, _, data, dense = design.store
    out = []
    for start, stop in zip(design.starts, design.stops, strict=True):
        if design.form == DENSE:
            values = dense[start:stop]
        elif design.form == ONES:
            values = np.ones(int(indptr[stop] > indptr[start]))
        else:
            values = data[int(indptr[start]) : int(indptr[stop])]
        out.append(float(np.abs(values).max(initial=0.0)))
    return np.array(out)
