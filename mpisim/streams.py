"""Randomness is addressed, not consumed (rule 4).

A draw is a function of (seed, purpose, round, worker). NumPy's Philox-4x64 is a keyed function of
a 256-bit counter: the key is (seed, purpose), the counter's third word is the round, and each
worker owns a fixed stretch of the counter's lower words, so one call draws for a block of
consecutive workers and gives the numbers that any other split of the workers into blocks gives.
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit


@lru_cache(maxsize=256)
def _purpose_key(purpose: str) -> int:
    return int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")


class Streams:
    """All random numbers of one run.

    Parameters
    ----------
    seed : int
        ``run.seed``, 0 <= seed < 2**63.
    """

    def __init__(self, seed: int):
        self.seed = seed
        self._states: dict[str, Any] = {}
        self._philox = np.random.Philox(key=0)

    def raw(self, purpose: str, round: int, first: int, workers: int, count: int) -> np.ndarray:
        """Random words, shape (workers, count), uint64, for workers first, first+1, ...

        ``count`` is part of the address: a purpose always draws the same number for every worker.
        """
        blocks = -(-count // 4)  # one counter step gives four words
        self._seek(purpose, round, first * blocks)
        words = self._philox.random_raw(workers * blocks * 4)
        return words.reshape(workers, blocks * 4)[:, :count]

    def _seek(self, purpose: str, round: int, step: int) -> None:
        state = self._states.get(purpose)
        if state is None:
            key = np.array([self.seed, _purpose_key(purpose)], np.uint64)
            state = np.random.Philox(key=key).state
            self._states[purpose] = state
        counter = state["state"]["counter"]
        counter[0] = step
        counter[2] = round
        self._philox.state = state

    def generator(self, purpose: str, round: int = 0) -> np.random.Generator:
        """A Generator at an address, for draws that all ranks make alike and not every round."""
        self._seek(purpose, round, 0)
        bits = np.random.Philox(key=0)
        bits.state = self._philox.state
        return np.random.Generator(bits)


@dataclasses.dataclass(frozen=True)
class Draw:
    """The random numbers of one compression: an address and a block of ``count`` workers.

    With ``clients`` (ascending numbers of workers, over all ranks) only those of the block draw;
    what they draw does not depend on who else does.
    """

    streams: Streams
    purpose: str
    round: int
    first: int
    count: int
    clients: np.ndarray | None = None

    @property
    def members(self) -> np.ndarray:
        """The drawing workers of the block, counted from its first, ascending."""
        if self.clients is None:
            return np.arange(self.count)
        inside = (self.clients >= self.first) & (self.clients < self.first + self.count)
        return self.clients[inside] - self.first

    @property
    def workers(self) -> int:
        """How many workers draw."""
        return self.count if self.clients is None else len(self.members)

    def block(self, first: int, count: int) -> Draw:
        """The same draw for another block of workers (the server redraws everybody's)."""
        return Draw(self.streams, self.purpose, self.round, first, count, self.clients)

    def words(self, count: int) -> np.ndarray:
        """Shape (workers, count), uint64."""
        words = self.streams.raw(self.purpose, self.round, self.first, self.count, count)
        return words if self.clients is None else words[self.members]

    def uniforms(self, count: int) -> np.ndarray:
        """Shape (workers, count), float64 in [0, 1), independent across workers."""
        return (self.words(count) >> np.uint64(11)) * 2.0**-53

    def subsets(self, d: int, k: int) -> np.ndarray:
        """Shape (workers, k), int64: k of d coordinates without replacement, ascending."""
        return _subsets(self.words(k), np.full(self.workers, d))

    def batches(self, rows: np.ndarray, b: int) -> np.ndarray:
        """Shape (workers, b), int64: b of each worker's ``rows`` samples without replacement."""
        return _subsets(self.words(b), rows)

    def samples(self, rows: np.ndarray, b: int) -> np.ndarray:
        """Shape (workers, b), int64: b of each worker's ``rows`` samples with replacement."""
        return (self.uniforms(b) * rows[:, None]).astype(np.int64)

    def shared_words(self, count: int) -> np.ndarray:
        """Shape (count,), uint64: the same for all workers (correlated compressors)."""
        return self.group_words(1, count)[0]

    def group_words(self, groups: int, count: int) -> np.ndarray:
        """Shape (groups, count), uint64: for each group of workers, the same for all of them."""
        return self.streams.raw(self.purpose + "/shared", self.round, 0, groups, count)


@njit(cache=True)
def below(word, bound):
    """A 64-bit word scaled to {0, ..., bound-1}; bound < 2**32, bias below 2**-32 per value."""
    high = (word >> np.uint64(32)) * np.uint64(bound)
    low = (word & np.uint64(0xFFFFFFFF)) * np.uint64(bound)
    return np.int64((high + (low >> np.uint64(32))) >> np.uint64(32))


@njit(cache=True)
def _sort(row):
    """In place; by insertion where that is faster."""
    if row.size > 16:
        row.sort()
        return
    for t in range(1, row.size):
        value, place = row[t], t
        while place > 0 and row[place - 1] > value:
            row[place] = row[place - 1]
            place -= 1
        row[place] = value


@njit(cache=True)
def _subsets(words: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Fisher-Yates, stopped after k swaps and undone for the next worker: O(k log k) each."""
    m, k = words.shape
    out = np.empty((m, k), np.int64)
    pool = np.arange(sizes.max() if m > 0 else 0)
    chosen = np.empty(k, np.int64)
    for i in range(m):
        for t in range(k):
            j = t + below(words[i, t], sizes[i] - t)
            chosen[t] = j
            pool[t], pool[j] = pool[j], pool[t]
        out[i] = pool[:k]
        _sort(out[i])
        for t in range(k - 1, -1, -1):
            j = chosen[t]
            pool[t], pool[j] = pool[j], pool[t]
    return out
