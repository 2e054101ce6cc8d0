"""Compiled loops over the rows of generalized linear models: sum_t phi(a_t . x, y_t).

They take rows in chunks that stay in the cache: first all dot products z_t = a_t . x of a chunk,
then phi and phi' for the whole chunk, then the rows' part of the gradient. They go worker by
worker, and a chunk starts at a worker's first row, so no bit depends on the rest of the block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import LANES, add_products, load, reduce, sum_of, zeros
from mpisim.core.numerics.sums import add_four
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


@njit(cache=True)
def _dense_dots(ids, dense, x, z):
    """Four rows at a time; for the rest, the last one again. Each has the bits of `lanes.dot`."""
    n, d = ids.shape[0], x.size
    in_lanes = d & -LANES
    for t in range(0, n, 4):
        t1, t2, t3 = min(t + 1, n - 1), min(t + 2, n - 1), min(t + 3, n - 1)
        r0, r1, r2, r3 = np.int64(ids[t]), np.int64(ids[t1]), np.int64(ids[t2]), np.int64(ids[t3])
        z0 = z1 = z2 = z3 = x.dtype.type(0)
        for j in range(in_lanes, d):
            z0 += dense[r0, j] * x[j]
            z1 += dense[r1, j] * x[j]
            z2 += dense[r2, j] * x[j]
            z3 += dense[r3, j] * x[j]
        s0 = s1 = s2 = s3 = zeros(x)
        for j in range(0, in_lanes, LANES):
            v = load(x, j)
            s0 = add_products(s0, load(dense, r0 * d + j), v)
            s1 = add_products(s1, load(dense, r1 * d + j), v)
            s2 = add_products(s2, load(dense, r2 * d + j), v)
            s3 = add_products(s3, load(dense, r3 * d + j), v)
        z[t], z[t1] = reduce(s0) + z0, reduce(s1) + z1
        z[t2], z[t3] = reduce(s2) + z2, reduce(s3) + z3


@njit(cache=True)
def _dense_add(ids, dense, w, g):
    """Row after row is added to each coordinate; four rows in one pass over g."""
    n, kind, flat = ids.shape[0], g.dtype.type, dense.reshape(-1)
    four = n // 4 * 4
    for t in range(0, four, 4):
        weights = (kind(w[t]), kind(w[t + 1]), kind(w[t + 2]), kind(w[t + 3]))
        add_four(g, flat, (ids[t], ids[t + 1], ids[t + 2], ids[t + 3]), weights)
    for t in range(four, n):
        c, row = kind(w[t]), dense[ids[t]]
        for j in range(g.size):
            g[j] += c * row[j]


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
def sweep(form, kind, want, ids, bounds, store, labels, xs, ys, scale, shift, losses, grads, dots):
    """Losses, gradients or dot products of m workers, in one pass over their rows.

    Where ``ys`` has points, phi' at x minus phi' at y stands for phi'.

    form, kind, want : how rows are stored (see above); phi and what to compute (`loss_kernels`)
    ids : rows, worker after worker: worker i has ids[bounds[i]:bounds[i + 1]]; uint64
    bounds : shape (m + 1,), int64
    store : (indptr, indices, data, dense), all rows; arrays that ``form`` does not use are empty;
        indptr uint64, indices uint32
    labels : y, shape (rows,), float64; for PRODUCT the weights
    xs : one point for all workers, shape (1, d), or one for each, (m, d)
    ys : likewise, or none, shape (0, d); then only gradients may be wanted
    scale : losses = scale * sum of phi; gradients = scale * sum of phi' a + shift; (m,), float64
    shift : shape (1, d) or (m, d)
    losses (m,), grads (m, d), dots (rows,) : those that ``want`` names are written
    """
    indptr, indices, data, dense = store
    chunk = chunk_rows(form, xs.shape[1])
    buffers = np.empty((8, chunk))
    z, y, w, loss = buffers[0], buffers[1], buffers[2], buffers[3]
    t, p, s, v = buffers[4], buffers[5], buffers[6], buffers[7]
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
            if ys.shape[0] > 0:
                other = ys[i if ys.shape[0] > 1 else 0]
                dots_of(form, here, indptr, indices, data, dense, other, z)
                phi(kind, n, z, y, v, loss, GRADIENT, t, p, s)
                for j in range(n):
                    w[j] -= v[j]
            if want & LOSS:
                total += sum_of(loss, n)
            if want & GRADIENT:
                add_to(form, here, indptr, indices, data, dense, w, grads[i])
        if want & LOSS:
            losses[i] = scale[i] * total
        if want & GRADIENT:
            c, added = grads.dtype.type(scale[i]), shift[i if shift.shape[0] > 1 else 0]
            for j in range(grads.shape[1]):
                grads[i, j] = c * grads[i, j] + added[j]


@njit(cache=True)
def batch_ids(batch, starts, stops, ids):
    """ids = starts[i] + batch[i, j], flat; False if a number is out of worker i's range."""
    m, b = batch.shape
    for i in range(m):
        for j in range(b):
            if batch[i, j] < 0 or batch[i, j] >= stops[i] - starts[i]:
                return False
            ids[i * b + j] = starts[i] + batch[i, j]
    return True


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


@njit(cache=True)
def gram_triangles(form, ids, bounds, store, d, weights, scale, shared, out):
    """out[i] = scale[i] sum_t weights_t a_t a_t^T + shared I, over worker i's rows.

    Each is a vector of `mpisim.core.numerics.eigen`; ids and bounds as for `sweep`.
    """
    indptr, indices, data, dense = store
    root = np.sqrt(2.0)
    for i in range(bounds.shape[0] - 1):
        triangle = out[i]
        triangle[:] = 0
        for t in range(bounds[i], bounds[i + 1]):
            row = ids[t]
            w = scale[i] * weights[row]
            if form == DENSE:
                a = dense[row]
                for k in range(d):
                    c, first = w * a[k], k * (k + 1) // 2
                    if c != 0:
                        for q in range(k):
                            triangle[first + q] += c * root * a[q]
                        triangle[first + k] += c * a[k]
                continue
            for u in range(indptr[row], indptr[row + ONE]):
                j = np.int64(indices[u])
                start = j * (j + 1) // 2
                c = w * (1.0 if form == ONES else data[u])
                for v in range(indptr[row], u):
                    value = 1.0 if form == ONES else data[v]
                    triangle[start + np.int64(indices[v])] += c * root * value
                triangle[start + j] += c * (1.0 if form == ONES else data[u])
        for k in range(d):
            triangle[k * (k + 1) // 2 + k] += shared
