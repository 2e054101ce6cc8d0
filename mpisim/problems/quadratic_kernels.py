"""Compiled loops of the quadratic tasks: gradients (t_i T + c I) x - b_i e_1, worker by worker.

`Innovations` finds the largest entry of grad f_i(x) - g_i of each worker, round after round. EF21
with K = 1 changes one entry of g_i in a round, and x moves little. So a bound on the entries of a
stretch of coordinates holds on if it grows by what the gradient has moved there. Only stretches
whose bound reaches the largest entry found are looked at: one or two of them, instead of all d
coordinates. The result has the bits of `largest_differences`.
"""

from __future__ import annotations

import weakref

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import fetch, fetch_ahead, magnitude
from mpisim.core.numerics.select import BLOCK, insert, rank, sort

SPAN = 64  # coordinates with one bound
TOGETHER = 32  # workers
HUGE = 1e38  # larger entries, and what g_i receives of them, may overflow: they have no bound
SLACK = 8  # roundings, in units of the last place, that a gradient and its change may have


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
def write_gradients(out, t, b, txs, cxs, less):
    """out (m, d): t_i tx + cx - b_i e_1, rounded once to its type, with tx = T x and cx = c x.

    ``txs`` and ``cxs`` (1, d) are those of one point, or (m, d) of each worker's. Unless ``less``
    (m, d) is None, it is subtracted from what was rounded.
    """
    kind = out.dtype.type
    for i in range(out.shape[0]):
        row, factor, k = out[i], t[i], i if txs.shape[0] > 1 else 0
        tx, cx = txs[k], cxs[k]
        first = kind(factor * tx[0] + cx[0] - b[i])
        if less is None:
            for j in range(row.size):
                row[j] = factor * tx[j] + cx[j]
            row[0] = first
        else:
            state = less[i]
            for j in range(row.size):
                row[j] = kind(factor * tx[j] + cx[j]) - state[j]
            row[0] = first - state[0]


