"""Compressors that share a random permutation: PermK, block permutation, permuted subsets.

Worker i keeps coordinates that no worker draws for itself: one permutation of the round, known to
all, says who keeps what. The indices cost no bits, the compressors are correlated, and the error
of the mean depends on how different the workers' vectors are (PermK paper, Szlendak et al., 2022).
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from mpisim.compressors.base import FLOAT_BITS, Compressor, compressor
from mpisim.errors import InputError
from mpisim.params import require
from mpisim.streams import Draw, below
from mpisim.vectors import Vectors
from mpisim.wire.base import Message, Precision
from mpisim.wire.sparse import Seeded, SeededForm

Rows = tuple[np.ndarray, np.ndarray]  # ptr (rows + 1,) and indices (ptr[-1],), int64, as in CSR


class Permuted(Compressor):
    """What they share: a round's permutation gives the coordinates of all n workers at once.

    `whole` makes that table in O(n + numbers sent); every block of workers has its slice of it.
    Each coordinate is kept by ``copies`` of the n workers, so C(v) is v n / copies there, unbiased.

    With E|C_i(x)|^2 = (n / copies) |x|^2 and, for i != j, E<C_i(x), C_j(y)> =
    n (copies - 1) / ((n - 1) copies) <x, y>, as in the proofs of Theorems 8 and 9 and Lemma 10,
    the AB inequality is an equality with A = B = (n - copies) / ((n - 1) copies).
    """

    seeded = lazy = True
    correlated = True
    copies: int

    def bind(self, d: int, n: int, precision: Precision) -> Compressor:
        self._last: tuple[Any, SeededForm] | None = None
        return super().bind(d, n, precision)

    @abstractmethod
    def whole(self, draw: Draw) -> Rows:
        """The coordinates of all n workers, ascending for each, in the round of ``draw``."""

    def form(self, draw: Draw) -> SeededForm:
        every = self._of_all(draw)
        ptr, indices = every.ptr, every.indices
        if draw.clients is not None:
            ptr, indices = chosen_rows(ptr, indices, draw.first + draw.members)
        elif draw.count < self.n:
            first, stop = draw.first, draw.first + draw.count
            indices = indices[ptr[first] : ptr[stop]]
            ptr = ptr[first : stop + 1] - ptr[first]
        else:
            return every
        return SeededForm(self.d, draw.workers, self.precision, ptr, indices, every.scale)

    def _of_all(self, draw: Draw) -> SeededForm:
        """All n workers' form, made once a round, for a rank's workers and for the server."""
        key = (draw.streams, draw.purpose, draw.round)
        if self._last is None or self._last[0] != key:
            scale = self.omega + 1
            form = SeededForm(self.d, self.n, self.precision, *self.whole(draw), scale)
            self._last = key, form
        return self._last[1]

    def compress(self, v: np.ndarray | Vectors, draw: Draw) -> Seeded:
        return self.form(draw).take(v)

    @property
    def omega(self) -> float:
        return self.n / self.copies - 1

    @property
    def A(self) -> float:
        return input_variance(self.n, self.copies)

    @property
    def B(self) -> float:
        return self.A

    @property
    def density(self) -> float:
        return self.d * self.copies / self.n

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Seeded)
        return FLOAT_BITS * message.form.counts


def input_variance(n: int, copies: int) -> float:
    """A = B = (n - q) / ((n - 1) q) where q = ``copies`` of n workers keep each coordinate.

    A single worker keeps all, without error: 0, where the formula (and Theorem 1, with 1) has 0/0.
    """
    return (n - copies) / ((n - 1) * copies) if n > 1 else 0.0


@compressor("permk")
class PermK(Permuted):
    """PermK: every coordinate is kept by one worker, or by q workers where n > d.

    n <= d, d = k n + r: a permutation of the coordinates deals k to each worker, and the r left
    over to r workers drawn at random; C_i(v) = n v there (PermK paper, Definitions 2 and 5).
    n >= d, n = q d + r: each coordinate goes to q workers, and r workers drawn at random are idle;
    C_i(v) = (n / q) v there (Definitions 3 and 6).

    omega = n - 1 or n / q - 1; A = B = 1 (Theorems 1 and 8) or 1 - n (q-1) / ((n-1) q)
    (Theorems 2 and 9). The paper charges 32 bits a value.

    groups : g, a divisor of n: workers 0 to n/g - 1 are a group, and so on; each group has a PermK
        of its own, with a permutation of its own (Appendix M). With A_G = B_G of n/g workers,
        Lemma 17 gives A = A_G / g and, by Jensen's inequality, B = B_G / g for all workers.

    Where this differs from the published code: there, n > d must be a multiple of d.
    """

    groups: int = 1

    def check(self) -> None:
        allowed = f"a divisor of n = {self.n}"
        g = self.groups
        require(g >= 1 and self.n % g == 0, "compressor.groups", g, allowed)
        self.members = self.n // g
        self.copies = g * max(1, self.members // self.d)
        if self.members > self.d:
            self._slots = singles(self.d, self.members)

    def whole(self, draw: Draw) -> Rows:
        g, members, d = self.groups, self.members, self.d
        if members > d:
            return deal_slots(draw.group_words(g, members), *self._slots)
        words = draw.group_words(g, d + d % members)
        return deal_coordinates(words, members, d)

    @property
    def A(self) -> float:
        return input_variance(self.members, self.copies // self.groups) / self.groups


@compressor("block-permutation")
class BlockPermutation(Permuted):
    """Worker i keeps one of the blocks of a fixed partition of the coordinates.

    blocks : m <= min(n, d); the partition has m intervals, as even as possible. n = m q + r: each
        block goes to q workers, r drawn at random are idle, C_i(v) = (n / q) v on the block.

    PermK paper, Definition 7; Lemma 10: A = B = 1 - n (q-1) / ((n-1) q). omega = n / q - 1.
    """

    blocks: int

    def check(self) -> None:
        m, most = self.blocks, min(self.n, self.d)
        allowed = f"an integer from 1 to min(n, d) = {most}"
        require(1 <= m <= most, "compressor.blocks", m, allowed)
        self.copies = self.n // m
        bounds = np.array([self.d * b // m for b in range(m + 1)])
        sizes = np.zeros(self.n, np.int64)
        sizes[: m * self.copies] = np.repeat(np.diff(bounds), self.copies)
        parts = [np.tile(np.arange(a, b), self.copies) for a, b in pairwise(bounds)]
        self._slots = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(parts)

    def whole(self, draw: Draw) -> Rows:
        return deal_slots(draw.group_words(1, self.n), *self._slots)


@compressor("permuted-subsets")
class PermutedSubsets(Permuted):
    """Worker i gets mapping pi_i of n given ones, Q_j(v) = (n / q) v on subset j, 0 elsewhere.

    subsets : n lists of coordinates, counted from 0; each coordinate is in the same number q of
        them. A list may be empty.

    PermK paper, Definition 8, for mappings that keep coordinates: omega = n / q - 1 and
    theta = n^2 / q, so that Lemma 11 has A = B = 1 - n (q-1) / ((n-1) q).
    """

    subsets: list[list[int]]

    def check(self) -> None:
        given = self.subsets
        if len(given) != self.n:
            raise InputError(f"compressor.subsets: has {len(given)} lists for n = {self.n} workers")
        members = np.array([j for subset in given for j in subset], np.int64)
        outside = (members < 0) | (members >= self.d)
        if outside.any():
            wrong, allowed = members[outside.argmax()], f"a coordinate from 0 to {self.d - 1}"
            raise InputError(f"compressor.subsets: {wrong} is not allowed; it must be {allowed}")
        counts = np.bincount(members, minlength=self.d)
        twice = any(len(set(subset)) < len(subset) for subset in given)
        if twice or counts.min() != counts.max() or counts[0] == 0:
            raise InputError(
                "compressor.subsets: each coordinate must be in equally many lists, once in each"
            )
        self.copies = int(counts[0])
        sizes = [0, *(len(subset) for subset in given)]
        rows = [np.sort(np.array(subset, np.int64)) for subset in given]
        self._slots = np.cumsum(sizes), np.concatenate(rows)

    def whole(self, draw: Draw) -> Rows:
        return deal_slots(draw.group_words(1, self.n), *self._slots)


def singles(d: int, n: int) -> Rows:
    """n slots for d coordinates: q = n // d with coordinate 0, q with 1, ..., n mod d empty."""
    q = n // d
    ptr = np.minimum(np.arange(n + 1), q * d)
    return ptr, np.repeat(np.arange(d), q)


@njit(cache=True)
def shuffle(words, items):
    """Fisher-Yates with one word for each swap; words fewer than items shuffle the first ones."""
    for t in range(words.size):
        j = t + below(words[t], items.size - t)
        items[t], items[j] = items[j], items[t]


@njit(cache=True)
def deal_coordinates(words, n, d):
    """Definition 5 for each group of n <= d workers; ``words`` (groups, d + d mod n), uint64."""
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
def deal_slots(words, slot_ptr, slot_indices):
    """Row ``slot`` of CSR rows for each worker, by a permutation of them for each group.

    ``words``: (groups, n), uint64, for n slots.
    """
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


@njit(cache=True)
def chosen_rows(ptr, indices, rows):
    """The CSR rows with the numbers ``rows``."""
    out_ptr = np.zeros(rows.size + 1, np.int64)
    for i in range(rows.size):
        out_ptr[i + 1] = out_ptr[i] + ptr[rows[i] + 1] - ptr[rows[i]]
    out = np.empty(out_ptr[-1], np.int64)
    for i in range(rows.size):
        out[out_ptr[i] : out_ptr[i + 1]] = indices[ptr[rows[i]] : ptr[rows[i] + 1]]
    return out_ptr, out
