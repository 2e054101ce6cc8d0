"""The largest entry of grad f_i(x) - g_i of each worker of a quadratic task, round after round.

EF21 with K = 1 changes one entry of g_i in a round, and x moves little. So a bound on the entries
of a block of coordinates holds on if it grows by what the gradient has moved there. Only blocks
whose bound reaches the largest entry found are looked at: one or two of them, instead of all d
coordinates. The result has the bits of `largest_differences`.
"""

from __future__ import annotations

import weakref

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import fetch, magnitude

BLOCK = 64  # coordinates with one bound
TOGETHER = 32  # workers
HUGE = 1e38  # larger entries, and what g_i receives of them, may overflow: they have no bound
SLACK = 8  # roundings, in units of the last place, that a gradient and its change may have


class Innovations:
    """Bounds on |grad f_i(x) - g_i| for one array g_i, (m, d), and the search with them.

    t, b : the scalars of the m workers
    """

    def __init__(self, t: np.ndarray, b: np.ndarray, state: np.ndarray):
        self.t, self.b, self.state = t, b, weakref.ref(state)  # a run may replace its large g_i
        m, d = state.shape
        self.bounds = np.full((m, -(-d // BLOCK)), np.inf)
        self.at = np.zeros(d), np.zeros(d)
        self.largest_t, self.largest_b = (float(np.abs(own).max(initial=0.0)) for own in (t, b))

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
        for j in range(c * BLOCK, min((c + 1) * BLOCK, tx.size)):
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
            fetch(state, i * d + c * BLOCK, BLOCK)
            indices[i] = c
        for i in range(start, stop):
            j = _find(indices[i], t[i], b[i], tx, cx, state[i], bounds[i])
            indices[i], values[i] = j, _entry(t[i], b[i], tx, cx, state[i], j)


@njit(inline="always")
def _find(first, factor, shift, tx, cx, own, bound):
    """The place of the largest entry of a worker: in block ``first``, or where bounds reach it."""
    best, j = _look(first, factor, shift, tx, cx, own, bound)
    limit = np.float64(abs(_entry(factor, shift, tx, cx, own, j)))
    others = 0
    for c in range(bound.size):  # without a branch, as there is hardly ever one
        others += not bound[c] < limit
    for c in range(bound.size if others > 1 else 0):
        if not bound[c] < limit and c != first:
            key, place = _look(c, factor, shift, tx, cx, own, bound)
            if key > best or (key == best and place < j):
                best, j = key, place
                limit = np.float64(abs(_entry(factor, shift, tx, cx, own, j)))
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
def _look(c, factor, shift, tx, cx, own, bound):
    """The largest key of block c and the lowest of its places; the bound becomes exact."""
    start, stop = c * BLOCK, min((c + 1) * BLOCK, own.size)
    best = magnitude(own.dtype.type(0))
    for j in range(max(start, 1), stop):
        best = max(best, magnitude(_difference(factor, tx, cx, own, np.uint64(j))))
    if c == 0:
        best = max(best, magnitude(_entry(factor, shift, tx, cx, own, 0)))
    place = start
    while place < stop - 1 and magnitude(_entry(factor, shift, tx, cx, own, place)) != best:
        place += 1
    size = np.float64(abs(_entry(factor, shift, tx, cx, own, place)))
    bound[c] = size if size < HUGE else np.inf
    return best, place


@njit(inline="always")
def _entry(factor, shift, tx, cx, own, j):
    """Coordinate j of grad f_i(x) - g_i, in the operations of `subtract_gradients`."""
    if j > 0:
        return _difference(factor, tx, cx, own, np.uint64(j))
    return own.dtype.type(factor * tx[0] + cx[0] - shift) - own[0]


@njit(inline="always")
def _difference(factor, tx, cx, own, j):
    return own.dtype.type(factor * tx[j] + cx[j]) - own[j]
