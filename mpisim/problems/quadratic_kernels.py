"""Compiled loops of the quadratic tasks: gradients (t_i T + c I) x - b_i e_1, worker by worker."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import fetch_ahead, magnitude
from mpisim.core.numerics.select import BLOCK, insert, rank, sort


@njit(cache=True)
def forms(x):
    """x^T T x / 2, as a sum of squares, and |x|^2 / 2."""
    bend = norm = before = 0.0
    for value in x:
        bend += (value - before) ** 2
        norm += value**2
        before = value
    return (bend + before**2) / 2, norm / 2


@njit(cache=True)
def write_gradients(out, t, b, txs, cxs):
    """out (m, d): t_i tx + cx - b_i e_1, rounded once to its type, with tx = T x and cx = c x.

    ``txs`` and ``cxs`` (1, d) are those of one point, or (m, d) of each worker's.
    """
    for i in range(out.shape[0]):
        row, factor, k = out[i], t[i], i if txs.shape[0] > 1 else 0
        tx, cx = txs[k], cxs[k]
        for j in range(row.size):
            row[j] = factor * tx[j] + cx[j]
        row[0] = factor * tx[0] + cx[0] - b[i]


@njit(cache=True)
def subtract_gradients(out, t, b, txs, cxs, less):
    """The gradients, rounded to out's type, minus ``less`` (m, d) of the same type, in one pass."""
    kind = out.dtype.type
    for i in range(out.shape[0]):
        row, own, factor, k = out[i], less[i], t[i], i if txs.shape[0] > 1 else 0
        tx, cx = txs[k], cxs[k]
        for j in range(row.size):
            row[j] = kind(factor * tx[j] + cx[j]) - own[j]
        row[0] = kind(factor * tx[0] + cx[0] - b[i]) - own[0]


@njit(cache=True)
def largest_differences(t, b, tx, cx, less, indices, values):
    """The k largest |differences| of `subtract_gradients`: indices and values (m, k).

    One pass over ``less``, as in `mpisim.core.numerics.select`, which works differences out twice
    where it looks twice.
    """
    m, d = less.shape
    kind, k = less.dtype.type, indices.shape[1]
    tops, best = np.empty(-(-d // BLOCK), np.int64), np.empty(k, np.int64)
    for i in range(m):
        own, factor, where = less[i], t[i], indices[i]
        first = kind(factor * tx[0] + cx[0] - b[i]) - own[0]
        best[:] = -1
        for c in range(tops.size):
            fetch_ahead(less, i * d + c * BLOCK, BLOCK)
            top = magnitude(first if c == 0 else kind(0))
            for j in range(max(c * BLOCK, 1), min((c + 1) * BLOCK, d)):
                top = max(top, magnitude(_difference(factor, tx, cx, own, np.uint64(j))))
            tops[c] = top
            rank(top, best)
        bound = best[-1]
        best[:] = -1
        for c in range(tops.size):
            if tops[c] >= bound:
                for j in range(c * BLOCK, min((c + 1) * BLOCK, d)):
                    value = first if j == 0 else _difference(factor, tx, cx, own, np.uint64(j))
                    key = magnitude(value)
                    if key >= bound and key > best[-1]:
                        insert(key, j, best, where)
        sort(where)
        for s in range(k):
            j = where[s]
            values[i, s] = first if j == 0 else _difference(factor, tx, cx, own, np.uint64(j))


@njit(inline="always")
def _difference(factor, tx, cx, own, j):
    """Coordinate j > 0 of `subtract_gradients`."""
    return own.dtype.type(factor * tx[j] + cx[j]) - own[j]


@njit(cache=True)
def _coordinate(t, b, c, x, j):
    """The operations of `tridiagonal.second_difference` and `write_gradients` for coordinate j."""
    tx = 2 * x[j]
    if j > 0:
        tx -= x[j - 1]
    if j < x.size - 1:
        tx -= x[j + 1]
    value = t * tx + c * x[j]
    return value - b if j == 0 else value


@njit(cache=True)
def write_coordinates(values, t, b, c, xs, ptr, indices):
    """Worker i's coordinates indices[ptr[i]:ptr[i+1]], rounded once to the type of ``values``.

    ``xs`` is one point, (1, d), or one for each worker, (m, d).
    """
    for i in range(t.size):
        x = xs[i if xs.shape[0] > 1 else 0]
        for k in range(ptr[i], ptr[i + 1]):
            values[k] = _coordinate(t[i], b[i], c, x, indices[k])


@njit(cache=True)
def write_changes(values, t, b, c, xs, ys, ptr, indices):
    """The coordinates at x minus those at y, each rounded to the type of ``values`` first."""
    kind = values.dtype.type
    for i in range(t.size):
        x, y = xs[i if xs.shape[0] > 1 else 0], ys[i if ys.shape[0] > 1 else 0]
        for k in range(ptr[i], ptr[i + 1]):
            j = indices[k]
            at_x = kind(_coordinate(t[i], b[i], c, x, j))
            values[k] = at_x - kind(_coordinate(t[i], b[i], c, y, j))


@njit(cache=True)
def solve(t, c, b, d):
    """x (d,) with (t T + c I) x = b e_1, the matrix positive definite: elimination from the end."""
    pivots = np.empty(d)
    pivots[d - 1] = 2 * t + c
    for j in range(d - 2, -1, -1):
        pivots[j] = (2 * t + c) - t * t / pivots[j + 1]
    x = np.empty(d)
    x[0] = b / pivots[0]
    for j in range(1, d):
        x[j] = t * x[j - 1] / pivots[j]
    return x
