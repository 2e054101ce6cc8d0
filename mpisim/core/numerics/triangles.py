"""Symmetric matrices as vectors: the lower triangle, row after row, off the diagonal times sqrt(2).

So |v| of a vector is the Frobenius norm of its matrix, and a compressor of vectors is one of
symmetric matrices with the same constants.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import dot

ROOT_2 = sqrt(2)


def size(d: int) -> int:
    """Numbers of the triangle of a matrix (d, d)."""
    return d * (d + 1) // 2


def packed(matrix: np.ndarray) -> np.ndarray:
    """The vector of a symmetric matrix (d, d), shape (d (d + 1) / 2,)."""
    rows, columns = np.tril_indices(len(matrix))
    return np.where(rows == columns, 1.0, ROOT_2) * matrix[rows, columns]


def unpacked(v: np.ndarray, d: int) -> np.ndarray:
    """The matrix (d, d) of a vector, float64: the inverse of `packed`."""
    rows, columns = np.tril_indices(d)
    matrix = np.empty((d, d))
    values = np.where(rows == columns, v, v / ROOT_2)
    matrix[rows, columns] = matrix[columns, rows] = values
    return matrix


@njit(cache=True)
def times(rows, x):
    """The matrices of vectors, ``rows`` (m, d (d + 1) / 2), times x (d,): float64, (m, d)."""
    d = x.size
    out = np.zeros((len(rows), d))
    for i in range(len(rows)):
        t = 0
        for j in range(d):
            for k in range(j):
                value = rows[i, t] / ROOT_2
                out[i, j] += value * x[k]
                out[i, k] += value * x[j]
                t += 1
            out[i, j] += rows[i, t] * x[j]
            t += 1
    return out


@njit(cache=True)
def solve(matrix, b):
    """matrix^{-1} b for a positive definite float64 (d, d), by Cholesky; NaN if it is not."""
    d = b.size
    L, x = np.zeros((d, d)), b.copy()
    for i in range(d):
        for j in range(i):
            L[i, j] = (matrix[i, j] - dot(L[i, :j], L[j, :j])) / L[j, j]
        pivot = matrix[i, i] - dot(L[i, :i], L[i, :i])
        if not pivot > 0:
            return np.full(d, np.nan)
        L[i, i] = np.sqrt(pivot)
        x[i] = (x[i] - dot(L[i, :i], x[:i])) / L[i, i]
    for i in range(d - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]
    return x
