"""`row_kernels.sweep` for multinomial logistic regression, and for an ensemble over sparse rows.

The loss of the former is phi(z) = log sum_c exp(z_c) - z_y. A point is a matrix W with a row for
each of C classes, and z = W a. Chunks and their order are those of `row_kernels`, so no bit depends
on the rest of the block.

In an ensemble eight runs read each row at once. A run has a lane (`mpisim.core.numerics.lanes`),
and what is done in a lane has the order of the loops for one run. So it has their bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.functions import LN2_HIGH, LN2_LOW, ROOT_2, exp, log_near_1
from mpisim.core.numerics.lanes import LANES, add, add_products, filled, load, store, sum_of, zeros
from mpisim.problems.loss_kernels import DOTS, GRADIENT, LOSS, exp_minus_abs, phi
from mpisim.problems.row_kernels import CHUNK, ONE, ONES, add_to, chunk_rows, dots_of


@njit(cache=True)
def sweep_classes(
    form, classes, want, ids, bounds, store, labels, xs, ys, scale, shift, losses, grads, dots
):
    """`row_kernels.sweep` for this phi, with points, shifts and gradients of C d coordinates.

    labels : y, from 0, shape (rows,); dots : the class c of the largest z_c, shape (rows,)
    """
    indptr, indices, data, dense = store
    d = xs.shape[1] // classes
    chunk = chunk_rows(form, d)
    z, w = np.empty((classes, chunk)), np.empty((classes, chunk))
    loss, scratch = np.empty(chunk), np.ones((5, classes * chunk))
    for i in range(bounds.shape[0] - 1):
        total = 0.0
        if want & GRADIENT:
            grads[i, :] = 0
        for start in range(bounds[i], bounds[i + 1], chunk):
            here = ids[start : min(start + chunk, bounds[i + 1])]
            n = here.shape[0]
            x = xs[i if xs.shape[0] > 1 else 0].reshape(classes, d)
            for c in range(classes):
                dots_of(form, here, indptr, indices, data, dense, x[c], z[c])
            if want & DOTS:
                for j in range(n):
                    dots[here[j]] = np.argmax(z[:, j])
            if want & (LOSS | GRADIENT):
                _phi(n, z, labels, here, w, loss, scratch)
            if want & LOSS:
                total += sum_of(loss, n)
            if want & GRADIENT:
                g = grads[i].reshape(classes, d)
                for c in range(classes):
                    add_to(form, here, indptr, indices, data, dense, w[c], g[c])
                if ys.shape[0] > 0:
                    y = ys[i if ys.shape[0] > 1 else 0].reshape(classes, d)
                    for c in range(classes):
                        dots_of(form, here, indptr, indices, data, dense, y[c], z[c])
                    _phi(n, z, labels, here, w, loss, scratch)
                    for c in range(classes):
                        for j in range(n):
                            w[c, j] = -w[c, j]
                        add_to(form, here, indptr, indices, data, dense, w[c], g[c])
        if want & LOSS:
            losses[i] = scale[i] * total
        if want & GRADIENT:
            factor, added = grads.dtype.type(scale[i]), shift[i if shift.shape[0] > 1 else 0]
            for j in range(grads.shape[1]):
                grads[i, j] = factor * grads[i, j] + added[j]


@njit(cache=True, error_model="numpy")
def _phi(n, z, labels, ids, w, loss, scratch):
    """w = d phi / d z (C, n), and loss = phi, of the rows ``ids``; ``z`` (C, n) is lost."""
    classes = z.shape[0]
    away, t, p, s, ones = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    for j in range(n):
        top, y = z[:, j].max(), np.int64(labels[ids[j]])
        loss[j] = top - z[y, j]
        for c in range(classes):
            away[j * classes + c] = z[c, j] - top
    exp_minus_abs(n * classes, away, ones, t, p, s)
    for j in range(n):
        e = p[j * classes : (j + 1) * classes]
        total = 0.0
        for c in range(classes):
            total += e[c]
        for c in range(classes):
            w[c, j] = e[c] / total - (c == labels[ids[j]])
        doublings = 0
        while total > ROOT_2:
            total *= 0.5
            doublings += 1
        loss[j] += doublings * LN2_HIGH + (log_near_1(total - 1) + doublings * LN2_LOW)


def probabilities(z: np.ndarray) -> np.ndarray:
    """exp(z_c) / sum_c exp(z_c) of each column of z (C, rows)."""
    e = exp(np.maximum(z - z.max(axis=0), -700))
    return e / e.sum(axis=0)


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
