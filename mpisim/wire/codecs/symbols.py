"""Exponents and levels in an entropy coder with frequencies of a model that is fitted to them.

A message is a number of `mpisim.wire.codecs.ans`, followed by what is raw. Its head says which
model: `mpisim.wire.codecs.fit`. Its state begins with the last 32 bits of the first raw number and
the first signs, 32 bits together. Where the model does not stay, the coordinates before are counted
anew whenever their number has grown by a share: a quarter where the model is near, a 32nd where the
halves of the message differ. LONGEST coordinates have the same model at most, as layers differ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.philox import product
from mpisim.wire.codecs import ans
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs.fit import NAN, SHORT, STAYS, STRENGTHS, SYMBOLS, head_of, read_head
from mpisim.wire.codecs.priors import PLAIN, WEIGHT_BITS

PRECISION = 21  # bits of a frequency
LEAST = 4  # a frequency; all are even, so that the lower bit is a sign
LOOKUPS = (7, 9)  # bits, of messages below MANY coordinates and of others
MANY = 4096
BEGIN = 32  # at most so many bits are in the state that a sender begins with
LONGEST = 2048  # coordinates with the same frequencies, at most
STRETCHES = ((16, 5), (64, 4), (128, 2), (128, 2))  # as many at least, or 2^-s of those before


@njit(cache=True, forceinline=True)
def _symbol(code):
    return NAN if code == NAN else np.int64(code) & 255


@njit(cache=True, forceinline=True)
def _digits(symbol):
    """How many lower digits of a level of this class are kept."""
    return symbol - PLAIN + 4 if PLAIN <= symbol < NAN else 0


@njit(cache=True, forceinline=True)
def _entry(s, start, width):
    """What decoding needs of a symbol: its width, or half if it has a sign, start, has a sign, s.

    They take 24, 24, 1 and 15 bits.
    """
    signed = np.uint64(0 < s < NAN)
    high = np.uint64(width) >> signed << np.uint64(24) | np.uint64(start)
    return high << np.uint64(16) | signed << np.uint64(15) | np.uint64(s)


@njit(cache=True)
def _set_model(counts, prior, strength, start, lookup):
    """Symbol s < start.size - 1 has [start[s], start[s+1]) of 2^PRECISION, an even number.

    counts : of the coordinates before; ignored if the prior stays
    lookup : shape (2^b,), what the first of each 2^(PRECISION - b) numbers belongs to: `_entry`
    """
    total, top, rest, kinds = np.int64(0), 0, np.int64(1 << PRECISION), start.size - 1
    cell = (1 << PRECISION) // max(1, lookup.size)
    seen = int(strength != STAYS) << WEIGHT_BITS
    for s in range(kinds):
        total += counts[s] * seen + (prior[s] << strength)
    scale = ((1 << PRECISION - 1) - kinds * (LEAST >> 1)) / max(np.int64(1), total)
    widest, begin, at = np.int64(0), np.int64(0), 0
    for s in range(kinds):
        weight = counts[s] * seen + (prior[s] << strength)
        width = np.int64(LEAST)
        if weight > 0:
            width += 2 * np.int64(weight * scale)
        start[s] = width
        rest -= width
        if width > widest:
            top, widest = s, width
    start[top] += np.uint64(rest)
    for s in range(kinds):
        width = np.int64(start[s])
        start[s] = begin
        if at < lookup.size and at * cell < begin + width:
            after = (begin + width - 1) // cell + 1
            lookup[at:after] = _entry(s, begin, width)
            at = after
        begin += width
    start[kinds] = begin


@njit(cache=True)
def _invert(start, counts, halves, inverses, shifts):
    """What divides x < 2^63 by half of each frequency f: x inverse >> 64 >> shift.

    inverse = ceil(2^(64 + shift) / f) = (2^(64 + shift) + e) / f, 0 <= e < f <= 2^(shift + 1). As
    x e < 2^63 f <= 2^(64 + shift), x / f grows by less than 1 / f, and the quotient is exact.
    """
    for s in range(halves.size):
        if counts[s] > 0:
            f = start[s + 1] - start[s] >> np.uint64(1)
            shift = np.uint64(buffer.bit_length(np.int64(f) - 1))
            high = np.uint64(1) << (shift + np.uint64(31))
            low = (high % f << np.uint64(32)) + f - np.uint64(1)
            halves[s], shifts[s] = f, shift - np.uint64(1)
            inverses[s] = (high // f << np.uint64(32)) + low // f


@njit(cache=True)
def _stretches(d, index):
    """Where stretches of the same frequencies end, from 0 on: also at d // 2, from SHORT on."""
    least, share = STRETCHES[index]
    ends = np.empty(256 + d // LONGEST, np.int64)
    ends[0], t = 0, 0
    while ends[t] < d:
        step = min(LONGEST, max(least, ends[t] >> share)) if STRENGTHS[index] != STAYS else d
        ends[t + 1] = min(d, ends[t] + step)
        if d >= SHORT and ends[t] < d // 2 < ends[t + 1]:
            ends[t + 1] = d // 2
        t += 1
    return ends[: t + 1]


@njit(cache=True)
def write(codes, sizes, raw, raw_bits, weights, costs, kinds, expected):
    """(bytes of all messages, bits of each).

    codes : symbols, plus 256 for negative ones, shape (m, d), uint16
    sizes : |levels|, whose digits their classes lack, shape (m, d); (m, 0) if no class lacks any
    raw : numbers of ``raw_bits`` bits that follow, shape (m, numbers)
    weights, costs : `mpisim.wire.codecs.priors`
    kinds : all symbols are below
    expected : the expected scale of levels, -1 for exponents
    """
    m, d = codes.shape
    payload, digits = np.empty(m, np.int64), np.int64(0)
    for size in sizes.flat:
        digits += buffer.bit_length(np.int64(size)) if size >= PLAIN else 0
    most = 200 + 2 * digits + raw.shape[1] * raw_bits
    buffered = buffer.new_words(m * (200 + raw.shape[1] * raw_bits + (PRECISION + 1) * d) + most)
    words = np.empty(PRECISION * d // 32 + digits // 16 + 8, np.uint64)
    (counts, half), pos = np.empty((2, SYMBOLS), np.int64), 0
    held = min(BEGIN, raw_bits) if raw.shape[1] > 0 else 0
    for i in range(m):
        row = codes[i]
        counts[:] = 0
        for code in row[: d // 2]:
            counts[_symbol(code)] += 1
        half[:] = counts
        for code in row[d // 2 :]:
            counts[_symbol(code)] += 1
        table = weights, costs, kinds, expected
        head, head_bits, prior, index = head_of(counts, half, d, *table)
        x, first = _begin(row, np.uint64(raw[i, 0]) if held > 0 else np.uint64(0), held)
        x, count = _push_row(x, first, row, sizes[i], counts, kinds, prior, index, words)
        tail = raw.shape[1] * raw_bits - held
        pos, payload[i] = ans.put_number(buffered, pos, head, head_bits, x, words, count, tail)
        if raw_bits > held > 0:
            rest = np.uint64(raw[i, 0]) >> np.uint64(held)
            pos = buffer.put(buffered, pos, rest, raw_bits - held)
        pos = buffer.put_all(buffered, pos, raw[i, 1:], raw_bits)
    return buffer.to_bytes(buffered, pos // 8), payload


@njit(cache=True)
def _begin(row, raw, held):
    """The state with ``held`` bits of ``raw`` and the first signs; the coordinate after these."""
    one, first = np.uint64(1), 0
    x = one << np.uint64(held) | (raw & np.uint64((1 << held) - 1))
    while held < BEGIN and first < row.size:
        if row[first] & 255:
            x, held = x << one | np.uint64(row[first] >> 8), held + 1
        first += 1
    return x, first


@njit(cache=True)
def _push_row(x, first, row, sizes, counts, kinds, prior, index, words):
    """The state after all symbols, the last first, and the number of ``words`` written.

    first : the first coordinate whose sign is coded
    counts : of all symbols; used up
    """
    start, no_lookup = np.empty(kinds + 1, np.uint64), np.empty(0, np.uint64)
    halves, inverses, shifts = np.empty((3, kinds), np.uint64)
    ends, used = _stretches(row.size, index), counts.copy()
    stays = STRENGTHS[index] == STAYS
    one, count = np.uint64(1), 0
    for t in range(ends.size - 2, -1, -1):
        if not stays:
            for j in range(ends[t], ends[t + 1]):
                counts[_symbol(row[j])] -= 1
        if not stays or t == ends.size - 2:
            _set_model(counts, prior, STRENGTHS[index], start, no_lookup)
            _invert(start, used, halves, inverses, shifts)
        for j in range(ends[t + 1] - 1, ends[t] - 1, -1):
            if sizes.size > 0 and sizes[j] >= PLAIN:
                digits = buffer.bit_length(np.int64(sizes[j])) - 1
                x, count = ans.push_bits(x, sizes[j], digits, words, count)
            s = np.uint64(_symbol(row[j]))
            signed = np.uint64(row[j] & 255 != 0 and j >= first)
            f = halves[s] << (one - signed)
            if x >= f << np.uint64(63 - PRECISION):
                words[count] = x & np.uint64(0xFFFFFFFF)
                x >>= np.uint64(32)
                count += 1
            quotient = product(x, inverses[s])[0] >> (shifts[s] + one - signed)
            rest = (x - quotient * f << signed) + (signed & np.uint64(row[j] >> 8))
            x = (quotient << np.uint64(PRECISION)) + start[s] + rest
    return x, count


@njit(cache=True)
def read(data, lengths, codes, sizes, raw, raw_bits, payload, weights, costs, kinds, expected):
    """Fill ``codes``, ``sizes``, ``raw`` and ``payload`` as `write` has them; (worker, status).

    lengths : bytes of each message
    """
    buffered, end = buffer.to_words(data), 0
    held = min(BEGIN, raw_bits) if raw.shape[1] > 0 else 0
    for i in range(codes.shape[0]):
        start, end = end, end + 8 * lengths[i]
        pos = ans.after_zeros(buffered, start, end)
        if pos < 0:
            return i, pos
        payload[i], stop = end - pos + 1, end + held - raw.shape[1] * raw_bits
        table = weights, costs, kinds, expected
        status, first = _read_row(buffered, pos, stop, held, codes[i], sizes[i], *table)
        if status < 0:
            return i, status
        if held > 0:
            raw[i, 0] = first
        if raw_bits > held > 0:
            raw[i, 0] |= buffer.take(buffered, stop, raw_bits - held) << np.uint64(held)
            stop += raw_bits - held
        buffer.take_all(buffered, stop, raw[i, 1:], raw_bits)
    return 0, 0


@njit(cache=True)
def _read_row(buffered, pos, stop, held, row, sizes, weights, costs, kinds, expected):
    """(status, the ``held`` bits of the first raw number)."""
    if pos > stop:
        return buffer.SHORT, np.uint64(0)
    lookup_bits = LOOKUPS[int(row.size >= MANY)]
    start, lookup = np.empty(kinds + 1, np.uint64), np.empty(1 << lookup_bits, np.uint64)
    counts, half = np.zeros((2, SYMBOLS), np.int64)
    begin_head, d, one = pos, row.size, np.uint64(1)
    pos, prior, index = read_head(buffered, pos, d, weights, kinds, expected)
    if pos > stop:
        return buffer.SHORT, np.uint64(0)
    head_bits = pos - begin_head
    head = np.int64(buffer.take(buffered, begin_head, head_bits))
    x, pos, left = ans.take_state(buffered, pos, stop - pos)
    low, begun, first = np.uint64((1 << PRECISION) - 1), held, 0
    shift = np.uint64(PRECISION - lookup_bits)
    ends = _stretches(d, index)
    for t in range(ends.size - 1):
        if t == 0 or STRENGTHS[index] != STAYS:
            _set_model(counts, prior, STRENGTHS[index], start, lookup)
        if ends[t] == d // 2:
            half[:] = counts
        for j in range(ends[t], ends[t + 1]):
            entry, slot = _entry_at(x & low, start, lookup, shift)
            s, signed = entry & np.uint64(0x1FF), entry >> np.uint64(15) & one
            counts[s] += 1
            f = entry >> np.uint64(40)
            if begun < BEGIN:
                begun, first, f, signed = begun + np.int64(signed), j + 1, f << signed, np.uint64(0)
            row[j] = s | (slot & signed) << np.uint64(8)
            x = f * (x >> np.uint64(PRECISION)) + (slot >> signed)
            x, pos, left = ans.refill(x, buffered, pos, left)
            if sizes.size > 0:
                sizes[j], digits = s, _digits(np.int64(s))
                if digits > 0:
                    rest, x, pos, left = ans.pop_bits(x, digits, buffered, pos, left)
                    sizes[j] = np.int64(rest) | 1 << digits
    wanted, bits, _, _ = head_of(counts, half, d, weights, costs, kinds, expected)
    if left > 0 or ans.log2(x) != begun or head != wanted or head_bits != bits:
        return buffer.ENTROPY, np.uint64(0)
    return 0, _take_signs(row[:first], x) & np.uint64((1 << held) - 1)


@njit(cache=True, forceinline=True)
def _entry_at(slot, start, lookup, shift):
    """The entry of the symbol that has this number, and the number among that symbol's."""
    entry = lookup[slot >> shift]
    rest = slot - (entry >> np.uint64(16) & np.uint64(0xFFFFFF))
    signed, width = entry >> np.uint64(15) & np.uint64(1), entry >> np.uint64(40)
    if rest >> signed >= width:  # the number belongs to a later symbol
        s, one = entry & np.uint64(0x1FF), np.uint64(1)
        while start[s + one] <= slot:
            s += one
        entry, rest = _entry(s, start[s], start[s + one] - start[s]), slot - start[s]
    return entry, rest


@njit(cache=True)
def _take_signs(symbols, x):
    """The state after the signs of these symbols, which are set from its bits, the last first."""
    for j in range(len(symbols) - 1, -1, -1):
        if symbols[j] & 255:
            symbols[j] |= np.uint16(NAN * np.int64(x & np.uint64(1)))
            x >>= np.uint64(1)
    return x
