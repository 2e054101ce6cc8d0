"""Given sets of coordinates, dealt by a shared permutation: blocks of a partition, any subsets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mpisim.compressors.base import compressor
from mpisim.compressors.permutation import Permuted
from mpisim.core.errors import InputError
from mpisim.core.schema import require


@compressor("block-permutation", "block permutation", {"blocks": "blocks"})
class BlockPermutation(Permuted):
    """Worker i keeps one of the blocks of a fixed partition of the coordinates.

    blocks : m <= min(n, d) intervals as even as possible, or the list of their lengths, each at
        least 1, which add up to d. n = m q + r: each block goes to q workers, r drawn at random
        are idle, C_i(v) = (n / q) v on the block.

    PermK paper, Definition 7; Lemma 10: A = B = 1 - n (q-1) / ((n-1) q). omega = n / q - 1, for any
    lengths.
    """

    blocks: int | list[int]

    def check(self) -> None:
        bounds = self._bounds()
        m = bounds.size - 1
        self.copies = self.n // m
        sizes = np.zeros(self.n, np.int64)
        sizes[: m * self.copies] = np.repeat(np.diff(bounds), self.copies)
        parts = [np.tile(np.arange(a, b), self.copies) for a, b in pairwise(bounds)]
        self._slots = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(parts)

    def _bounds(self) -> np.ndarray:
        """Where each block begins, and d, shape (m + 1,)."""
        key, given, most = "compressor.blocks", self.blocks, min(self.n, self.d)
        if isinstance(given, int):
            require(1 <= given <= most, key, given, f"an integer from 1 to min(n, d) = {most}")
            return np.array([self.d * b // given for b in range(given + 1)])
        fits = 1 <= len(given) <= most and min(given) >= 1 and sum(given) == self.d
        require(fits, key, given, f"1 to {most} lengths of at least 1 that add up to d = {self.d}")
        return np.cumsum([0, *given])


@compressor("permuted-subsets", "permuted subsets", {})
class PermutedSubsets(Permuted):
    """Worker i gets mapping pi_i of n given ones, Q_j(v) = (n / q) v on subset j, 0 elsewhere.

    subsets : n lists of coordinates, numbered from 0; each coordinate is in the same number q of
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
