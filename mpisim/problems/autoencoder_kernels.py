"""The images of the linear autoencoder in compiled loops, worker by worker, and their codes.

Images are mostly background, so a shard stores only the pixels above 0, column by column as in
CSC. Column j of shard u has the entries e in ptr[u, j]:ptr[u, j + 1]; entry e is a pixel of the
shard's image rows[e] and has grey level values[e]. Shard u has the images starts[u]:starts[u + 1],
and image t has weight weights[t]. With b = [E^T, K] (d_f, 2 d_e), an image's code is a^T b.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import LANES, add_products, filled, load, store

WIDE = 4 * LANES  # numbers that a loop keeps in vector registers: a code, where d_e is 16


@njit(cache=True)
def pick(ptr, rows, values, times):
    """The entries of a shard's images with times[t] > 0, renumbered: (ptr, rows, values)."""
    number = np.cumsum(times > 0) - 1
    ends = np.zeros(ptr.size, np.int64)
    most = ptr[-1] - ptr[0]
    new_rows, new_values = np.empty(most, rows.dtype), np.empty(most, values.dtype)
    total = 0
    for j in range(ptr.size - 1):
        for e in range(ptr[j], ptr[j + 1]):
            if times[rows[e]] > 0:
                new_rows[total], new_values[total] = number[rows[e]], values[e]
                total += 1
        ends[j + 1] = total
    return ends, new_rows, new_values


@njit(cache=True)
def encode(ptr, rows, values, levels, b, codes):
    """codes[t] = a_t^T b for the images of one shard; each sum is in the order of the pixels."""
    codes[:] = 0
    flat, sums, width = b.reshape(-1), codes.reshape(-1), b.shape[1]
    for c in range(0, width & -WIDE, WIDE):
        for j in range(b.shape[0]):
            at = j * width + c
            b_0, b_1 = load(flat, at), load(flat, at + LANES)
            b_2, b_3 = load(flat, at + 2 * LANES), load(flat, at + 3 * LANES)
            for e in range(ptr[j], ptr[j + 1]):
                level, t = filled(levels[values[e]]), np.int64(rows[e]) * width + c
                store(sums, t, add_products(load(sums, t), level, b_0))
                t += LANES
                store(sums, t, add_products(load(sums, t), level, b_1))
                t += LANES
                store(sums, t, add_products(load(sums, t), level, b_2))
                t += LANES
                store(sums, t, add_products(load(sums, t), level, b_3))
    for j in range(b.shape[0]):
        for e in range(ptr[j], ptr[j + 1]):
            level, code = levels[values[e]], codes[rows[e]]
            for c in range(width & -WIDE, width):
                code[c] += level * b[j, c]


@njit(cache=True)
def add_moment(weights, codes, q):
    """q += sum_t weights_t h_t h_t^T, h_t the first d_e numbers of codes[t]; q (d_e, d_e)."""
    for t in range(weights.size):
        h = codes[t]
        for i in range(q.shape[0]):
            factor = weights[t] * h[i]
            for c in range(q.shape[1]):
                q[i, c] += factor * h[c]


@njit(cache=True)
def encode_shards(shards, levels, weights, b, start_q, which, codes, qs):
    """`encode`, and `add_moment` to ``start_q``, for the shards ``which``."""
    ptr, rows, values, starts = shards
    for u in which:
        shard = slice(starts[u], starts[u + 1])
        encode(ptr[u], rows, values, levels, b, codes[shard])
        qs[u] = start_q
        add_moment(weights[shard], codes[shard], qs[u])


@njit(cache=True)
def losses(starts, norms, weights, codes, gram, slots, out):
    """out[i] = sum_t weights_t (|a_t|^2 + 2 <h_t, k_t> - h_t^T gram h_t), [h_t, k_t] = codes[t]."""
    d_e = gram.shape[0]
    for i in range(slots.size):
        out[i] = 0
        for t in range(starts[slots[i]], starts[slots[i] + 1]):
            value = norms[t]
            for c in range(d_e):
                dot = 0.0
                for k in range(d_e):
                    dot += gram[c, k] * codes[t, k]
                value += codes[t, c] * (2.0 * codes[t, d_e + c] - dot)
            out[i] += weights[t] * value
