"""Addressed random numbers: a draw is a function of (seed, purpose, round, message, worker).

Philox-4x64 is a keyed function of a counter of four words. The key is (seed, purpose). Each worker
owns a fixed range of the first word; the second is 0, but counts on for a worker that draws again
in one message; the third is the round; the fourth numbers the messages of a purpose in the round.
One call draws for a block of consecutive workers; splitting the workers into other blocks changes
nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numba import njit

from mpisim.core.errors import InputError
from mpisim.core.numerics import philox
from mpisim.core.numerics.functions import normal_quantiles
from mpisim.core.numerics.select import FEW, sort

BLOCK = 1 << 16  # workers whose normal numbers are made together


@cache
def purpose_key(purpose: str) -> np.uint64:
    """The second word of the key."""
    digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def normals(words: np.ndarray) -> np.ndarray:
    """Standard normal numbers, float64, of words of any shape, uint64."""
    return normal_quantiles(((words >> np.uint64(11)) + 0.5) * 2.0**-53)


class Streams:
    """All random numbers of one run, from ``run.seed``, 0 <= seed < 2**63."""

    def __init__(self, seed: int):
        self.seed = seed

    def raw(
        self,
        purpose: str,
        round: int,
        first: int,
        workers: int,
        count: int,
        message: int = 0,
        repetition: int = 0,
    ) -> np.ndarray:
        """Random words, shape (workers, count), uint64, for workers first, first+1, ...

        ``count`` is part of the address: each purpose always draws the same number for a worker.
        """
        key = purpose_key(purpose)
        return philox.words(self.seed, key, round, message, repetition, first, workers, count)

    def generator(self, purpose: str, round: int = 0) -> np.random.Generator:
        """A Generator at an address, for rare draws that are the same on all ranks."""
        key = np.array([self.seed, purpose_key(purpose)], np.uint64)
        counter = np.array([0, 0, round, 0], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))


@dataclasses.dataclass(eq=False)  # not frozen: several are made every round, and freezing is slow
class Draw:
    """The random numbers of one compression, for ``count`` workers from worker ``first`` on.

    With ``clients`` (ascending) only those in the block draw; a worker's draw does not depend on
    the others. A worker that is there t times draws t times, independently. Workers are numbered
    over all ranks. ``message`` numbers the draws of the purpose in the round. A draw is a function:
    asked again, it gives the same words, as the server needs them.

    runs : the random numbers of each run of an ensemble, see `EnsembleDraw`; else empty
    """

    runs = tuple[Streams, ...]()  # no field, but of an ensemble

    streams: Streams
    purpose: str
    round: int
    first: int
    count: int
    clients: np.ndarray | None = None
    message: int = 0

    @property
    def members(self) -> np.ndarray:
        """The drawing workers, ascending, counted from the block's first."""
        if self.clients is None:
            return np.arange(self.count)
        inside = (self.clients >= self.first) & (self.clients < self.first + self.count)
        return self.clients[inside] - self.first

    @property
    def repetitions(self) -> np.ndarray:
        """How often each of `members` is there before, shape (workers,), int64."""
        members = self.members
        return np.arange(members.size) - np.searchsorted(members, members)

    @property
    def workers(self) -> int:
        """How many workers draw; one that draws t times counts t times."""
        return self.count if self.clients is None else len(self.members)

    def block(self, first: int, count: int) -> Draw:
        """The same draw for another block of workers, as the server needs it."""
        return Draw(
            self.streams, self.purpose, self.round, first, count, self.clients, self.message
        )

    def of_runs(self) -> list[Draw]:
        """The draw of each run of an ensemble; the same object for the same seed."""
        return []

    def words(self, count: int) -> np.ndarray:
        """Shape (workers, count), uint64."""
        address = self.streams.seed, purpose_key(self.purpose), self.round, self.message
        if self.clients is None:
            return philox.words(*address, 0, self.first, self.count, count)
        return philox.words_of(*address, self.first + self.members, count)

    def row_on(self, device: Any, row: int, count: int) -> Any:
        """A row of `words` as a tensor on a device, (count,), int64 with the same bits."""
        from mpisim.core.numerics import tensors

        members = self.members
        before = int(np.searchsorted(members, members[row]))
        key = int(self.streams.seed), int(purpose_key(self.purpose))
        counter = row - before, self.round, self.message
        return tensors.words(key, counter, self.first + int(members[row]), count, device)

    def uniforms(self, count: int) -> np.ndarray:
        """Shape (workers, count), float64 in [0, 1), independent across workers."""
        return (self.words(count) >> np.uint64(11)) * 2.0**-53

    def subsets(self, d: int, k: int) -> np.ndarray:
        """Shape (workers, k), int64: k of d coordinates without replacement, ascending.

        `InputError` if k > d.
        """
        if k > d:
            raise self._too_many(k, d)
        return _subsets(self.words(k), np.array([d]), _pool(d), True)

    def batches(self, rows: np.ndarray, b: int) -> np.ndarray:
        """Shape (workers, b), int64: b of each worker's ``rows`` samples without replacement.

        In the order drawn; `InputError` if a worker has fewer than b.
        """
        if b > rows.min(initial=b):
            raise self._too_many(b, rows.min())
        return _subsets(self.words(b), rows, _pool(rows.max(initial=0)), False)

    def _too_many(self, k: int, size: int) -> InputError:
        return InputError(
            f"draw {self.purpose!r}: {k} of {size} without replacement; allowed: at most {size}"
        )

    def samples(self, rows: np.ndarray, b: int) -> np.ndarray:
        """Shape (workers, b), int64: b of each worker's ``rows`` samples with replacement."""
        return (self.uniforms(b) * rows[:, None]).astype(np.int64)

    def shared_words(self, count: int, repetition: int = 0) -> np.ndarray:
        """Shape (count,), uint64: the same for all workers (correlated compressors).

        ``repetition``: of the workers that draw so often before, see `repetitions`.
        """
        return self.group_words(1, count, repetition)[0]

    def group_words(self, groups: int, count: int, repetition: int = 0) -> np.ndarray:
        """Shape (groups, count), uint64: for each group of workers, the same for all of them."""
        purpose = self.purpose + "/shared"
        return self.streams.raw(purpose, self.round, 0, groups, count, self.message, repetition)


