"""`row_kernels.sweep` for an ensemble over sparse rows.

Eight runs read each row at once. A run has a lane (`mpisim.core.numerics.lanes`), and what is done
in a lane has the order of the loops for one run. So it has their bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import LANES, add, add_products, filled, load, store, sum_of, zeros
from mpisim.problems.loss_kernels import GRADIENT, LOSS, phi
from mpisim.problems.row_kernels import CHUNK, ONE, ONES


@njit(cache=True)
def _dots_of_runs(form, ids, indptr, indices, data, xs, zs):
    """zs[t] = a_t . x of each run, for the rows ``ids``; xs (d, LANES)."""
    for t in range(ids.shape[0]):
        row, total = ids[t], zeros(xs)
        for u in range(indptr[row], indptr[row + ONE]):
            x = load(xs, np.int64(indices[u]) * LANES)
            total = add(total, x) if form == ONES else add_products(total, filled(data[u]), x)
        store(zs, t * LANES, total)


@njit(cache=True)
def _add_of_runs(form, ids, indptr, indices, data, ws, gs):
    """gs += sum_t ws_t a_t of each run, over the rows ``ids``; gs (d, LANES)."""
    for t in range(ids.shape[0]):
        row, w = ids[t], load(ws, t * LANES)
        for u in range(indptr[row], indptr[row + ONE]):
            j = np.int64(indices[u]) * LANES
            g = load(gs, j)
            store(gs, j, add(g, w) if form == ONES else add_products(g, w, filled(data[u])))


@njit(cache=True)
def sweep_runs(form, kind, want, ids, bounds, store, labels, xs, scale, shift, losses, grads):
    """`row_kernels.sweep` with a point for each run, float64.

    form : ONES or SPARSE
    ids, bounds : of the n workers of one run
    xs : shape (runs, d); shift : (1, d) or (runs, d)
    scale, losses (runs n,), grads (runs n, d) : run by run
    """
    indptr, indices, data, _ = store
    n, (runs, d) = bounds.shape[0] - 1, xs.shape
    points, gs = np.zeros((d, LANES)), np.empty((d, LANES))
    zs, ws = np.zeros((CHUNK, LANES)), np.zeros((CHUNK, LANES))
    b = np.empty((7, CHUNK))
    z, y, w, loss, t, p, s = b[0], b[1], b[2], b[3], b[4], b[5], b[6]
    for first in range(0, runs, LANES):
        some = min(LANES, runs - first)
        points[:, :some] = xs[first : first + some].T
        for i in range(n):
            totals = np.zeros(LANES)
            gs[:] = 0
            for start in range(bounds[i], bounds[i + 1], CHUNK):
                here = ids[start : min(start + CHUNK, bounds[i + 1])]
                size = here.shape[0]
                _dots_of_runs(form, here, indptr, indices, data, points, zs)
                for j in range(size):
                    y[j] = labels[here[j]]
                for r in range(some):
                    z[:size] = zs[:size, r]
                    phi(kind, size, z, y, w, loss, want, t, p, s)
                    ws[:size, r] = w[:size]
                    if want & LOSS:
                        totals[r] += sum_of(loss, size)
                if want & GRADIENT:
                    _add_of_runs(form, here, indptr, indices, data, ws, gs)
            for r in range(some):
                run = first + r
                row, added = run * n + i, shift[run if shift.shape[0] > 1 else 0]
                if want & LOSS:
                    losses[row] = scale[row] * totals[r]
                if want & GRADIENT:
                    for j in range(d):
                        grads[row, j] = scale[row] * gs[j, r] + added[j]
