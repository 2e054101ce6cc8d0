"""PermK, and what all compressors have in common that share a random permutation.

One permutation of the round, known to all, gives each worker its coordinates. The indices cost no
bits, the compressors are correlated, and the error of the mean depends on how different the
workers' vectors are (PermK paper, Szlendak et al., 2022).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np

from mpisim.compressors.base import compressor
from mpisim.compressors.deal import (
    Rows,
    deal_coordinates,
    deal_singles,
    deal_slots,
    repeated,
    stacked,
)
from mpisim.compressors.sparse import SeededCompressor
from mpisim.core.errors import InputError
from mpisim.core.numerics.sums import chosen_rows
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import Groups, input_variance
from mpisim.wire.base import Precision
from mpisim.wire.sparse import SeededForm


class Permuted(SeededCompressor):
    """A round's permutation gives the coordinates of all n workers at once.

    `deal` makes this table in O(n + numbers sent), and a block of workers takes its slice.
    ``copies`` of the n workers keep each coordinate, so C(v) is v n / copies there, unbiased.

    With E|C_i(x)|^2 = (n / copies) |x|^2 and, for i != j, E<C_i(x), C_j(y)> =
    n (copies - 1) / ((n - 1) copies) <x, y>, as in the proofs of Theorems 8 and 9 and Lemma 10,
    the AB inequality is an equality with A = B = (n - copies) / ((n - 1) copies).
    """

    correlated = True
    copies: int
    _last: dict[Any, Any]
    _slots: Any  # CSR rows of coordinates, n of them, which are permuted
    _each = 0  # coordinates of a worker, if all have as many

    def bind(self, d: int, n: int, precision: Precision) -> Permuted:
        bound = cast(Permuted, super().bind(d, n, precision))
        bound._last = {}  # the last round's form of all workers, by what its draw has
        return bound

    def deal(self, draw: Draw, repetition: int = 0) -> Rows:
        """The coordinates of all n workers, ascending for each, in the round of ``draw``.

        Workers that draw again have another permutation for each ``repetition``.
        """
        return deal_slots(draw.group_words(1, self.n, repetition), *self._slots)

    def form(self, draw: Draw) -> SeededForm:
        key = (draw.streams, draw.purpose, draw.round, draw.message, draw.runs)
        if key not in self._last:
            rows = self._of_runs(draw) if draw.runs else self.deal(draw)
            form = self._made(slice(None), *rows)
            self._last.clear()
            self._last[key] = form
        every = self._last[key]
        ptr, indices = every.ptr, every.indices
        workers: Any = slice(draw.first, draw.first + draw.count)
        if draw.clients is not None:
            workers, again = draw.first + draw.members, draw.repetitions
            tables = [self.deal(draw, t + 1) for t in range(again.max(initial=0))]
            if tables:
                ptr, indices = stacked([(ptr, indices), *tables])
            ptr, indices = chosen_rows(ptr, indices, workers + self.n * again)
        elif draw.count < self.n:
            indices = indices[ptr[workers.start] : ptr[workers.stop]]
            ptr = ptr[workers.start : workers.stop + 1] - ptr[workers.start]
        else:
            return every
        return self._made(workers, ptr, indices)

    def _of_runs(self, draw: Draw) -> Rows:
        """`deal`, for all runs of an ensemble."""
        draws = draw.of_runs()
        dealt = {one: self.deal(one) for one in dict.fromkeys(draws)}
        if len(dealt) > 1:
            return stacked([dealt[one] for one in draws])
        return repeated(*dealt[draws[0]], len(draws))

    def _made(self, workers: Any, ptr: np.ndarray, indices: np.ndarray) -> SeededForm:
        scale = self.scale
        if self._each:
            rows = indices.reshape(-1, self._each)
            return SeededForm.of_rows(self.d, self.precision, rows, cast(float, scale))
        if isinstance(scale, np.ndarray):
            scale = np.repeat(np.resize(scale[workers], ptr.size - 1), ptr[1:] - ptr[:-1])
        return SeededForm.of(self.d, self.precision, ptr, indices, scale)

    @property
    def scale(self) -> float | np.ndarray:
        """The factor of C_i: the same for all workers, or one for each, shape (n,)."""
        return self.n / self.copies

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


@compressor("permk", "PermK", {"groups": "groups"})
class PermK(Permuted):
    """PermK: one worker keeps each coordinate, or q workers if n > d.

    n <= d, d = k n + r: a permutation of the coordinates gives k to each worker, and the other r to
    r workers drawn at random; C_i(v) = n v there (PermK paper, Definitions 2 and 5).
    n >= d, n = q d + r: each coordinate goes to q workers, and r workers drawn at random are idle;
    C_i(v) = (n / q) v there (Definitions 3 and 6).

    omega = n - 1 or n / q - 1; A = B = 1 (Theorems 1 and 8) or 1 - n (q-1) / ((n-1) q)
    (Theorems 2 and 9). The paper charges 32 bits a value.

    groups : g from 1 to n: groups of neighbouring workers, as even as possible; or lists of workers
        (numbered from 0), each worker in one of them. Each group has its own PermK with its own
        permutation (Appendix M). omega and zeta are the largest of the groups', and A and B for all
        workers follow from Lemma 17.

    This differs from the published code: there, n > d must be a multiple of d.
    """

    groups: int | list[list[int]] = 1
    in_ensembles = True

    def check(self) -> None:
        self.label = labels(self.groups, self.n)
        self.sizes = np.bincount(self.label)
        self.copied = np.maximum(1, self.sizes // self.d)  # q of each group
        self._factors = self.sizes / self.copied
        sizes, starts = np.unique(self.sizes).tolist(), np.cumsum(self.sizes) - self.sizes
        self._by_size = [(m, np.flatnonzero(self.sizes == m)) for m in sizes]
        self._words = max(map(self._count, sizes))
        self.random_length = any(self.d % m and m % self.d for m in sizes)
        if len(sizes) == 1 and (self.d % sizes[0] == 0 or sizes[0] % self.d == 0):
            self._each = max(1, self.d // sizes[0])
        by_group = np.argsort(self.label, kind="stable")
        rows = [by_group[starts[of_m][:, None] + np.arange(m)].ravel() for m, of_m in self._by_size]
        self._place = np.argsort(np.concatenate(rows))  # of each worker among these rows
        self._in_order = bool((self._place == np.arange(self.n)).all())

    def deal(self, draw: Draw, repetition: int = 0) -> Rows:
        words = draw.group_words(self.sizes.size, self._words, repetition)
        if len(self._by_size) == 1:
            rows = self._deal_group(words, self._by_size[0][0])
        else:
            rows = stacked([self._deal_group(words[of_m], m) for m, of_m in self._by_size])
        return rows if self._in_order else chosen_rows(*rows, self._place)

    def _count(self, m: int) -> int:
        """Words for the permutation of a group of m."""
        return m if m > self.d else self.d + self.d % m

    def _deal_group(self, words: np.ndarray, m: int) -> Rows:
        """The coordinates of groups of m workers, group by group."""
        words = np.ascontiguousarray(words[:, : self._count(m)])
        if m >= self.d:
            return deal_singles(words, self.d)
        return deal_coordinates(words, m, self.d)

    @property
    def scale(self) -> float | np.ndarray:
        return self._factors[self.label] if len(self._by_size) > 1 else float(self._factors[0])

    @property
    def by_group(self) -> Groups | None:
        if self.sizes.size == 1:
            return None
        A = np.array(list(map(input_variance, self.sizes.tolist(), self.copied.tolist())))
        return Groups(self.label, A, A)

    @property
    def omega(self) -> float:
        return float(self._factors.max()) - 1

    @property
    def A(self) -> float:
        groups = self.by_group
        return groups.joint_A if groups else input_variance(self.n, int(self.copied[0]))

    @property
    def B(self) -> float:
        groups = self.by_group
        return groups.joint_B if groups else self.A

    @property
    def density(self) -> float:
        return self.d / float(self._factors.min())


def labels(groups: int | list[list[int]], n: int) -> np.ndarray:
    """The group of each of n workers, shape (n,), int64.

    groups : g from 1 to n, for neighbouring workers, as even as possible; or lists of workers,
        numbered from 0. `InputError` if these are not a partition into non-empty groups.
    """
    key = "compressor.groups"
    if isinstance(groups, int):
        require(1 <= groups <= n, key, groups, f"an integer from 1 to n = {n}, or lists of workers")
        bounds = np.arange(groups + 1) * n // groups
        return np.repeat(np.arange(groups), np.diff(bounds))
    members = np.array([worker for group in groups for worker in group], np.int64)
    if not all(groups) or not np.array_equal(np.sort(members), np.arange(n)):
        raise InputError(
            f"{key}: not a partition of the workers 0 to {n - 1};"
            " each must be in one list, and no list empty"
        )
    out = np.empty(n, np.int64)
    out[members] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return out


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
        self.random_length = bool(np.ptp(sizes))
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
            allowed = "each coordinate must be in equally many lists, once in each"
            raise InputError(f"compressor.subsets: {allowed}")
        self.copies = int(counts[0])
        self.random_length = len({*map(len, given)}) > 1
        rows = [np.sort(np.array(subset, np.int64)) for subset in given]
        self._slots = np.cumsum([0, *map(len, given)]), np.concatenate(rows)


@compressor("pattern", "sampling pattern", {"s": "s"})
class Pattern(Permuted):
    """Each coordinate goes to s of the c workers that send, C_i(v) = (c / s) v there.

    The sampling pattern of CompressedScaffnew and TAMUNA (Condat et al., 2022, 2023): coordinate k
    is in the columns s k, ..., s k + s - 1 modulo c of a table, and a random permutation gives the
    columns to the workers. c = n unless only some clients take part in a round.

    omega = n / s - 1 and A = B = (n - s) / ((n - 1) s), where all send.

    s : sparsity index, from 1 to n; a worker sends d s / c values, rounded up or down
    """

    random_length = True  # c is that of the round
    s: int

    def check(self) -> None:
        require(1 <= self.s <= self.n, "compressor.s", self.s, f"an integer from 1 to n = {self.n}")
        self.copies = self.s

    def form(self, draw: Draw) -> SeededForm:
        inside = slice(draw.first, draw.first + draw.count)
        c, clients = self.n, draw.clients
        if clients is not None:
            c = len(clients)
            inside = slice(*np.searchsorted(clients, (inside.start, inside.stop)).tolist())
            require(c >= self.s, "compressor.s", self.s, f"at most {c}: so few may send in a round")
        key = (draw.streams, draw.purpose, draw.round, draw.message, c)
        if key not in self._last:
            self._last.clear()
            self._last[key] = deal_slots(draw.group_words(1, c), *_columns(self.d, c, self.s))
        ptr, indices = self._last[key]
        indices = indices[ptr[inside.start] : ptr[inside.stop]]
        ptr = ptr[inside.start : inside.stop + 1] - ptr[inside.start]
        return SeededForm.of(self.d, self.precision, ptr, indices, c / self.s)

    @property
    def density(self) -> float:
        return self.d * self.s / self.n


@lru_cache(maxsize=8)
def _columns(d: int, c: int, s: int) -> Rows:
    """The coordinates of each column of the pattern's table, CSR."""
    columns = np.arange(d * s) % c
    order = np.argsort(columns, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=c))]), order // s
