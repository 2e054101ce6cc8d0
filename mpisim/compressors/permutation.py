"""PermK, and what all compressors have in common that share a random permutation.

One permutation of the round, known to all, gives each worker its coordinates. The indices cost no
bits, the compressors are correlated, and the error of the mean depends on how different the
workers' vectors are (PermK paper, Szlendak et al., 2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.deal import (
    Rows,
    chosen_rows,
    deal_coordinates,
    deal_singles,
    deal_slots,
    stacked,
)
from mpisim.compressors.groups import labels
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.rng import Draw
from mpisim.theory.compression import FLOAT_BITS, Groups, input_variance
from mpisim.wire.base import Message
from mpisim.wire.sparse import Seeded, SeededForm


class Permuted(Compressor):
    """A round's permutation gives the coordinates of all n workers at once.

    `whole` makes this table in O(n + numbers sent), and a block of workers takes its slice.
    ``copies`` of the n workers keep each coordinate, so C(v) is v n / copies there, unbiased.

    With E|C_i(x)|^2 = (n / copies) |x|^2 and, for i != j, E<C_i(x), C_j(y)> =
    n (copies - 1) / ((n - 1) copies) <x, y>, as in the proofs of Theorems 8 and 9 and Lemma 10,
    the AB inequality is an equality with A = B = (n - copies) / ((n - 1) copies).
    """

    seeded = lazy = on_device = True
    correlated = True
    copies: int
    _slots: Any  # CSR rows of coordinates, n of them, which are permuted
    _last: tuple[Any, SeededForm] | None = None  # the last round's form of all workers

    def whole(self, draw: Draw, repetition: int = 0) -> Rows:
        """The coordinates of all n workers, ascending for each, in the round of ``draw``.

        Workers that draw again have another permutation for each ``repetition``.
        """
        return deal_slots(draw.group_words(1, self.n, repetition), *self._slots)

    def form(self, draw: Draw) -> SeededForm:
        key = (draw.streams, draw.purpose, draw.round, draw.message)
        if self._last is None or self._last[0] != key:
            form = self._made(slice(None), self.n, *self.whole(draw))
            vars(self)["_last"] = key, form  # no state: the draw decides it
        every: SeededForm = vars(self)["_last"][1]
        ptr, indices = every.ptr, every.indices
        workers: Any = slice(draw.first, draw.first + draw.count)
        if draw.clients is not None:
            workers, again = draw.first + draw.members, draw.repetitions
            tables = [self.whole(draw, t + 1) for t in range(again.max(initial=0))]
            if tables:
                ptr, indices = stacked([(ptr, indices), *tables])
            ptr, indices = chosen_rows(ptr, indices, workers + self.n * again)
        elif draw.count < self.n:
            indices = indices[ptr[workers.start] : ptr[workers.stop]]
            ptr = ptr[workers.start : workers.stop + 1] - ptr[workers.start]
        else:
            return every
        return self._made(workers, draw.workers, ptr, indices)

    def _made(self, workers: Any, count: int, ptr: np.ndarray, indices: np.ndarray) -> SeededForm:
        scale = self.scale
        if isinstance(scale, np.ndarray):
            scale = np.repeat(scale[workers], ptr[1:] - ptr[:-1])
        return SeededForm(self.d, count, self.precision, ptr, indices, scale)

    @property
    def scale(self) -> float | np.ndarray:
        """The factor of C_i: the same for all workers, or one for each, shape (n,)."""
        return self.n / self.copies

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Seeded:
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

    def check(self) -> None:
        self.label = labels(self.groups, self.n)
        self.sizes = np.bincount(self.label)
        self.copied = np.maximum(1, self.sizes // self.d)  # q of each group
        self._factors = self.sizes / self.copied
        self._dealt = [(m, np.flatnonzero(self.sizes == m)) for m in np.unique(self.sizes).tolist()]
        self._words = max(self._count(m) for m, _ in self._dealt)
        by_group, start = np.argsort(self.label, kind="stable"), np.cumsum(self.sizes) - self.sizes
        worker = [by_group[start[own][:, None] + np.arange(m)].ravel() for m, own in self._dealt]
        self._place = np.argsort(np.concatenate(worker))  # the dealt row of each worker
        self._in_order = bool((self._place == np.arange(self.n)).all())

    def whole(self, draw: Draw, repetition: int = 0) -> Rows:
        words = draw.group_words(self.sizes.size, self._words, repetition)
        if len(self._dealt) == 1:
            rows = self._deal(words, self._dealt[0][0])
        else:
            rows = stacked([self._deal(words[own], m) for m, own in self._dealt])
        return rows if self._in_order else chosen_rows(*rows, self._place)

    def _count(self, m: int) -> int:
        """Words for the permutation of a group of m."""
        return m if m > self.d else self.d + self.d % m

    def _deal(self, words: np.ndarray, m: int) -> Rows:
        """The coordinates of groups of m workers, group by group."""
        words = np.ascontiguousarray(words[:, : self._count(m)])
        if m >= self.d:
            return deal_singles(words, self.d)
        return deal_coordinates(words, m, self.d)

    @property
    def scale(self) -> float | np.ndarray:
        return self._factors[self.label] if len(self._dealt) > 1 else float(self._factors[0])

    @property
    def by_group(self) -> Groups | None:
        if self.sizes.size == 1:
            return None
        own = zip(self.sizes.tolist(), self.copied.tolist(), strict=True)
        A = np.array([input_variance(m, q) for m, q in own])
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