@dataclasses.dataclass(eq=False)
class EnsembleDraw(Draw):
    """A draw of all workers of several runs, ``runs``: the rows of one follow those of another."""

    runs: tuple[Streams, ...] = ()

    @property
    def workers(self) -> int:
        return self.count * len(self.runs)

    def words(self, count: int) -> np.ndarray:
        return self._rows(lambda draw: draw.words(count))

    def subsets(self, d: int, k: int) -> np.ndarray:
        return self._rows(lambda draw: draw.subsets(d, k))

    def of_runs(self) -> list[Draw]:
        where = self.purpose, self.round, self.first, self.count, None, self.message
        draws = {streams: Draw(streams, *where) for streams in dict.fromkeys(self.runs)}
        return [draws[streams] for streams in self.runs]

    def _rows(self, rows_of: Callable[[Draw], np.ndarray]) -> np.ndarray:
        draws = self.of_runs()
        rows = {draw: rows_of(draw) for draw in dict.fromkeys(draws)}
        if len(rows) == 1:  # the same for all: np.repeat is faster
            return np.repeat(rows[draws[0]][None], len(draws), axis=0).reshape(self.workers, -1)
        return np.concatenate([rows[draw] for draw in draws])


@njit(cache=True)
def below(word, bound):
    """Scale a 64-bit word to {0, ..., bound-1}; bound < 2**32, bias below 2**-32 per value."""
    high = (word >> np.uint64(32)) * np.uint64(bound)
    low = (word & np.uint64(0xFFFFFFFF)) * np.uint64(bound)
    return np.int64((high + (low >> np.uint64(32))) >> np.uint64(32))


@lru_cache(maxsize=8)
def _pool(size: int) -> np.ndarray:
    """0, ..., size - 1, for `_subsets`, which undoes its swaps."""
    return np.arange(size)


@njit(cache=True)
def _subsets(words: np.ndarray, sizes: np.ndarray, pool: np.ndarray, ascending: bool) -> np.ndarray:
    """Fisher-Yates, stopped after k swaps and undone for the next worker: O(k log k) for each.

    ``pool`` is 0, 1, ..., at least up to the largest of ``sizes`` (m,) or (1,), before and after
    the call. No swap t looks at a place before t again, so it moves one number only.
    """
    m, k = words.shape
    out = np.empty((m, k), np.int64)
    if k == 1:  # nothing is swapped
        for i in range(m):
            out[i, 0] = below(words[i, 0], sizes[i if sizes.size > 1 else 0])
        return out
    chosen = np.empty(k, np.int64)
    for i in range(m):
        size = sizes[min(i, sizes.size - 1)]
        for t in range(np.uint64(k)):  # unsigned: no test for a negative index
            j = np.uint64(t + below(words[i, t], size - t))
            chosen[t] = j
            out[i, t] = pool[j]
            pool[j] = pool[t]
        for t in range(np.uint64(k)):
            pool[np.uint64(chosen[t])] = chosen[t]
        if ascending and k > FEW:
            out[i].sort()
        elif ascending:
            sort(out[i])  # faster for a few
    return out


def standard_normals(seed: int, purpose: str, workers: int, count: int) -> np.ndarray:
    """Shape (workers, count), float64: functions of (seed, purpose, worker)."""
    out, streams = np.empty((workers, count)), Streams(seed)
    for first in range(0, workers, BLOCK):  # the steps between need several such arrays
        some = out[first : first + BLOCK]
        some[:] = normals(streams.raw(purpose, 0, first, len(some), count))
    return out
