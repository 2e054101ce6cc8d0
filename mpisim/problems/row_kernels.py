"""Compiled loops over the rows of generalized linear models: sum_t phi(a_t . x, y_t).

They take rows in chunks that stay in the cache: first all dot products z_t = a_t . x of a chunk,
then phi and phi' for the whole chunk, then the rows' part of the gradient. They go worker by
worker, and a chunk starts at a worker's first row, so no bit depends on the rest of the block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.problems.loss_kernels import DOTS, GRADIENT, LOSS, phi

ONES, SPARSE, DENSE = range(3)  # how rows are stored; ONES: sparse, and all stored entries are 1

CHUNK = 256  # rows of a chunk, sparse
DENSE_BYTES = 1 << 18  # of a chunk, dense: a fraction of the second-level cache
ONE = np.uint64(1)


@njit(cache=True)
def chunk_rows(form, d):
    """Rows of a chunk; a multiple of 4 for dense rows, whose length is ``d``."""
    if form != DENSE:
        return CHUNK
    return max(4, min(128, DENSE_BYTES // 8 // max(d, 1) // 4 * 4))


@njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _sum(v, n):
    total = 0.0
    for j in range(n):
        total += v[j]
    return total


@njit(cache=True)
def _sparse_dots(form, ids, indptr, indices, data, x, z):
    zero = x.dtype.type(0)
    for t in range(ids.shape[0]):
        row = ids[t]
        total = zero
        if form == ONES:
            for u in range(indptr[row], indptr[row + ONE]):
                total += x[indices[u]]
        else:
            for u in range(indptr[row], indptr[row + ONE]):
                total += data[u] * x[indices[u]]
        z[t] = total


@njit(cache=True)
def _sparse_add(form, ids, indptr, indices, data, w, g):
    for t in range(ids.shape[0]):
        row = ids[t]
        c = g.dtype.type(w[t])
        if form == ONES:
            for u in range(indptr[row], indptr[row + ONE]):
                g[indices[u]] += c
        else:
            for u in range(indptr[row], indptr[row + ONE]):
                g[indices[u]] += c * data[u]


@njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _dot4(a, b, c, e, x):
    zero = x.dtype.type(0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    for j in range(x.shape[0]):
        s0 += a[j] * x[j]
        s1 += b[j] * x[j]
        s2 += c[j] * x[j]
        s3 += e[j] * x[j]
    return s0, s1, s2, s3


@njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _dot(a, x):
    total = x.dtype.type(0)
    for j in range(x.shape[0]):
        total += a[j] * x[j]
    return total


@njit(cache=True)
def _dense_dots(ids, dense, x, z):
    four = ids.shape[0] // 4 * 4
    for t in range(0, four, 4):
        z[t], z[t + 1], z[t + 2], z[t + 3] = _dot4(
            dense[ids[t]], dense[ids[t + 1]], dense[ids[t + 2]], dense[ids[t + 3]], x
        )
    for t in range(four, ids.shape[0]):
        z[t] = _dot(dense[ids[t]], x)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _dense_add(ids, dense, w, g):
    four = ids.shape[0] // 4 * 4
    kind = g.dtype.type
    for t in range(0, four, 4):
        w0, w1, w2, w3 = kind(w[t]), kind(w[t + 1]), kind(w[t + 2]), kind(w[t + 3])
        a, b, c, e = dense[ids[t]], dense[ids[t + 1]], dense[ids[t + 2]], dense[ids[t + 3]]
        for j in range(g.shape[0]):
            g[j] += (w0 * a[j] + w1 * b[j]) + (w2 * c[j] + w3 * e[j])
    for t in range(four, ids.shape[0]):
        w0 = kind(w[t])
        a = dense[ids[t]]
        for j in range(g.shape[0]):
            g[j] += w0 * a[j]


@njit(cache=True)
def dots_of(form, ids, indptr, indices, data, dense, x, z):
    """z_t = a_t . x for the rows ``ids``."""
    if form == DENSE:
        _dense_dots(ids, dense, x, z)
    else:
        _sparse_dots(form, ids, indptr, indices, data, x, z)


@njit(cache=True)
def add_to(form, ids, indptr, indices, data, dense, w, g):
    """g += sum_t w_t a_t over the rows ``ids``."""
    if form == DENSE:
        _dense_add(ids, dense, w, g)
    else:
        _sparse_add(form, ids, indptr, indices, data, w, g)


@njit(cache=True)
def sweep(form, kind, want, ids, bounds, store, labels, xs, scale, shift, losses, grads, dots):
    """Losses, gradients or dot products of m workers, in one pass over their rows.

    form, kind, want : how rows are stored (see above); phi and what to compute (`loss_kernels`)
    ids : rows, worker after worker: worker i has ids[bounds[i]:bounds[i + 1]]; uint64
    bounds : shape (m + 1,), int64
    store : (indptr, indices, data, dense), all rows; arrays that ``form`` does not use are empty;
        indptr uint64, indices uint32
    labels : y, shape (rows,), float64; for PRODUCT the weights
    xs : one point for all workers, shape (1, d), or one for each, (m, d)
    scale : losses = scale * sum of phi; gradients = scale * sum of phi' a + shift; (m,), float64
    shift : shape (d,)
    losses (m,), grads (m, d), dots (rows,) : those that ``want`` names are written
    """
    indptr, indices, data, dense = store
    chunk = chunk_rows(form, xs.shape[1])
    buffers = np.empty((7, chunk))
    z, y, w, loss, t, p, s = (
        buffers[0], buffers[1], buffers[2], buffers[3], buffers[4], buffers[5], buffers[6],
    )  # fmt: skip
    for i in range(bounds.shape[0] - 1):
        x = xs[i if xs.shape[0] > 1 else 0]
        total = 0.0
        if want & GRADIENT:
            grads[i, :] = 0
        for start in range(bounds[i], bounds[i + 1], chunk):
            here = ids[start : min(start + chunk, bounds[i + 1])]
            n = here.shape[0]
            dots_of(form, here, indptr, indices, data, dense, x, z)
            if want & DOTS:
                for j in range(n):
                    dots[here[j]] = z[j]
            if want & (LOSS | GRADIENT):
                for j in range(n):
                    y[j] = labels[here[j]]
                phi(kind, n, z, y, w, loss, want, t, p, s)
            if want & LOSS:
                total += _sum(loss, n)
            if want & GRADIENT:
                add_to(form, here, indptr, indices, data, dense, w, grads[i])
        if want & LOSS:
            losses[i] = scale[i] * total
        if want & GRADIENT:
            c = grads.dtype.type(scale[i])
            for j in range(grads.shape[1]):
                grads[i, j] = c * grads[i, j] + shift[j]


@njit(cache=True)
def gram_rows(ids, indptr, indices, data, weights, start, stop, out):
    """out (stop - start, d) += rows start to stop - 1 of sum_t weights_t a_t a_t^T, sparse a_t.

    An empty ``data`` stands for entries that are all 1.
    """
    ones = data.shape[0] == 0
    for t in range(ids.shape[0]):
        row = ids[t]
        for u in range(indptr[row], indptr[row + ONE]):
            j = np.int64(indices[u])
            if start <= j < stop:
                c = weights[row] * (1.0 if ones else data[u])
                for v in range(indptr[row], indptr[row + ONE]):
                    out[j - start, indices[v]] += c * (1.0 if ones else data[v])
