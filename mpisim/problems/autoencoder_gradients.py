"""Gradients of the linear autoencoder in compiled loops, worker by worker.

No result depends on the block of workers. Shards and codes are those of `autoencoder_kernels`.
What a point's gradients have in common is its ``at_point``: (shards, levels, weights, codes, qs,
decoder, ridge), and ``common``, unless empty, is the gradient for shard 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import (
    LANES,
    add,
    add_products,
    filled,
    load,
    magnitude,
    store,
    zeros,
)
from mpisim.core.numerics.select import pick_largest, workspace
from mpisim.problems.autoencoder_kernels import WIDE, add_moment, encode, pick

TILE = 8  # pixels whose numbers of grad_E are written together


@njit(cache=True)
def write_gradient(ptr, rows, values, levels, weights, codes, q, decoder, ridge, out):
    """out (d,) = 2 (D q - y_1), then 2 y_2^T, with y = ridge + sum_t weights_t a_t codes_t^T.

    A few pixels at a time: their rows of y, then of D q, then a stretch of each row of grad_E.
    """
    d_f, d_e = decoder.shape
    width = 2 * d_e
    y = np.empty(TILE * width, out.dtype)
    flat_q, flat_ridge = q.reshape(-1), ridge.reshape(-1)
    flat_codes, flat_decoder = codes.reshape(-1), decoder.reshape(-1)
    for first in range(0, d_f, TILE):
        count = min(TILE, d_f - first)
        for s in range(count):
            j = first + s
            add_pixel(
                ptr[j], ptr[j + 1], rows, values, levels, weights, flat_codes, flat_ridge,
                j * width, y, s * width, width,
            )  # fmt: skip
        subtract_from_product(flat_decoder, first, count, flat_q, d_e, y, out)
        for c in range(d_e):
            at, column = np.uint64((d_e + c) * d_f + first), np.uint64(d_e + c)
            if count == TILE:  # a loop that the compiler unrolls
                for s in range(np.uint64(TILE)):
                    out[at + s] = 2 * y[s * np.uint64(width) + column]
            else:
                for s in range(np.uint64(count)):
                    out[at + s] = 2 * y[s * np.uint64(width) + column]


@njit(cache=True, forceinline=True)
def add_pixel(start, stop, rows, values, levels, weights, codes, ridge, j, y, s, width):
    """y[s:s + width] = ridge[j:j + width] + sum of weights_t level_e codes_t, t = rows[e].

    The sum is over the entries e = start, ..., stop - 1. ``codes``, ``ridge`` and ``y`` are flat.
    """
    for c in range(0, width & -WIDE, WIDE):
        at = j + c
        y_0, y_1 = load(ridge, at), load(ridge, at + LANES)
        y_2, y_3 = load(ridge, at + 2 * LANES), load(ridge, at + 3 * LANES)
        for e in range(start, stop):
            t = np.int64(rows[e])
            level, at = filled(levels[values[e]] * weights[t]), t * width + c
            y_0 = add_products(y_0, level, load(codes, at))
            y_1 = add_products(y_1, level, load(codes, at + LANES))
            y_2 = add_products(y_2, level, load(codes, at + 2 * LANES))
            y_3 = add_products(y_3, level, load(codes, at + 3 * LANES))
        at = s + c
        store(y, at, y_0)
        store(y, at + LANES, y_1)
        store(y, at + 2 * LANES, y_2)
        store(y, at + 3 * LANES, y_3)
    for c in range(width & -WIDE, width):
        total = ridge[j + c]
        for e in range(start, stop):
            t = np.int64(rows[e])
            total += levels[values[e]] * weights[t] * codes[t * width + c]
        y[s + c] = total


@njit(cache=True, forceinline=True)
def subtract_from_product(decoder, first, count, q, d_e, y, out):
    """out = 2 (D q - y_1) for pixels first, ..., first + count - 1; all arrays are flat.

    Each sum is in the order of q's rows. Four pixels share the numbers of q that they load.
    """
    four, wide = count & -4, d_e & -LANES
    for s in range(0, four, 4):
        j = (first + s) * d_e
        for c in range(0, wide, LANES):
            z_0, z_1, z_2, z_3 = zeros(q), zeros(q), zeros(q), zeros(q)
            for i in range(d_e):
                row, at = load(q, i * d_e + c), j + i
                z_0 = add_products(z_0, filled(decoder[at]), row)
                z_1 = add_products(z_1, filled(decoder[at + d_e]), row)
                z_2 = add_products(z_2, filled(decoder[at + 2 * d_e]), row)
                z_3 = add_products(z_3, filled(decoder[at + 3 * d_e]), row)
            at, source = j + c, 2 * s * d_e + c
            store_twice(out, at, z_0, y, source)
            store_twice(out, at + d_e, z_1, y, source + 2 * d_e)
            store_twice(out, at + 2 * d_e, z_2, y, source + 4 * d_e)
            store_twice(out, at + 3 * d_e, z_3, y, source + 6 * d_e)
    for s in range(count):
        for c in range(wide if s < four else 0, d_e):
            at, total = (first + s) * d_e, q.dtype.type(0)
            for i in range(d_e):
                total += decoder[at + i] * q[i * d_e + c]
            out[at + c] = 2 * (total - y[2 * s * d_e + c])


@njit(cache=True, forceinline=True)
def store_twice(out, at, lanes, y, source):
    """out[at:at + LANES] = 2 (lanes - y[source:source + LANES])."""
    rest = add_products(lanes, filled(y.dtype.type(-1)), load(y, source))
    store(out, at, add(rest, rest))


@njit(cache=True)
def write_gradients(at_point, common, slots, out):
    """out[i]: the gradient for shard slots[i]."""
    (ptr, rows, values, starts), levels, weights, codes, qs, decoder, ridge = at_point
    for i in range(slots.size):
        u = slots[i]
        if u == 0 and common.size > 0:
            out[i] = common
        else:
            images = slice(starts[u], starts[u + 1])
            write_gradient(
                ptr[u], rows, values, levels, weights[images], codes[images], qs[u], decoder, ridge,
                out[i],
            )  # fmt: skip


@njit(cache=True)
def largest_differences(at_point, common, slots, less, size, indices, values):
    """The k largest |numbers| of `write_gradients` minus ``less`` (m, d): both (m, k).

    Found in blocks of ``size``, as in `mpisim.core.numerics.select`.
    """
    m, d = less.shape
    out, work = np.empty((1, d), less.dtype), workspace(d)
    row, tops = out[0], np.empty(-(-d // size), np.int64)
    for i in range(m):
        state = less[i]
        write_gradients(at_point, common, slots[i : i + 1], out)
        for c in range(tops.size):
            top = magnitude(row.dtype.type(0))
            for j in range(np.uint64(c * size), np.uint64(min((c + 1) * size, d))):
                row[j] -= state[j]
                top = max(top, magnitude(row[j]))
            tops[c] = top
        pick_largest(row, tops, size, work, indices[i])
        for s in range(indices.shape[1]):
            values[i, s] = row[indices[i, s]]


@njit(cache=True, forceinline=True)
def place_of(index, d_f, d_e):
    """Where number ``index`` of a gradient is: in grad_D or not, pixel j, number c of y."""
    first = index < d_f * d_e
    if first:
        return first, index // d_e, index % d_e
    index -= d_f * d_e
    return first, index % d_f, d_e + index // d_f


@njit(cache=True)
def write_coordinates(at_point, before, slots, ends, indices, out):
    """out[k]: number indices[k] of worker i's gradient, for k in ends[i]:ends[i + 1].

    By the operations of `write_gradient`, in the same order. Unless ``before`` is None, minus the
    same number at that point, in one pass over the images.
    """
    (ptr, rows, values, starts), levels, weights, codes, qs, decoder, ridge = at_point
    if before is not None:
        old_codes, old_qs, old_decoder, old_ridge = before[3:]
    d_f, d_e = decoder.shape
    for i in range(slots.size):
        u = slots[i]
        for k in range(ends[i], ends[i + 1]):
            first, j, c = place_of(indices[k], d_f, d_e)
            y = ridge[j, c]
            old = y if before is None else old_ridge[j, c]
            for e in range(ptr[u, j], ptr[u, j + 1]):
                t = starts[u] + rows[e]
                level = levels[values[e]] * weights[t]
                y += level * codes[t, c]
                if before is not None:
                    old += level * old_codes[t, c]
            if first:
                dot = old_dot = decoder.dtype.type(0)
                for r in range(d_e):
                    dot += decoder[j, r] * qs[u, r, c]
                    if before is not None:
                        old_dot += old_decoder[j, r] * old_qs[u, r, c]
                y, old = dot - y, old_dot - old
            out[k] = 2 * y if before is None else 2 * y - 2 * old


@njit(cache=True)
def batch_gradients(shards, levels, batch, weight, b, start_q, decoder, ridge, slots, out):
    """out[i]: the gradient with weight ``weight`` for each image that batch[i] names."""
    ptr, rows, values, starts = shards
    for i in range(slots.size):
        u = slots[i]
        times = np.zeros(starts[u + 1] - starts[u], np.int64)
        for t in batch[i]:
            times[t] += 1
        picked, image_rows, image_values = pick(ptr[u], rows, values, times)
        weights = times[times > 0] * weight
        codes, q = np.empty((weights.size, b.shape[1]), b.dtype), start_q.copy()
        encode(picked, image_rows, image_values, levels, b, codes)
        add_moment(weights, codes, q)
        write_gradient(
            picked, image_rows, image_values, levels, weights, codes, q, decoder, ridge, out[i]
        )
