"""Compiled loops over minibatches of generalized linear models' rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.problems.loss_kernels import GRADIENT, phi
from mpisim.problems.row_kernels import add_to, chunk_rows, dots_of


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
def batch_changes(form, kind, batch, starts, stops, store, labels, x, y, scale, shift, out):
    """out (m, d) = scale_i sum_j (phi'(a_j . x) - phi'(a_j . y)) a_j + shift, j in batch[i].

    The rows are read once for both points. The other arguments are those of `row_kernels.sweep`;
    ``batch`` (m, b) and the return value are those of `batch_ids`.
    """
    indptr, indices, data, dense = store
    chunk = chunk_rows(form, x.size)
    buffers = np.empty((8, chunk))
    z, c, w, v, loss, t, p, s = (
        buffers[0], buffers[1], buffers[2], buffers[3], buffers[4], buffers[5], buffers[6],
        buffers[7],
    )  # fmt: skip
    b = batch.shape[1]
    ids = np.empty(batch.size, np.uint64)
    if not batch_ids(batch, starts, stops, ids):
        return False
    for i in range(batch.shape[0]):
        g = out[i]
        g[:] = 0
        for start in range(i * b, (i + 1) * b, chunk):
            here = ids[start : min(start + chunk, (i + 1) * b)]
            n = here.shape[0]
            for j in range(n):
                c[j] = labels[here[j]]
            dots_of(form, here, indptr, indices, data, dense, x, z)
            phi(kind, n, z, c, w, loss, GRADIENT, t, p, s)
            dots_of(form, here, indptr, indices, data, dense, y, z)
            phi(kind, n, z, c, v, loss, GRADIENT, t, p, s)
            for j in range(n):
                w[j] -= v[j]
            add_to(form, here, indptr, indices, data, dense, w, g)
        factor = out.dtype.type(scale[i])
        for j in range(g.size):
            g[j] = factor * g[j] + shift[j]
    return True
