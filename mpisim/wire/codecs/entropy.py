"""Levels and exponents in an entropy coder whose frequencies adapt, the code "entropy".

Levels of -1, 0 and 1 have a format of their own (`mpisim.wire.codecs.places`). Others are sorted
into classes. |level| has class |level| below 16. For 2^e <= |level| < 2^(e+1), e >= 4, it has class
12 + e, and its e lower digits are kept as they are. The classes, with a sign for each that is not
0, and these digits are coded as `mpisim.wire.codecs.symbols` says, and the norms follow. The
scale that is expected of levels is that of normal entries: the largest expected sum of the levels,
of each coordinate.

The functions `encode` and `decode` are those that `mpisim.wire.codecs` describes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from mpisim.wire.codecs import places, priors, symbols
from mpisim.wire.codecs.bits import bit_length, check, check_levels
from mpisim.wire.codecs.priors import PLAIN

ROOT_2 = 2**0.5


def encode(norms, bits, levels, limits, s, starts, payload):
    alike = _alike(limits, s, starts, len(levels))
    parts = [_encode(norms[i], bits, levels[i], *most, payload[i]) for i, most in alike]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])


def _encode(norms, bits, levels, top, most, payload):
    """`encode` for workers with the same limits, at most ``top``, and expected sum of levels."""
    if top <= 1:
        return places.write_levels(norms, bits, levels, most, payload)
    codes, sizes = _space(levels, top)
    _classify(levels, codes, sizes)
    scaled = _scaled(top, most, levels.shape[1])
    data, payload[:] = symbols.write(codes, sizes, norms, bits - 1, *scaled)
    return data


def decode(data, sizes, bits, limits, s, starts, norms, levels, payload):
    end = 0
    for i, most in _alike(limits, s, starts, len(levels)):
        start, end = end, end + int(sizes[i].sum())
        to = norms[i], levels[i], payload[i]
        worker, status = _decode(data[start:end], sizes[i], bits, *most, *to)
        if status == 0:
            limit = limits[min(i.start, len(limits) - 1)]
            worker, status = _check(norms[i], bits, limit, starts, levels[i])
        if status < 0:
            return i.start + worker, status
    return 0, 0


def _decode(data, sizes, bits, top, most, norms, levels, payload):
    if top <= 1:
        return places.read_levels(data, sizes, bits, most, norms, levels, payload)
    codes, sizes_of = _space(levels, top)
    scaled = _scaled(top, most, levels.shape[1])
    worker, status = symbols.read(data, sizes, codes, sizes_of, norms, bits - 1, payload, *scaled)
    if status == 0:
        _set_levels(codes, sizes_of, levels)
    return worker, status


def _alike(limits, s, starts, m: int) -> list[tuple[slice, tuple[int, float]]]:
    """Workers with the same limits: which, the largest limit, and the expected sum of levels.

    A message's format follows from its own worker's, whoever shares the rank.
    """
    most = zip(limits.max(axis=1, initial=0).tolist(), _sums(s, starts).tolist(), strict=True)
    step = m if len(limits) == 1 else 1
    return [(slice(i * step, (i + 1) * step), each) for i, each in enumerate(most)]


@njit(cache=True)
def _sums(s, starts):
    """The sum over blocks of |s_i|_2, of each row, added up in the order of the coordinates.

    With Euclidean norms, E sum_j |level_ij| = sum_j s_ij |v_ij| / |v_i| is at most that.
    """
    sums = np.zeros(s.shape[0])
    for i in range(s.shape[0]):
        for b in range(starts.size - 1):
            squares = s[i, 0] ** 2 * (starts[b + 1] - starts[b]) if s.shape[1] == 1 else 0.0
            for j in range(starts[b], starts[b + 1] if s.shape[1] > 1 else starts[b]):
                squares += s[i, j] ** 2
            sums[i] += np.sqrt(squares)
    return sums


def no_numbers(m: int) -> np.ndarray:
    """Nothing after the exponents of m messages."""
    return np.empty((m, 0), np.uint64)


def write_symbols(codes: np.ndarray, raw: np.ndarray, raw_bits: int, shares=()):
    """(bytes of all messages, bits of each): ``codes`` (m, d), and after them ``raw``, unsigned.

    shares : how often the symbols 1, 2, ... are expected; empty for exponents
    """
    nothing = np.empty((len(codes), 0), np.int64)
    return symbols.write(codes, nothing, raw, raw_bits, *_expecting(shares))


def read_symbols(data: np.ndarray, lengths: np.ndarray, d: int, raw, raw_bits: int, shares=()):
    """(codes, payload) of `write_symbols`; fills ``raw``. `WireError` if bytes are not valid."""
    codes, nothing = np.empty((len(raw), d), np.uint16), np.empty((len(raw), 0), np.int64)
    lengths, payload = np.asarray(lengths, np.int64), np.empty(len(raw), np.int64)
    table = _expecting(shares)
    check(*symbols.read(data, lengths, codes, nothing, raw, raw_bits, payload, *table))
    return codes, payload


def _expecting(shares: tuple[float, ...]):
    if shares:
        return *priors.of_shares(shares), 1 + len(shares), priors.MIDDLE
    return *priors.of_exponents(), symbols.SYMBOLS, -1


@lru_cache(maxsize=64)
def _scaled(top: int, most: float, d: int) -> tuple:
    """Table, number of classes, and the row of the scale sigma in half octaves, of levels."""
    power = int(np.frexp(ROOT_2 * (most / max(1, d)) ** 2)[1]) - 1
    row = min(max(power - priors.FINEST, 0), priors.SCALES - 1)
    return *priors.of_levels(2 if top <= 3 else 4), 1 + int(priors.class_of(np.array(top))), row


def _space(levels: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of ``levels``, and their sizes where a class may lack digits."""
    m, d = levels.shape
    return np.empty((m, d), np.uint16), np.empty((m, 0 if top < PLAIN else d), np.int64)


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
def _set_levels(codes, sizes, levels):
    for i in range(levels.shape[0]):
        for j in range(levels.shape[1]):
            size = np.int64(sizes[i, j]) if sizes.shape[1] > 0 else np.int64(codes[i, j] & 255)
            levels[i, j] = -size if codes[i, j] > symbols.NAN else size


@njit(cache=True)
def _check(norms, bits, limits, starts, levels):
    """(worker, status): `check_levels` of workers with the same limits."""
    for i in range(levels.shape[0]):
        status = check_levels(norms[i], bits, limits, starts, levels[i])
        if status < 0:
            return i, status
    return 0, 0