@njit(cache=True)
def largest_differences(t, b, tx, cx, less, indices, values):
    """The k largest |numbers| of `write_gradients` minus ``less``: indices and values (m, k).

    One pass over ``less``, as in `mpisim.core.numerics.select`, which works differences out twice
    where it looks twice.
    """
    m, d = less.shape
    kind, k = less.dtype.type, indices.shape[1]
    tops, best = np.empty(-(-d // BLOCK), np.int64), np.empty(k, np.int64)
    for i in range(m):
        state, factor, where = less[i], t[i], indices[i]
        first = kind(factor * tx[0] + cx[0] - b[i]) - state[0]
        best[:] = -1
        for c in range(tops.size):
            fetch_ahead(less, i * d + c * BLOCK, BLOCK)
            top = magnitude(first if c == 0 else kind(0))
            for j in range(max(c * BLOCK, 1), min((c + 1) * BLOCK, d)):
                top = max(top, magnitude(_difference(factor, tx, cx, state, np.uint64(j))))
            tops[c] = top
            rank(top, best)
        bound = best[-1]
        best[:] = -1
        for c in range(tops.size):
            if tops[c] >= bound:
                for j in range(c * BLOCK, min((c + 1) * BLOCK, d)):
                    value = first if j == 0 else _difference(factor, tx, cx, state, np.uint64(j))
                    key = magnitude(value)
                    if key >= bound and key > best[-1]:
                        insert(key, j, best, where)
        sort(where)
        for s in range(k):
            j = where[s]
            values[i, s] = first if j == 0 else _difference(factor, tx, cx, state, np.uint64(j))


@njit(inline="always")
def _difference(factor, tx, cx, state, j):
    """Coordinate j > 0 of `write_gradients`."""
    return state.dtype.type(factor * tx[j] + cx[j]) - state[j]


@njit(cache=True)
def write_coordinates(values, t, b, c, xs, ys, ptr, indices):
    """Worker i's coordinates indices[ptr[i]:ptr[i+1]], rounded once to the type of ``values``.

    The operations are those of `write_gradients`. ``xs`` is one point, (1, d), one for each worker,
    (m, d), or one for each run of an ensemble. Unless ``ys``, likewise, is None, those at y,
    rounded, are subtracted.
    """
    kind, d = values.dtype.type, xs.shape[1]
    x, y = np.zeros(d + 2), np.zeros(d + 2)  # between zeros: without a branch at the ends
    n = t.size // xs.shape[0]  # workers with one point
    for i in range(t.size):
        if i == 0 or (xs.shape[0] > 1 and i % n == 0):
            x[1:-1] = xs[i // n]
        if ys is not None and (i == 0 or (ys.shape[0] > 1 and i % (t.size // ys.shape[0]) == 0)):
            y[1:-1] = ys[i // (t.size // ys.shape[0])]
        for k in range(np.uint64(ptr[i]), np.uint64(ptr[i + 1])):
            j = np.uint64(indices[k])  # unsigned: no test for a negative index
            value = kind(_coordinate(t[i], b[i], c, x, j))
            if ys is not None:
                value -= kind(_coordinate(t[i], b[i], c, y, j))
            values[k] = value


@njit(inline="always")
def _coordinate(t, b, c, x, j):
    """Coordinate j of the gradient at x, which stands between two zeros, (d + 2,)."""
    at = j + np.uint64(1)
    value = t * (2 * x[at] - x[j] - x[at + np.uint64(1)]) + c * x[at]
    return value - (b if j == 0 else 0.0)


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


# the search with bounds


class Innovations:
    """Bounds on |grad f_i(x) - g_i| for one array g_i, (m, d), and the search with them.

    t, b : the scalars of the m workers
    """

    def __init__(self, t: np.ndarray, b: np.ndarray, state: np.ndarray):
        self.t, self.b, self.state = t, b, weakref.ref(state)  # a run may replace its large g_i
        m, d = state.shape
        self.bounds = np.full((m, -(-d // SPAN)), np.inf)
        self.at = np.zeros(d), np.zeros(d)
        self.largest_t, self.largest_b = (
            float(np.abs(values).max(initial=0.0)) for values in (t, b)
        )

    def largest(
        self, tx: np.ndarray, cx: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Indices and values (m, 1) of the largest |entries|, with tx = T x and cx = c x."""
        m = len(state)
        indices, values = np.empty((m, 1), np.int64), np.empty((m, 1), state.dtype)
        kind = np.finfo(state.dtype)
        slack, least = SLACK * float(kind.eps), SLACK * float(kind.smallest_subnormal)
        moves = np.empty((2, self.bounds.shape[1]))
        largest_tx, largest_cx = _moves(*self.at, tx, cx, slack, least, moves)
        self.at = tx, cx
        if not self.largest_t * largest_tx + largest_cx + self.largest_b < HUGE:  # or NaN
            self.bounds[:] = np.inf
        _search(
            self.t, self.b, tx, cx, state, slack, moves, self.bounds, indices[:, 0], values[:, 0]
        )
        return indices, values


@njit(cache=True)
def _moves(old_tx, old_cx, tx, cx, slack, least, moves):
    """moves (2, blocks): how far T x and c x have moved in each block at most, and roundings.

    Returns max |T x| and max |c x|. NaN is the largest of all.
    """
    largest_tx = largest_cx = 0.0
    for c in range(moves.shape[1]):
        moves[:, c] = 0
        for j in range(c * SPAN, min((c + 1) * SPAN, tx.size)):
            size_tx, size_cx = abs(tx[j]), abs(cx[j])
            moves[0, c] = np.maximum(moves[0, c], abs(tx[j] - old_tx[j]) + slack * size_tx)
            moves[1, c] = np.maximum(moves[1, c], abs(cx[j] - old_cx[j]) + slack * size_cx)
            largest_tx = np.maximum(largest_tx, size_tx)
            largest_cx = np.maximum(largest_cx, size_cx)
        moves[1, c] += least  # the roundings of numbers close to 0
    return largest_tx, largest_cx


@njit(cache=True)
def _search(t, b, tx, cx, state, slack, moves, bounds, indices, values):
    """A few workers at a time: their entries come from memory while the next bounds grow."""
    m, d = state.shape
    for start in range(0, m, TOGETHER):
        stop = min(start + TOGETHER, m)
        for i in range(start, stop):
            c = _grow(bounds[i], abs(t[i]), moves, slack, slack * abs(b[i]))
            fetch(state, i * d + c * SPAN, SPAN)
            indices[i] = c
        for i in range(start, stop):
            j = _find(indices[i], t[i], b[i], tx, cx, state[i], bounds[i])
            indices[i], values[i] = j, _entry(t[i], b[i], tx, cx, state[i], j)


@njit(inline="always")
def _find(first, factor, shift, tx, cx, state, bound):
    """The place of the largest entry of a worker: in block ``first``, or where bounds reach it."""
    best, j, limit = _look(first, factor, shift, tx, cx, state, bound)
    others = 0
    for c in range(bound.size):  # without a branch, as there is hardly ever one
        others += not bound[c] < limit
    for c in range(bound.size if others > 1 else 0):
        if not bound[c] < limit and c != first:
            key, place, size = _look(c, factor, shift, tx, cx, state, bound)
            if key > best or (key == best and place < j):
                best, j, limit = key, place, size
    return j


@njit(inline="always")
def _grow(bound, factor, moves, slack, slack_of_shift):
    """Let the bounds of a worker grow; returns the block of the largest."""
    top = magnitude(0.0)
    for c in range(bound.size):
        grown = (bound[c] + (factor * moves[0, c] + moves[1, c])) * (1 + slack)
        bound[c] = grown
        top = max(top, magnitude(grown))  # NaN, which bounds nothing, is above all
    bound[0] += slack_of_shift
    for c in range(bound.size):
        if magnitude(bound[c]) == top:
            return c
    return 0


@njit(inline="always")
def _look(c, factor, shift, tx, cx, state, bound):
    """The largest key of block c, its lowest place, and its size; the bound becomes exact."""
    start, stop = c * SPAN, min((c + 1) * SPAN, state.size)
    best = magnitude(state.dtype.type(0))
    for j in range(max(start, 1), stop):
        best = max(best, magnitude(_difference(factor, tx, cx, state, np.uint64(j))))
    if c == 0:
        best = max(best, magnitude(_entry(factor, shift, tx, cx, state, 0)))
    place = start
    while place < stop - 1 and magnitude(_entry(factor, shift, tx, cx, state, place)) != best:
        place += 1
    size = np.float64(abs(_entry(factor, shift, tx, cx, state, place)))
    bound[c] = size if size < HUGE else np.inf
    return best, place, size


@njit(inline="always")
def _entry(factor, shift, tx, cx, state, j):
    """Coordinate j of grad f_i(x) - g_i, in the operations of `write_gradients`."""
    if j > 0:
        return _difference(factor, tx, cx, state, np.uint64(j))
    return state.dtype.type(factor * tx[0] + cx[0] - shift) - state[0]
