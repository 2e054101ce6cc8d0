"""Assign coordinates to workers by shared permutations, as CSR rows with one row per worker."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.rng import below

Rows = tuple[np.ndarray, np.ndarray]  # ptr (rows + 1,) and indices (ptr[-1],), int64, as in CSR


def stacked(parts: list[Rows]) -> Rows:
    """The CSR rows of all parts, in order."""
    ends = np.cumsum([0, *(ptr[-1] for ptr, _ in parts)])
    ptr = [ptr[:-1] + end for (ptr, _), end in zip(parts, ends[:-1], strict=True)]
    return np.concatenate([*ptr, ends[-1:]]), np.concatenate([indices for _, indices in parts])


@njit(cache=True)
def repeated(ptr, indices, copies):
    """The CSR rows ``copies`` times, one after another."""
    m, size = ptr.size - 1, indices.size
    ends, out = np.empty(copies * m + 1, np.int64), np.empty(copies * size, np.int64)
    for copy in range(copies):
        ends[copy * m : (copy + 1) * m] = ptr[:-1] + copy * size
        out[copy * size : (copy + 1) * size] = indices
    ends[-1] = copies * size
    return ends, out


@njit(cache=True)
def shuffle(words, items):
    """Fisher-Yates, one word for each swap; with fewer words, only the first items are drawn."""
    for t in range(words.size):
        j = t + below(words[t], items.size - t)
        items[t], items[j] = items[j], items[t]


@njit(cache=True)
def deal_coordinates(words, n, d):
    """Definition 5 for each group of n <= d workers; ``words``: (groups, d + d mod n), uint64."""
    groups, k = words.shape[0], d // n
    ptr = np.empty(groups * n + 1, np.int64)
    indices = np.empty(groups * d, np.int64)
    owner, end = np.empty(d, np.int64), np.empty(n, np.int64)
    ptr[0] = 0
    for g in range(groups):
        coordinates, workers = np.arange(d), np.arange(n)
        shuffle(words[g, :d], coordinates)
        shuffle(words[g, d:], workers)
        end[:] = k
        for t in range(d - k * n):
            end[workers[t]] += 1
            owner[coordinates[k * n + t]] = workers[t]
        for i in range(n):
            for t in range(k * i, k * (i + 1)):
                owner[coordinates[t]] = i
            row = g * n + i
            ptr[row + 1] = ptr[row] + end[i]
            end[i] = ptr[row]
        for j in range(d):
            indices[end[owner[j]]] = j
            end[owner[j]] += 1
    return ptr, indices


@njit(cache=True)
def deal_singles(words, d):
    """Definition 6 for each group of n >= d workers; ``words``: (groups, n), uint64.

    With q = n // d, slot s of the n has coordinate s // q, and the last n mod d have none.
    """
    groups, n = words.shape
    q = n // d
    ptr = np.empty(groups * n + 1, np.int64)
    indices = np.empty(groups * q * d, np.int64)
    slots = np.empty(n, np.int32)  # short numbers: swaps miss the cache less often
    ptr[0] = 0
    end = 0
    for g in range(groups):
        slots[:] = np.arange(n)
        shuffle(words[g], slots)
        for i in range(n):
            if slots[i] < q * d:
                indices[end] = slots[i] // q
                end += 1
            ptr[g * n + i + 1] = end
    return ptr, indices


@njit(cache=True)
def deal_slots(words, slot_ptr, slot_indices):
    """Permute CSR rows, the n slots, in each group; ``words``: (groups, n), uint64."""
    groups, n = words.shape
    ptr = np.empty(groups * n + 1, np.int64)
    indices = np.empty(groups * slot_indices.size, np.int64)
    ptr[0] = 0
    end = row = 0
    for g in range(groups):
        slots = np.arange(n)
        shuffle(words[g], slots)
        for slot in slots:
            for t in range(slot_ptr[slot], slot_ptr[slot + 1]):
                indices[end] = slot_indices[t]
                end += 1
            row += 1
            ptr[row] = end
    return ptr, indices
