"""Symmetric matrices: eigenvalues and eigenvectors, with the same bits on every processor.

LAPACK's depend on the kernels that its BLAS chooses for the processor. Here: Householder's
reduction to a tridiagonal matrix and the implicit QL method (EISPACK's tred2 and tql2; Golub and
Van Loan, 8.3), in a fixed order of operations. Errors are a small multiple of d eps |A|. The
Lanczos method gives the largest eigenvalue of a matrix that is known by its products.

A matrix as a vector is its lower triangle, row after row, off the diagonal times sqrt(2). So |v| of
a vector is the Frobenius norm of its matrix, and a compressor of vectors is one of symmetric
matrices with the same constants.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import LANES, dot
from mpisim.core.numerics.sums import norm, subtract_rows, times_vector

EPS = float(np.finfo(np.float64).eps)
TURNS = 60  # of the QL method for one eigenvalue; two or three are usual


@njit(cache=True)
def eigh(matrix):
    """Eigenvalues (d,), ascending, and eigenvectors in the columns of (d, d), of float64 (d, d).

    Both are NaN if the matrix has a number that is not finite.
    """
    values, vectors = _eigen(matrix, True)
    return values, vectors.T


@njit(cache=True)
def eigvalsh(matrix):
    """The eigenvalues alone, shape (d,), ascending."""
    return _eigen(matrix, False)[0]


@njit(cache=True)
def _eigen(matrix, wanted):
    """Eigenvalues, and eigenvectors as rows: (d, d), or (d, 0) unless ``wanted``."""
    d = matrix.shape[0]
    largest = 0.0
    for value in matrix.flat:
        if not abs(value) < np.inf:
            return np.full(d, np.nan), np.full((d, d if wanted else 0), np.nan)
        largest = max(largest, abs(value))
    scale = largest if largest > 0 else 1.0
    a = matrix / scale
    diagonal, beside, factors = reduced(a)
    vectors = accumulated(a, factors) if wanted else np.empty((d, 0))
    diagonalise(diagonal, beside, vectors)
    order = np.argsort(diagonal, kind="mergesort")
    return diagonal[order] * scale, vectors[order]


@njit(cache=True)
def reduced(a):
    """Diagonal (d,) and subdiagonal (d,), the last one 0, of the tridiagonal Q^T A Q.

    ``a`` is overwritten: row k has the vector of the k-th reflection, I - factors[k] v v^T, from
    coordinate k + 1 on, where it is 1.
    """
    d = a.shape[0]
    diagonal, beside, factors = np.empty(d), np.zeros(d), np.zeros(d)
    v, w = np.zeros(d), np.zeros(d)
    for k in range(d - 1):
        diagonal[k] = a[k, k]
        v[: k + 1] = 0
        v[k + 1 :] = a[k, k + 1 :]
        below, first = 0.0, v[k + 1]
        for j in range(k + 2, d):
            below += v[j] * v[j]
        beside[k] = first
        if below > 0:
            norm = np.sqrt(first * first + below)
            norm = -norm if first >= 0 else norm
            beside[k], factors[k] = norm, (norm - first) / norm
            inverse = 1 / (first - norm)
            for j in range(k + 2, d):
                v[j] *= inverse
            v[k + 1] = 1.0
            _two_sided(a, k + 1, factors[k], v, w)
        a[k, k + 1 :] = v[k + 1 :]
    if d > 0:
        diagonal[d - 1] = a[d - 1, d - 1]
    return diagonal, beside, factors


@njit(cache=True)
def _two_sided(a, start, factor, v, w):
    """A = H A H from row and column ``start`` on, H = I - factor v v^T; ``w`` is scratch.

    A - v w^T - w v^T, w = factor (A v - (factor / 2) (v^T A v) v).
    """
    d = a.shape[0]
    begin = start & -LANES  # v is 0 before start
    w[:start] = 0
    for i in range(start, d):
        w[i] = factor * dot(a[i, begin:], v[begin:])
    half = factor / 2 * dot(v, w)
    for i in range(start, d):
        w[i] -= half * v[i]
    for i in range(start, d):
        _subtract(a[i, begin:], v[i], w[begin:], w[i], v[begin:])


@njit(cache=True)
def _subtract(row, c, w, e, v):
    """row -= c w + e v, one after the other."""
    for j in range(row.size):
        row[j] = row[j] - c * w[j] - e * v[j]


@njit(cache=True)
def accumulated(a, factors):
    """Q^T (d, d) from what `reduced` leaves in ``a``."""
    d = a.shape[0]
    out = np.eye(d)
    v = np.zeros(d)
    for k in range(d - 2, -1, -1):  # Q^T = ... H_1 H_0: from the left, in the rows from k + 1 on
        if factors[k] == 0:
            continue
        v[k + 1 :] = a[k, k + 1 :]
        begin = (k + 1) & -LANES
        for i in range(k + 1, d):
            row = out[i, begin:]
            c = factors[k] * dot(row, v[begin:])
            _subtract(row, c, v[begin:], 0.0, v[begin:])
    return out


@njit(cache=True)
def diagonalise(diagonal, beside, rows):
    """The QL method on a tridiagonal matrix, in place: ``diagonal`` becomes the eigenvalues.

    ``beside`` (d,) is the subdiagonal, the last one 0, and is lost. ``rows`` (d, k) are rotated as
    the matrix's rows are: the identity becomes the eigenvectors. All NaN if it does not converge.
    """
    d, size = diagonal.size, 0.0
    for i in range(d):
        size = max(size, abs(diagonal[i]) + abs(beside[i]))
    for first in range(d):
        for _ in range(TURNS):
            last = first
            while last < d - 1 and abs(beside[last]) > EPS * size:
                last += 1
            if last == first:
                break
            _turn(diagonal, beside, rows, first, last)
        else:
            diagonal[:], rows[:] = np.nan, np.nan
            return


@njit(cache=True)
def _turn(diagonal, beside, rows, first, last):
    """One implicit QL step with Wilkinson's shift on the block from ``first`` to ``last``."""
    g = (diagonal[first + 1] - diagonal[first]) / (2 * beside[first])
    r = np.sqrt(g * g + 1)
    g = diagonal[last] - diagonal[first] + beside[first] / (g + (r if g >= 0 else -r))
    s, c, p = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = s * beside[i], c * beside[i]
        r = np.sqrt(f * f + g * g)
        beside[i + 1] = r
        if r == 0:
            diagonal[i + 1] -= p
            beside[last] = 0.0
            return
        s, c = f / r, g / r
        g = diagonal[i + 1] - p
        r = (diagonal[i] - g) * s + 2 * c * b
        p = s * r
        diagonal[i + 1] = g + p
        g = c * r - b
        upper, lower = rows[i], rows[i + 1]
        for j in range(rows.shape[1]):
            x, y = upper[j], lower[j]
            upper[j] = c * x - s * y
            lower[j] = s * x + c * y
    diagonal[first] -= p
    beside[first], beside[last] = g, 0.0


