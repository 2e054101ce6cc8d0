"""Exponents and levels in an entropy coder whose frequencies adapt.

Symbol 0 is zero, and 1 to 255 have a sign; 256 is NaN, without one. A message is a number of
`mpisim.wire.codecs.ans`, with what is raw behind it. Its state begins with the last 32 bits of the
first raw number and the first signs, 32 bits together. This is its head:

* of exponents, the median of those with a sign (8 bits) and the share of zeros (3 bits, or one
  where there are none); of levels, the scale: 3 bits where it is the expected one or up to three
  half octaves below, else 7;
* the tail (2 bits; of levels up to 4 one, up to 1 none), and of exponents the quarter of an octave
  (2 bits): the row of `mpisim.wire.codecs.priors` that suits the message best;
* how many coordinates that row counts for: 2 bits from SHORT coordinates and FEW symbols on.

The frequencies are those of the row and of the coordinates before, counted anew whenever their
number has grown by a sixteenth. The head follows from the symbols, and readers check it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import ans
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs.priors import PLAIN, REACH, SCALES, WEIGHT_BITS

NAN = 256
SYMBOLS = 257
MODEL_BITS = 19  # of the frequency of a symbol; a sign takes one more
LOOKUP = 9  # bits
BEGIN = 32  # at most so many bits are in the state that a sender begins with
SHORT = 512
STRENGTHS = (3, 5, 7, 10)  # powers of two: coordinates that a prior counts for
FEW = 8
DIGITS = 20  # of a large level that are written at once


@njit(cache=True, forceinline=True)
def _symbol(code):
    return NAN if code == NAN else np.int64(code) & 255


@njit(cache=True, forceinline=True)
def _digits(symbol):
    """How many lower digits of a level of this class are kept."""
    return symbol - PLAIN + 4 if PLAIN <= symbol < NAN else 0


@njit(cache=True)
def _median(counts):
    """Of the symbols that have a sign; 0 without any."""
    half, s = np.int64(0), 0
    for count in counts[1:NAN]:
        half += count
    half = (half + 1) // 2
    while half > 0:
        s += 1
        half -= counts[s]
    return s


@njit(cache=True)
def _zero_share(counts, d):
    """0 without zeros, else 1 to 8: the middle of the eighth in which their share is."""
    return (1 + 8 * (counts[0] - 1) // d) if counts[0] > 0 else np.int64(0)


@njit(cache=True)
def _best_row(counts, costs, first):
    """The row of ``costs`` that is least for ``counts``, whose symbol ``first`` is in column 0."""
    low, high = max(0, first), min(NAN, first + costs.shape[1])
    while low < high and counts[low] == 0:
        low += 1
    while low < high and counts[high - 1] == 0:
        high -= 1
    best, least = 0, np.int64(0)
    for row in range(costs.shape[0]):
        cost = np.int64(0)
        for s in range(low, high):
            cost += counts[s] * costs[row, s - first]
        if row == 0 or cost < least:
            best, least = row, cost
    return best


@njit(cache=True)
def _prior(weights, first, zeros):
    """Weights of all symbols, shape (SYMBOLS,); ``zeros``: `_zero_share`, -1 for levels."""
    prior = np.zeros(SYMBOLS, np.int64)
    share = (2 * zeros - 1) << (WEIGHT_BITS - 4) if zeros > 0 else 0
    for s in range(max(0, first), min(NAN, first + weights.size)):
        prior[s] = weights[s - first] * ((1 << WEIGHT_BITS) - share) >> WEIGHT_BITS
    if zeros >= 0:
        prior[0] = share
    return prior


@njit(cache=True)
def _usual_strength(d, kinds):
    """Where the head has none; -1 where it has one."""
    if d < SHORT:
        return 6
    return 10 if kinds == 2 else 7 if kinds < FEW else -1


@njit(cache=True)
def _strength(counts, prior, d):
    """The index in STRENGTHS of about K / phi, phi = chi^2 / d - K / d, for K likely symbols."""
    squares, likely = 0.0, 0
    for s in range(SYMBOLS):
        mean = prior[s] * (d / (1 << WEIGHT_BITS))
        if mean > 0.5:
            likely += 1
            squares += (counts[s] - mean) ** 2 / mean
        else:
            squares += counts[s]
    beyond = squares - likely
    for index in range(3):
        if likely * d < beyond * (1 << (STRENGTHS[index] + 1)):
            return index
    return 3


@njit(cache=True)
def _head(counts, d, weights, costs, kinds, expected):
    """(head, bits, prior, strength) of a message; ``expected``: scale of levels, -1: exponents."""
    if expected < 0:
        median, zeros = _median(counts), _zero_share(counts, d)
        first = median - REACH
        row = _best_row(counts, costs, first)
        head, bits = (median << 1 | int(zeros > 0), 9)
        if zeros > 0:
            head, bits = head << 3 | zeros - 1, bits + 3
        head, bits = head << 4 | row, bits + 4
    else:
        first, zeros = 0, -1
        row, tails = _best_row(counts, costs, first), costs.shape[0] // SCALES
        below = expected - row // tails
        head, bits = (below, 3) if 0 <= below < 4 else (64 | row // tails, 7)
        if tails > 1:
            head, bits = head << (tails >> 1) | row % tails, bits + (tails >> 1)
    prior, strength = _prior(weights[row], first, zeros), _usual_strength(d, kinds)
    if strength < 0:
        index = _strength(counts, prior, d)
        head, bits, strength = head << 2 | index, bits + 2, STRENGTHS[index]
    return head, bits, prior, strength


@njit(cache=True)
def _read_head(buffered, pos, d, weights, kinds, expected):
    """(position, prior, strength) as in `_head`; ends up to 20 bits further."""
    if expected < 0:
        median, flag = np.int64(buffer.take(buffered, pos, 8)), buffer.take(buffered, pos + 8, 1)
        pos, zeros = pos + 9, np.int64(0)
        if flag:
            zeros, pos = 1 + np.int64(buffer.take(buffered, pos, 3)), pos + 3
        first, row, pos = median - REACH, np.int64(buffer.take(buffered, pos, 4)), pos + 4
    else:
        first, zeros, tails = np.int64(0), np.int64(-1), weights.shape[0] // SCALES
        if buffer.take(buffered, pos, 1):
            row, pos = np.int64(buffer.take(buffered, pos + 1, 6)), pos + 7
        else:
            row, pos = expected - np.int64(buffer.take(buffered, pos + 1, 2)), pos + 3
        row *= tails
        if tails > 1:
            tail = np.int64(buffer.take(buffered, pos, tails >> 1))
            row, pos = row + tail, pos + (tails >> 1)
    # another row is refused in the end, as it is not `_head`'s
    row = max(np.int64(0), min(row, np.int64(weights.shape[0] - 1)))
    prior, strength = _prior(weights[row], first, zeros), _usual_strength(d, kinds)
    if strength < 0:
        strength, pos = STRENGTHS[np.int64(buffer.take(buffered, pos, 2))], pos + 2
    return pos, prior, strength


@njit(cache=True)
def _set_model(counts, prior, strength, first, lookup):
    """Symbol s < first.size - 1 has [first[s], first[s+1]) of 2^MODEL_BITS.

    lookup : shape (2^LOOKUP,), the symbol that the first number of each stretch belongs to
    """
    total, top, rest, kinds = np.int64(0), 0, np.int64(0), first.size - 1
    for s in range(kinds):
        total += (counts[s] << WEIGHT_BITS) + (prior[s] << strength)
    scale = ((1 << MODEL_BITS) - kinds) / max(np.int64(1), total)
    for s in range(kinds):
        weight = (counts[s] << WEIGHT_BITS) + (prior[s] << strength)
        first[s + 1] = 1 + np.int64(weight * scale)
        rest += first[s + 1]
        if first[s + 1] > first[top + 1]:
            top = s
    first[top + 1] += (1 << MODEL_BITS) - rest
    first[0], at = 0, 0
    for s in range(kinds):
        first[s + 1] += first[s]
        while at < 1 << LOOKUP and at << (MODEL_BITS - LOOKUP) < first[s + 1]:
            lookup[at] = s
            at += 1


@njit(cache=True)
def write(codes, sizes, raw, raw_bits, weights, costs, kinds, expected):
    """(bytes of all messages, bits of each).

    codes : symbols, plus 256 for negative ones, shape (m, d), uint16
    sizes : |levels|, whose digits their classes lack, shape (m, d); (m, 0) for exponents
    raw : numbers of ``raw_bits`` bits that stand behind, shape (m, numbers)
    weights, costs : `mpisim.wire.codecs.priors`
    kinds : all symbols are below
    expected : the expected scales, (m,); -1 for exponents
    """
    m, d = codes.shape
    payload, digits = np.empty(m, np.int64), np.int64(0)
    for size in sizes.flat:
        digits += buffer.bit_length(np.int64(size)) if size >= PLAIN else 0
    most = 200 + 2 * digits + raw.shape[1] * raw_bits
    buffered = buffer.new_words(m * (200 + raw.shape[1] * raw_bits + (MODEL_BITS + 2) * d) + most)
    words = np.empty((MODEL_BITS + 1) * d // 32 + digits // 16 + 8, np.uint64)
    firsts = np.empty((2, d), np.uint64)
    first, lookup = np.empty(kinds + 1, np.int64), np.empty(1 << LOOKUP, np.int64)
    held = min(BEGIN, raw_bits) if raw.shape[1] > 0 else 0
    pos = 0
    for i in range(m):
        counts, row = np.zeros(SYMBOLS, np.int64), codes[i]
        for code in row:
            counts[_symbol(code)] += 1
        head, head_bits, prior, strength = _head(counts, d, weights, costs, kinds, expected[i])
        counts[:] = 0
        due, begun, x = 0, held, np.uint64(1) << np.uint64(held)
        if held > 0:
            x |= np.uint64(raw[i, 0]) & np.uint64((1 << held) - 1)
        for j in range(d):
            if j == due:
                _set_model(counts, prior, strength, first, lookup)
                due = j + max(16, j >> 4)
            s = _symbol(row[j])
            counts[s] += 1
            start, width = first[s], first[s + 1] - first[s]
            shift = 1
            if 0 < s < NAN:
                negative = int(row[j] >= NAN)
                if begun < BEGIN:
                    begun += 1
                    x = x << np.uint64(1) | np.uint64(negative)
                else:
                    shift = 0
                    start = 2 * start + negative * width
            firsts[0, j], firsts[1, j] = start << shift, width << shift
        count = 0
        for j in range(d - 1, -1, -1):
            if sizes.shape[1] > 0 and sizes[i, j] >= PLAIN:
                x, count = _push_digits(x, np.int64(sizes[i, j]), words, count)
            x, count = ans.push(x, firsts[0, j], firsts[1, j], MODEL_BITS + 1, words, count)
        tail = raw.shape[1] * raw_bits - held
        pos, payload[i] = ans.put_number(buffered, pos, head, head_bits, x, words, count, tail)
        if raw_bits > held > 0:
            pos = buffer.put(
                buffered, pos, np.uint64(raw[i, 0]) >> np.uint64(held), raw_bits - held
            )
        pos = buffer.put_all(buffered, pos, raw[i, 1:], raw_bits)
    return buffer.to_bytes(buffered, pos // 8), payload


@njit(cache=True)
def _push_digits(x, size, words, count):
    """The digits of ``size`` but the leading one, DIGITS at a time, the lowest first."""
    left = buffer.bit_length(size) - 1
    while left > 0:
        part = min(left, DIGITS)
        digits = np.uint64(size & ((1 << part) - 1))
        x, count = ans.push(x, digits, np.uint64(1), part, words, count)
        size, left = size >> part, left - part
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
        table = weights, costs, kinds, expected[i]
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
    first, lookup = np.empty(kinds + 1, np.int64), np.empty(1 << LOOKUP, np.int64)
    counts, signs = np.zeros(SYMBOLS, np.int64), np.empty(BEGIN, np.int64)
    begin_head = pos
    pos, prior, strength = _read_head(buffered, pos, row.size, weights, kinds, expected)
    if pos > stop:
        return buffer.SHORT, np.uint64(0)
    head_bits = pos - begin_head
    head = np.int64(buffer.take(buffered, begin_head, head_bits))
    x, pos, left = ans.take_state(buffered, pos, stop - pos)
    low, begun, due = np.uint64((1 << (MODEL_BITS + 1)) - 1), held, 0
    for j in range(row.size):
        if j == due:
            _set_model(counts, prior, strength, first, lookup)
            due = j + max(16, j >> 4)
        slot = np.int64(x & low)
        s = lookup[slot >> (MODEL_BITS + 1 - LOOKUP)]
        while first[s + 1] <= slot >> 1:
            s += 1
        counts[s] += 1
        begin, width, code = first[s] << 1, first[s + 1] - first[s], s
        if not 0 < s < NAN or begun < BEGIN:
            if 0 < s < NAN:
                signs[begun] = j
                begun += 1
            width <<= 1
        elif slot >= begin + width:
            begin += width
            code |= NAN
        row[j] = code
        x = np.uint64(width) * (x >> np.uint64(MODEL_BITS + 1)) + np.uint64(slot - begin)
        if x < ans.FULL and left > 0:
            x = x << np.uint64(32) | buffer.take(buffered, pos, 32)
            pos += 32
            left -= 1
        if sizes.size > 0:
            sizes[j], digits = s, _digits(s)
            if digits > 0:
                sizes[j] = 1
            while digits > 0:
                part = digits % DIGITS or DIGITS  # the highest first
                sizes[j] = sizes[j] << part | np.int64(x & np.uint64((1 << part) - 1))
                x >>= np.uint64(part)
                digits -= part
                if x < ans.FULL and left > 0:
                    x = x << np.uint64(32) | buffer.take(buffered, pos, 32)
                    pos += 32
                    left -= 1
    wanted, bits, _, _ = _head(counts, row.size, weights, costs, kinds, expected)
    if left > 0 or ans.log2(x) != begun or head != wanted or head_bits != bits:
        return buffer.ENTROPY, np.uint64(0)
    for t in range(held, begun):
        if x >> np.uint64(begun - 1 - t) & np.uint64(1):
            row[signs[t]] |= NAN
    return 0, x >> np.uint64(begun - held) & np.uint64((1 << held) - 1)
