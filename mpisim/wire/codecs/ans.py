"""Entropy coding with asymmetric numeral systems (rANS; J. Duda, 2013), for compiled kernels.

A state is a number x below 2^64. Coding a symbol with frequency f of 2^r, whose interval begins at
c, makes it (x // f) 2^r + c + x mod f, after 32 bits of x were written where it would exceed 64
bits. Reading undoes this, last symbol first, and a state from 2^32 on has one predecessor only. So
bytes are what a sender writes if they end in the state that the sender began with. Senders begin
with a one and bits that they would send anyway, so nothing is lost at the ends. Only integers are
used: the same bits on any processor.

A number is written as a one, the n bits behind the state's leading one, and then the words, the
last first. The one has up to 7 zeros in front of it, which fill the first byte (framing).
n and the number of words follow from the length.

Exponents (`write_exponents`) are coded with frequencies that adapt: those of the coordinates before
in the message, counted anew whenever their number has grown by a quarter, on top of a prior around
the message's median, which is sent in 8 bits. One more bit says whether there are zeros.

Places (`write_places`) are coded as d coins, the first with k / d and each next with the share of
places that are left: log2 C(d, k) bits together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import bits as buffer

FULL = np.uint64(1 << 32)  # states below it are read into, as long as there are words
ZERO, NAN = 0, 256  # exponents that have no sign
SYMBOLS = 257
MODEL_BITS = 15  # of the frequency of an exponent; a sign takes one more
PLACE_BITS = 20
WEIGHT = 1500  # of the median in the prior
HEAD_BITS = 9  # of `_head`
UNIT = 64  # weight of one coordinate in the counts
SIGNS = 32  # at most so many signs are in the state that a sender begins with


def _prior() -> np.ndarray:
    """Weights of exponents by their distance from the median, -256 to 256.

    Below it values are spread evenly, which halves the weight with every step down; above it they
    become rare as in the tail of a Laplace distribution, at least 1 / 4 a step.
    """
    down = WEIGHT * 0.5 ** np.arange(1, 257)[::-1]
    up = WEIGHT * np.concatenate([[1.0, 0.7, 0.25, 0.06], 0.015 * 0.25 ** np.arange(253)])
    return np.floor(np.concatenate([down, up])).astype(np.int64)


PRIOR = _prior()


@njit(cache=True, forceinline=True)
def _push(x, first, frequency, precision, words, count):
    """The state with one more symbol, and the number of ``words`` written."""
    if x >= frequency << np.uint64(64 - precision):
        words[count] = x & np.uint64(0xFFFFFFFF)
        count += 1
        x >>= np.uint64(32)
    quotient = x // frequency
    return (quotient << np.uint64(precision)) + (x - quotient * frequency) + first, count


@njit(cache=True)
def _put_number(buffered, pos, head, head_bits, x, words, count, tail):
    """Write zeros, a one, ``head``, the state and its words; ``tail`` bits will follow.

    Returns (position, bits without the zeros).
    """
    state_bits = _log2(x)
    bits = 1 + head_bits + state_bits + 32 * count + tail
    pos = buffer.put(buffered, pos, 1, 1 + (-bits & 7))
    if head_bits > 0:
        pos = buffer.put(buffered, pos, head, head_bits)
    if state_bits > 0:
        pos = buffer.put(buffered, pos, x ^ (np.uint64(1) << np.uint64(state_bits)), state_bits)
    for t in range(count - 1, -1, -1):
        pos = buffer.put(buffered, pos, words[t], 32)
    return pos, bits


@njit(cache=True, forceinline=True)
def _log2(x):
    """floor(log2 x), x >= 1; -1 for 0."""
    high = np.int64(x >> np.uint64(32))
    if high > 0:
        return 31 + buffer.bit_length(high)
    return buffer.bit_length(np.int64(x)) - 1


@njit(cache=True)
def _after_zeros(buffered, pos, end):
    """The position behind the first one, which is in the first byte; or a status."""
    if end - pos < 8:
        return buffer.SHORT
    byte = np.int64(buffer.take(buffered, pos, 8))
    return pos + 9 - buffer.bit_length(byte) if byte else buffer.ENTROPY


@njit(cache=True)
def _take_state(buffered, pos, bits):
    """(state, position, words behind it) of a number of ``bits`` bits."""
    state_bits = bits if bits < 64 else 32 + bits % 32
    x = np.uint64(1) << np.uint64(state_bits)
    if state_bits > 0:
        x |= buffer.take(buffered, pos, state_bits)
    return x, pos + state_bits, (bits - state_bits) // 32


@njit(cache=True)
def _prior_of(head):
    """Weights of all symbols, shape (SYMBOLS,); ``head``: 2 median + (are there zeros?)."""
    prior = np.zeros(SYMBOLS, np.int64)
    for s in range(1, NAN):
        prior[s] = PRIOR[s - (head >> 1) + 256]
    prior[ZERO] = head & 1 and PRIOR.max()
    return prior


@njit(cache=True)
def _set_model(counts, prior, first, symbols):
    """Symbol s has [first[s], first[s+1]) of 2^MODEL_BITS; ``counts``, ``prior``: (SYMBOLS,).

    symbols : shape (256,), the symbol that the first number of each stretch belongs to
    """
    total = np.int64(0)
    for s in range(SYMBOLS):
        total += UNIT * counts[s] + prior[s]
    spread, top, rest = (1 << MODEL_BITS) - SYMBOLS, 0, np.int64(0)
    for s in range(SYMBOLS):
        weight = UNIT * counts[s] + prior[s]
        first[s + 1] = 1 + weight * spread // max(1, total)
        rest += first[s + 1]
        if first[s + 1] > first[top + 1]:
            top = s
    first[top + 1] += (1 << MODEL_BITS) - rest
    first[0], at = 0, 0
    for s in range(SYMBOLS):
        first[s + 1] += first[s]
        while at < 256 and at << (MODEL_BITS - 8) < first[s + 1]:
            symbols[at] = s
            at += 1


@njit(cache=True, forceinline=True)
def _symbol(code):
    exponent = np.int64(code) & 255
    return NAN if code == NAN else exponent


@njit(cache=True)
def _head(counts):
    """2 s + (are there zeros?), s the median of the exponents that have a sign; 0 without any."""
    half, s = np.int64(0), 0
    for count in counts[1:NAN]:
        half += count
    half = (half + 1) // 2
    while half > 0:
        s += 1
        half -= counts[s]
    return 2 * s + int(counts[ZERO] > 0)


@njit(cache=True)
def write_exponents(codes):
    """(bytes of all messages, bits of each) of ``codes`` (m, d), `mpisim.wire.exponents`."""
    m, d = codes.shape
    payload = np.empty(m, np.int64)
    buffered = buffer.new_words(m * (160 + (MODEL_BITS + 2) * d))
    words, firsts = np.empty(d // 2 + 4, np.uint64), np.empty((2, d), np.uint64)
    first, symbols = np.empty(SYMBOLS + 1, np.int64), np.empty(256, np.int64)
    pos = 0
    for i in range(m):
        counts, row = np.zeros(SYMBOLS, np.int64), codes[i]
        for j in range(d):
            counts[_symbol(row[j])] += 1
        head, due, signs, x = _head(counts), 0, 0, np.uint64(1)
        prior = _prior_of(head)
        counts[:] = 0
        for j in range(d):
            if j == due:
                _set_model(counts, prior, first, symbols)
                due = j + max(16, j >> 2)
            s = _symbol(row[j])
            counts[s] += 1
            start, width = first[s], first[s + 1] - first[s]
            shift = 1
            if 0 < s < NAN:
                negative = int(row[j] >= NAN)
                if signs < SIGNS:
                    signs += 1
                    x = x << np.uint64(1) | np.uint64(negative)
                else:
                    shift = 0
                    start = 2 * start + negative * width
            firsts[0, j], firsts[1, j] = start << shift, width << shift
        count = 0
        for j in range(d - 1, -1, -1):
            x, count = _push(x, firsts[0, j], firsts[1, j], MODEL_BITS + 1, words, count)
        pos, payload[i] = _put_number(buffered, pos, head, HEAD_BITS, x, words, count, 0)
    return buffer.to_bytes(buffered, pos // 8), payload


@njit(cache=True)
def read_exponents(data, sizes, codes, payload):
    """Fill ``codes`` and ``payload``; returns (worker, status)."""
    buffered, end = buffer.to_words(data), 0
    for i in range(codes.shape[0]):
        start, end = end, end + 8 * sizes[i]
        pos = _after_zeros(buffered, start, end)
        if pos < 0:
            return i, pos
        if pos + HEAD_BITS > end:
            return i, buffer.SHORT
        payload[i] = end - pos + 1
        status = _read_row(buffered, pos, end, codes[i])
        if status < 0:
            return i, status
    return 0, 0


@njit(cache=True)
def _read_row(buffered, pos, end, row):
    first, symbols = np.empty(SYMBOLS + 1, np.int64), np.empty(256, np.int64)
    counts, raw = np.zeros(SYMBOLS, np.int64), np.empty(SIGNS, np.int64)
    head = np.int64(buffer.take(buffered, pos, HEAD_BITS))
    x, pos, left = _take_state(buffered, pos + HEAD_BITS, end - pos - HEAD_BITS)
    prior = _prior_of(head)
    low, signs, due = np.uint64((1 << (MODEL_BITS + 1)) - 1), 0, 0
    for j in range(row.size):
        if j == due:
            _set_model(counts, prior, first, symbols)
            due = j + max(16, j >> 2)
        slot = np.int64(x & low)
        s = symbols[slot >> (MODEL_BITS - 7)]
        while first[s + 1] <= slot >> 1:
            s += 1
        counts[s] += 1
        begin, width, code = first[s] << 1, first[s + 1] - first[s], s
        if not 0 < s < NAN or signs < SIGNS:
            if 0 < s < NAN:
                raw[signs] = j
                signs += 1
            width <<= 1
        elif slot >= begin + width:
            begin += width
            code |= NAN
        row[j] = code
        x = np.uint64(width) * (x >> np.uint64(MODEL_BITS + 1)) + np.uint64(slot - begin)
        if x < FULL and left > 0:
            x = x << np.uint64(32) | buffer.take(buffered, pos, 32)
            pos += 32
            left -= 1
    if left > 0 or _log2(x) != signs or head != _head(counts):
        return buffer.ENTROPY
    for t in range(signs):
        if x >> np.uint64(signs - 1 - t) & np.uint64(1):
            row[raw[t]] |= NAN
    return 0


@njit(cache=True, forceinline=True)
def _share(k, d):
    """k / d, 0 < k < d, as a frequency of 2^PLACE_BITS."""
    top = (1 << PLACE_BITS) - 1
    return np.uint64(min(top, max(1, (k << PLACE_BITS) // d)))


@njit(cache=True)
def write_places(indices, raw, bits, d):
    """(bytes of all messages, bytes, bits of each): places (m, k) ascending, values (m, k)."""
    m, k = indices.shape
    payload, sizes = np.empty(m, np.int64), np.empty(m, np.int64)
    words = np.empty(d // 16 + k + 4, np.uint64)
    buffered = buffer.new_words(m * (160 + 2 * d + k * (PLACE_BITS + 32 + bits)))
    all_places = np.uint64(1 << PLACE_BITS)
    pos = 0
    for i in range(m):
        start, count, t = pos, 0, 0
        x = FULL | raw[i, 0] & np.uint64(0xFFFFFFFF)
        for j in range(d - 1, -1, -1):
            here = t < k and indices[i, k - 1 - t] == j
            left = t + int(here)
            if 0 < left < d - j:
                f = _share(left, d - j)
                if here:
                    x, count = _push(x, np.uint64(0), f, PLACE_BITS, words, count)
                else:
                    x, count = _push(x, f, all_places - f, PLACE_BITS, words, count)
            t = left
        tail = k * bits - 32
        pos, payload[i] = _put_number(buffered, pos, 0, 0, x, words, count, tail)
        if bits > 32:
            pos = buffer.put(buffered, pos, np.uint64(raw[i, 0]) >> np.uint64(32), 32)
        pos = buffer.put_all(buffered, pos, raw[i, 1:], bits)
        sizes[i] = (pos - start) // 8
    return buffer.to_bytes(buffered, pos // 8), sizes, payload


@njit(cache=True)
def read_places(data, sizes, indices, raw, payload, bits, d):
    """Fill ``indices``, ``raw`` and ``payload``; returns (worker, status)."""
    buffered, end = buffer.to_words(data), 0
    k, low = indices.shape[1], np.uint64((1 << PLACE_BITS) - 1)
    for i in range(indices.shape[0]):
        start, end = end, end + 8 * sizes[i]
        pos, stop = _after_zeros(buffered, start, end), end - (k * bits - 32)
        if pos < 0:
            return i, pos
        if stop - pos < 32:
            return i, buffer.SHORT
        payload[i] = end - pos + 1
        x, pos, left = _take_state(buffered, pos, stop - pos)
        t = 0
        for j in range(d):
            if t == k:
                break
            here = k - t == d - j
            if not here:
                f, slot = _share(k - t, d - j), x & low
                here, x = slot < f, x >> np.uint64(PLACE_BITS)
                x = f * x + slot if here else (low + np.uint64(1) - f) * x + slot - f
                if x < FULL and left > 0:
                    x = x << np.uint64(32) | buffer.take(buffered, pos, 32)
                    pos += 32
                    left -= 1
            if here:
                indices[i, t] = j
                t += 1
        if left > 0 or x >> np.uint64(32) != np.uint64(1):
            return i, buffer.ENTROPY
        raw[i, 0] = x & np.uint64(0xFFFFFFFF)
        if bits > 32:
            raw[i, 0] |= buffer.take(buffered, stop, 32) << np.uint64(32)
            stop += 32
        buffer.take_all(buffered, stop, raw[i, 1:], bits)
    return 0, 0
