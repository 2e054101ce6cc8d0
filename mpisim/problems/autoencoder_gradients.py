"""Losses, codes and gradients of the linear autoencoder in compiled loops, worker by worker.

Images are mostly background, so a shard stores only the pixels above 0, column by column as in
CSC. Column j of shard u has the entries e in ptr[u, j]:ptr[u, j + 1]; entry e is a pixel of the
shard's image rows[e] and has grey level values[e]. Shard u has the images starts[u]:starts[u + 1],
and image t has weight weights[t]. With b = [E^T, K] (d_f, 2 d_e), an image's code is a^T b.

No result depends on the block of workers.
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
    fetch_ahead,
    filled,
    load,
    magnitude,
    store,
    zeros,
)
from mpisim.core.numerics.select import BLOCK, pick_largest, workspace

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
        for e in range(np.uint64(start), np.uint64(stop)):  # unsigned: no test for below 0
            t = np.uint64(rows[e])
            level, at = filled(levels[values[e]] * weights[t]), np.int64(t) * width + c
            y_0 = add_products(y_0, level, load(codes, at))
            y_1 = add_products(y_1, level, load(codes, at + LANES))
            y_2 = add_products(y_2, level, load(codes, at + 2 * LANES))
            y_3 = add_products(y_3, level, load(codes, at + 3 * LANES))
        at = s + c
        store(y, at, y_0)
        store(y, at + LANES, y_1)
        store(y, at + 2 * LANES, y_2)
        store(y, at + 3 * LANES, y_3)
    one, two = np.uint64(1), np.uint64(2)  # width is even
    for c in range(np.uint64(width & -WIDE), np.uint64(width), two):
        here, to = np.uint64(j) + c, np.uint64(s) + c
        z_0, z_1 = ridge[here], ridge[here + one]
        for e in range(np.uint64(start), np.uint64(stop)):
            image = np.uint64(rows[e])
            share, here = levels[values[e]] * weights[image], image * np.uint64(width) + c
            z_0 += share * codes[here]
            z_1 += share * codes[here + one]
        y[to], y[to + one] = z_0, z_1


@njit(cache=True, forceinline=True)
def subtract_from_product(decoder, first, count, q, d_e, y, out):
    """out = 2 (D q - y_1) for pixels first, ..., first + count - 1; all arrays are flat.

    Each sum is in the order of q's rows. Four pixels share the numbers of q that they load.
    """
    four, wide = count & -4, d_e & -LANES
    step, two, three = np.uint64(d_e), np.uint64(2), np.uint64(3)
    for s in range(0, four, 4):
        j = (first + s) * d_e
        for c in range(0, wide, LANES):
            z_0, z_1, z_2, z_3 = zeros(q), zeros(q), zeros(q), zeros(q)
            for i in range(d_e):
                row, at = load(q, i * d_e + c), np.uint64(j + i)
                z_0 = add_products(z_0, filled(decoder[at]), row)
                z_1 = add_products(z_1, filled(decoder[at + step]), row)
                z_2 = add_products(z_2, filled(decoder[at + two * step]), row)
                z_3 = add_products(z_3, filled(decoder[at + three * step]), row)
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
        state, shared = less[i], slots[i] == 0 and common.size > 0
        if not shared:
            write_gradients(at_point, common, slots[i : i + 1], out)
        for c in range(tops.size):
            fetch_ahead(less, i * d + c * size, BLOCK)
            block = range(np.uint64(c * size), np.uint64(min((c + 1) * size, d)))
            top = magnitude(row.dtype.type(0))
            if shared:
                for j in block:
                    row[j] = common[j] - state[j]
                    top = max(top, magnitude(row[j]))
            else:
                for j in block:
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
            for e in range(np.uint64(ptr[j]), np.uint64(ptr[j + 1])):
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
