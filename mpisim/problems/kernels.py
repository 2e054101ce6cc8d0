"""Compiled loops of generalized linear models: sum_t phi(a_t . x, y_t) over rows a_t.

Rows are taken in chunks that stay in the cache: first all dot products z_t = a_t . x of a chunk,
then phi and phi' for the whole chunk in loops that the compiler turns into vector instructions,
then the gradient's rows. Everything goes worker by worker, and chunks start at a worker's first
row, so that no bit depends on the other workers of a block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LOGISTIC, NONCONVEX, SQUARES, PRODUCT = range(4)  # phi
ONES, SPARSE, DENSE = range(3)  # how rows are stored; ONES: sparse, and all stored entries are 1
LOSS, GRADIENT, DOTS = 1, 2, 4  # what is wanted, added up

CHUNK = 256  # rows of a chunk, sparse
DENSE_BYTES = 1 << 18  # of a chunk, dense: a fraction of the second-level cache
LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # 32 bits: its product with a small integer is exact
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, kept in the low bits
ONE = np.uint64(1)


def dense_chunk(d: int) -> int:
    """Rows of a chunk of dense rows of length ``d``: a multiple of 4."""
    return max(4, min(128, DENSE_BYTES // 8 // max(d, 1) // 4 * 4))


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _exp_minus_abs(n, z, y, t, p, s):
    """p = exp(-|y z|): Taylor to degree 13 on [-ln 2 / 2, ln 2 / 2], times a power of two.

    ``t`` and ``s`` are scratch. Within 2 ulp down to exp(-708), and 0 below; NaN stays NaN.
    """
    t_bits = t.view(np.int64)
    s_bits = s.view(np.int64)
    for j in range(n):
        a = -abs(y[j] * z[j])
        a = -708.0 if a < -708.0 else a
        k = a * LOG2_E + ROUND
        t[j] = k
        k -= ROUND
        r = (a - k * LN2_HIGH) - k * LN2_LOW
        q = 1 / 479001600 + r * (1 / 6227020800)
        q = 1 / 3628800 + r * (1 / 39916800 + r * q)
        q = 1 / 40320 + r * (1 / 362880 + r * q)
        q = 1 / 720 + r * (1 / 5040 + r * q)
        q = 1 / 24 + r * (1 / 120 + r * q)
        p[j] = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * q)))
    for j in range(n):
        s_bits[j] = (t_bits[j] + 1023) << 52
    for j in range(n):
        p[j] = 0.0 if abs(y[j] * z[j]) > 708.0 else p[j] * s[j]


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _log1p(e):
    """log(1 + e) = 2 artanh(e / (2 + e)), 0 <= e <= 1: the series, to 2e-18 relative."""
    v = e / (2 + e)
    u = v * v
    q = 1 / 29 + u * (1 / 31 + u * (1 / 33))
    q = 1 / 21 + u * (1 / 23 + u * (1 / 25 + u * (1 / 27 + u * q)))
    q = 1 / 13 + u * (1 / 15 + u * (1 / 17 + u * (1 / 19 + u * q)))
    q = 1 / 5 + u * (1 / 7 + u * (1 / 9 + u * (1 / 11 + u * q)))
    return 2 * v * (1 + u * (1 / 3 + u * q))


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def phi(kind, n, z, y, w, loss, want, t, p, s):
    """w = d phi / d z and, if wanted, loss = phi, for the first ``n`` rows of a chunk."""
    if kind == LOGISTIC:
        _exp_minus_abs(n, z, y, t, p, s)
        for j in range(n):
            inverse = 1 / (1 + p[j])
            w[j] = -y[j] * (p[j] * inverse if y[j] * z[j] >= 0 else inverse)
        if want & LOSS:
            for j in range(n):
                margin = y[j] * z[j]
                loss[j] = _log1p(p[j]) + (-margin if margin < 0 else 0.0)
    elif kind == NONCONVEX:
        _exp_minus_abs(n, z, y, t, p, s)
        for j in range(n):
            large = 1 / (1 + p[j])
            small = p[j] * large
            positive = y[j] * z[j] >= 0
            sigma = large if positive else small
            rest = small if positive else large
            loss[j] = rest * rest
            w[j] = -2 * y[j] * sigma * loss[j]
    elif kind == SQUARES:
        for j in range(n):
            w[j] = z[j] - y[j]
            loss[j] = 0.5 * w[j] * w[j]
    else:
        for j in range(n):
            w[j] = y[j] * z[j]


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
    """One pass over the rows of m workers.

    Parameters
    ----------
    form, kind, want : int
        Storage, phi and what to compute, as above.
    ids : array, uint64
        Rows, worker after worker: worker i has ids[bounds[i]:bounds[i + 1]].
    bounds : array, shape (m + 1,), int64
    store : (indptr, indices, data, dense)
        Of all rows; what ``form`` does not use is empty. indptr uint64, indices uint32.
    labels : array, shape (rows,), float64
        y; for PRODUCT the weights.
    xs : array, shape (1, d) or (m, d)
        One point for all workers, or one for each.
    scale : array, shape (m,), float64
        losses = scale * sum of phi; gradients = scale * sum of phi' a + shift.
    shift : array, shape (d,)
    losses (m,), grads (m, d), dots (rows,) : arrays, written where wanted
    """
    indptr, indices, data, dense = store
    chunk = dense_chunk_rows(xs.shape[1]) if form == DENSE else CHUNK
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


dense_chunk_rows = njit(cache=True)(dense_chunk)


@njit(cache=True)
def gram_rows(ids, indptr, indices, data, weights, start, stop, out):
    """out (stop - start, d) += rows start to stop - 1 of sum_t weights_t a_t a_t^T, sparse a_t.

    ``data`` may be empty: all ones.
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
