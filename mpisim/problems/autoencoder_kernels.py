"""Compiled loops of the linear autoencoder, worker by worker: no result depends on the block.

Images are mostly background, so a shard stores only the pixels above 0, column by column as in
CSC. Column j of shard u has the entries e in ptr[u, j]:ptr[u, j + 1]; entry e is a pixel of the
shard's image rows[e] and has grey level values[e]. Shard u has the images starts[u]:starts[u + 1],
and image t has weight weights[t]. With b = [E^T, K] (d_f, 2 d_e), an image's code is a^T b.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def count_pixels(pixels, images, starts, ptr):
    """ptr[u, 1:] = pixels above 0 in each column so far; ``images`` names rows of ``pixels``."""
    total = 0
    for u in range(starts.size - 1):
        own = images[starts[u] : starts[u + 1]]
        counts = np.zeros(pixels.shape[1], np.int64)
        for image in own:
            counts += pixels[image] > 0
        ptr[u, 0] = total
        for j in range(counts.size):
            total += counts[j]
            ptr[u, j + 1] = total


@njit(cache=True)
def place_pixels(pixels, images, starts, ptr, rows, values, norms):
    """Fill rows and values, and norms[t] = |a_t|^2 of pixels from 0 to 255.

    Goes image by image, so that the entries of a column ascend by image.
    """
    for u in range(starts.size - 1):
        free = ptr[u, :-1].copy()
        for t in range(starts[u + 1] - starts[u]):
            row = pixels[images[starts[u] + t]]
            norms[starts[u] + t] = 0
            for j in range(row.size):
                if row[j] > 0:
                    rows[free[j]], values[free[j]] = t, row[j]
                    free[j] += 1
                    norms[starts[u] + t] += float(row[j]) ** 2


@njit(cache=True)
def encode(ptr, rows, values, levels, b, codes):
    """codes[t] = a_t^T b for the images of one shard."""
    codes[:] = 0
    for j in range(b.shape[0]):
        column = b[j]
        for e in range(ptr[j], ptr[j + 1]):
            level, code = levels[values[e]], codes[rows[e]]
            for c in range(column.size):
                code[c] += level * column[c]


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
def write_gradient(ptr, rows, values, levels, weights, codes, q, decoder, ridge, out):
    """out (d,) = 2 (D q - y_1), then 2 y_2^T, with y = ridge + sum_t weights_t a_t codes_t^T."""
    d_f, d_e = decoder.shape
    y, dot = np.empty(2 * d_e, out.dtype), np.empty(d_e, out.dtype)
    encoder = out[d_f * d_e :].reshape(d_e, d_f)
    for j in range(d_f):
        for c in range(y.size):
            y[c] = ridge[j, c]
        for e in range(ptr[j], ptr[j + 1]):
            level, code = levels[values[e]] * weights[rows[e]], codes[rows[e]]
            for c in range(y.size):
                y[c] += level * code[c]
        for c in range(d_e):
            dot[c] = 0
        for i in range(d_e):
            for c in range(d_e):
                dot[c] += decoder[j, i] * q[i, c]
        for c in range(d_e):
            out[j * d_e + c] = 2 * (dot[c] - y[c])
            encoder[c, j] = 2 * y[d_e + c]


@njit(cache=True)
def write_some(ptr, rows, values, levels, weights, codes, q, decoder, ridge, indices, out):
    """The numbers ``indices`` of `write_gradient`, by the same operations in the same order."""
    d_f, d_e = decoder.shape
    for k in range(indices.size):
        index = indices[k]
        first = index < d_f * d_e
        j = index // d_e if first else (index - d_f * d_e) % d_f
        c = index % d_e if first else d_e + (index - d_f * d_e) // d_f
        y = ridge[j, c]
        for e in range(ptr[j], ptr[j + 1]):
            y += levels[values[e]] * weights[rows[e]] * codes[rows[e], c]
        if first:
            dot = decoder.dtype.type(0)
            for i in range(d_e):
                dot += decoder[j, i] * q[i, c]
            y = dot - y
        out[k] = 2 * y


@njit(cache=True)
def encode_all(shards, levels, weights, b, start_q, codes, qs):
    """`encode`, and `add_moment` to ``start_q``, for every shard (ptr, rows, values, starts)."""
    ptr, rows, values, starts = shards
    for u in range(starts.size - 1):
        own = slice(starts[u], starts[u + 1])
        encode(ptr[u], rows, values, levels, b, codes[own])
        qs[u] = start_q
        add_moment(weights[own], codes[own], qs[u])


@njit(cache=True)
def write_gradients(shards, levels, weights, codes, qs, decoder, ridge, slots, known, out):
    """out[i]: the gradient for shard slots[i]; ``known``, unless empty, is that for shard 0."""
    ptr, rows, values, starts = shards
    for i in range(slots.size):
        u = slots[i]
        if u == 0 and known.size > 0:
            out[i] = known
        else:
            own = slice(starts[u], starts[u + 1])
            write_gradient(
                ptr[u], rows, values, levels, weights[own], codes[own], qs[u], decoder, ridge,
                out[i],
            )  # fmt: skip


@njit(cache=True)
def write_coordinates(
    shards, levels, weights, codes, qs, decoder, ridge, slots, own_ptr, indices, out
):
    """out[k]: number indices[k] of worker i's gradient, for k in own_ptr[i]:own_ptr[i + 1]."""
    ptr, rows, values, starts = shards
    for i in range(slots.size):
        u = slots[i]
        own, some = slice(starts[u], starts[u + 1]), slice(own_ptr[i], own_ptr[i + 1])
        write_some(
            ptr[u], rows, values, levels, weights[own], codes[own], qs[u], decoder, ridge,
            indices[some], out[some],
        )  # fmt: skip


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
def batch_gradients(shards, levels, batch, weight, b, start_q, decoder, ridge, slots, out):
    """out[i]: the gradient with weight ``weight`` for each image that batch[i] names."""
    ptr, rows, values, starts = shards
    for i in range(slots.size):
        u = slots[i]
        times = np.zeros(starts[u + 1] - starts[u], np.int64)
        for t in batch[i]:
            times[t] += 1
        own_ptr, own_rows, own_values = pick(ptr[u], rows, values, times)
        weights = times[times > 0] * weight
        codes, q = np.empty((weights.size, b.shape[1]), b.dtype), start_q.copy()
        encode(own_ptr, own_rows, own_values, levels, b, codes)
        add_moment(weights, codes, q)
        write_gradient(
            own_ptr, own_rows, own_values, levels, weights, codes, q, decoder, ridge, out[i]
        )


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