TOLERANCE = 1e-13  # of the eigenvalue's residual, relative
LOOK = 32  # look at the residual in each step up to this one, then more and more rarely


def largest_eigenvalue(
    times: Callable[[np.ndarray], np.ndarray], d: int, floor: float = 0.0
) -> float:
    """lambda_max of a (d, d) matrix from products ``times(v)``, v of shape (d,).

    The Lanczos method with full reorthogonalisation, from a fixed random vector: the same products
    give the same bits. (When the Krylov space is exhausted early, ARPACK would restart from a
    random vector that differs between processes.) Products may be collective: their number
    depends only on their values. The result is within 1e-12 of lambda_max, relative, or within
    ``floor`` of it (for a matrix that may hold nothing but rounding errors).
    """
    q = np.random.Generator(np.random.Philox(key=1)).random(d) - 0.5
    q /= norm(q)
    basis = np.empty((min(d, 64), d))
    alpha, beta = np.empty(d), np.empty(d)
    top = 0.0
    for k in range(d):
        if k == len(basis):
            basis = np.concatenate([basis, np.empty_like(basis)])[:d]
        basis[k] = q
        w = np.array(times(q), np.float64)
        alpha[k] = dot(q, w)
        for _ in range(2):  # twice is enough
            subtract_rows(w, times_vector(basis[: k + 1], w), basis[: k + 1])
        beta[k] = norm(w)
        if not np.isfinite(beta[k]):
            return float("inf")
        if beta[k] == 0 or k + 1 == d or (k + 1) % (1 + k // LOOK) == 0:
            value, last = _top(alpha[: k + 1], beta[: k + 1])
            top = max(value, 0.0)
            if beta[k] * last <= max(TOLERANCE * top, floor):
                break
        q = w / beta[k]
    return top


@njit(cache=True)
def _top(alpha, beta):
    """The largest eigenvalue of the tridiagonal matrix, and its vector's |last coordinate|."""
    diagonal, beside, last = alpha.copy(), beta.copy(), np.zeros((alpha.size, 1))
    beside[-1], last[-1, 0] = 0.0, 1.0
    diagonalise(diagonal, beside, last)
    best = np.argmax(diagonal)
    return diagonal[best], abs(last[best, 0])


ROOT_2 = sqrt(2)


def triangle_size(d: int) -> int:
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
def triangles_times(rows, x):
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
