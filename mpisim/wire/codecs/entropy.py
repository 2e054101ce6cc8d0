"""Levels and exponents in an entropy coder whose frequencies adapt, the code "entropy".

Levels are sorted into classes. |level| has class |level| below 16. For 2^e <= |level| < 2^(e+1),
e >= 4, it has class 12 + e, and its e lower digits are kept as they are. The classes, with a sign
for each that is not 0, and these digits are coded as `mpisim.wire.codecs.symbols` says, and the
norms stand behind. The scale that is expected of levels is that of normal entries: the largest
level allowed, of the mean coordinate, divided by the root of the length of a block.

The functions `encode` and `decode` are those that `mpisim.wire.codecs` describes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from mpisim.wire.codecs import priors, symbols
from mpisim.wire.codecs.bits import bit_length, check_levels
from mpisim.wire.codecs.priors import PLAIN

ROOT_2 = 2**0.5


def encode(norms, bits, levels, limits, payload):
    codes, sizes = _space(levels, limits)
    _classify(levels, codes, sizes)
    scaled = _scaled(limits, norms.shape, levels.shape[1])
    data, payload[:] = symbols.write(codes, sizes, norms, bits, *scaled)
    return data


def decode(data, sizes, bits, limits, starts, norms, levels, payload):
    codes, sizes_of = _space(levels, limits)
    scaled = _scaled(limits, norms.shape, levels.shape[1])
    worker, status = symbols.read(data, sizes, codes, sizes_of, norms, bits, payload, *scaled)
    if status < 0:
        return worker, status
    return _levels(codes, sizes_of, norms, bits, limits, starts, levels)


def no_numbers(m: int) -> np.ndarray:
    """Nothing behind the exponents of m messages."""
    return np.empty((m, 0), np.uint64)


def write_symbols(codes: np.ndarray, raw: np.ndarray, raw_bits: int, shares=()):
    """(bytes of all messages, bits of each): ``codes`` (m, d), and behind them ``raw``, unsigned.

    shares : how often the symbols 1, 2, ... are expected; empty for exponents
    """
    m = len(codes)
    nothing = np.empty((m, 0), np.int64)
    return symbols.write(codes, nothing, raw, raw_bits, *_expecting(m, shares))


def read_symbols(data, lengths, codes, raw, raw_bits, payload, shares=()):
    """Fill ``codes``, ``raw`` and ``payload``; (worker, status)."""
    m, lengths = len(codes), np.asarray(lengths, np.int64)
    nothing = np.empty((m, 0), np.int64)
    table = _expecting(m, shares)
    return symbols.read(data, lengths, codes, nothing, raw, raw_bits, payload, *table)


def _expecting(m: int, shares: tuple[float, ...]):
    if shares:
        return *priors.of_shares(shares), 1 + len(shares), np.full(m, priors.MIDDLE)
    return *priors.of_exponents(), symbols.SYMBOLS, np.full(m, -1)


def _scaled(limits: np.ndarray, shape: tuple[int, int], d: int) -> tuple:
    """Table, classes and expected scales of levels with norms of a ``shape``."""
    return (
        _uniform(int(limits[0, 0]), *shape, d) if limits.size == 1 else _fitted(limits, *shape, d)
    )


@lru_cache(maxsize=64)
def _uniform(limit: int, m: int, blocks: int, d: int) -> tuple:
    """`_scaled` of one limit for all: the same in every round."""
    return _fitted(np.array([[limit]]), m, blocks, d)


def _fitted(limits: np.ndarray, m: int, blocks: int, d: int) -> tuple:
    top = limits.max(initial=0)
    table = priors.of_levels(1 if top <= 1 else 2 if top == 2 else 4)
    kinds = 1 + int(priors.class_of(np.array([top]))[0])
    return *table, kinds, _expected(limits, m, blocks, d)


def _space(levels: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of ``levels``, and their sizes where a class may lack digits."""
    m, d = levels.shape
    plain = limits.max(initial=0) < PLAIN
    return np.empty((m, d), np.uint16), np.empty((m, 0 if plain else d), np.int64)


def _expected(limits: np.ndarray, m: int, blocks: int, d: int) -> np.ndarray:
    """The row of scale sigma in half octaves: shape (m,), int64."""
    mean = limits.sum(axis=1) / limits.shape[1]
    power = np.frexp(ROOT_2 * mean**2 * blocks / max(1, d))[1] - 1
    rows = np.clip(power - priors.FINEST, 0, priors.SCALES - 1)
    return np.broadcast_to(rows, m).astype(np.int64)


@njit(cache=True)
def _classify(levels, codes, sizes):
    large = sizes.shape[1] > 0
    for i in range(levels.shape[0]):
        for j in range(levels.shape[1]):
            level = np.int64(levels[i, j])
            size = abs(level)
            negative = symbols.NAN if level < 0 else 0
            if large:
                sizes[i, j] = size
                size = size if size < PLAIN else np.int64(PLAIN - 5 + bit_length(size))
            codes[i, j] = size + negative


@njit(cache=True)
def _levels(codes, sizes, norms, bits, limits, starts, levels):
    """Fill ``levels``; (worker, status)."""
    for i in range(levels.shape[0]):
        row = levels[i]
        for j in range(row.size):
            size = np.int64(sizes[i, j]) if sizes.shape[1] > 0 else np.int64(codes[i, j] & 255)
            row[j] = -size if codes[i, j] > symbols.NAN else size
        status = check_levels(norms[i], bits, limits[min(i, len(limits) - 1)], starts, row)
        if status < 0:
            return i, status
    return 0, 0
