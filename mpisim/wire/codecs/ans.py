"""Entropy coding with asymmetric numeral systems (rANS; J. Duda, 2013), for compiled kernels.

A state is a number x below 2^63. Coding a symbol with frequency f of 2^r, whose interval begins at
c, makes it (x // f) 2^r + c + x mod f, after 32 bits of x were written where it would exceed 63
bits. Reading undoes this, last symbol first, and a state from 2^31 on has one predecessor only. So
bytes are what a sender writes if they end in the state that the sender began with. Senders begin
with a one and bits that they would send anyway, so nothing is lost at the ends if there are 32 of
them. Only integers are used: the same bits on any processor.

A number is written as a one, the n bits after the state's leading one, and then the words, the
last first. The one has up to 7 zeros in front of it, which fill the first byte (framing).
n and the number of words follow from the length.

`mpisim.wire.codecs.symbols` codes exponents and levels with it, `mpisim.wire.codecs.places` which
coordinates a message has.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import bits as buffer

LOW = np.uint64(0xFFFFFFFF)
AT_ONCE = 31  # bits: with more, a state above FULL could become 0
FULL = np.uint64(1 << 31)  # states below it are read into, as long as there are words


@njit(cache=True, forceinline=True)
def push(x, first, frequency, precision, words, count):
    """The state with one more symbol, and the number of ``words`` written."""
    if x >= frequency << np.uint64(63 - precision):
        words[count] = x & LOW
        return _next(x >> np.uint64(32), first, frequency, precision), count + 1
    return _next(x, first, frequency, precision), count  # one return for both takes thrice as long


@njit(cache=True, forceinline=True)
def _next(x, first, frequency, precision):
    quotient = x // frequency
    return (quotient << np.uint64(precision)) + (x - quotient * frequency) + first


@njit(cache=True, forceinline=True)
def push_bits(x, value, bits, words, count):
    """The state with the ``bits`` low bits of ``value``, AT_ONCE of them or less, highest first."""
    while bits > 0:
        part = (bits - 1) % AT_ONCE + 1
        if x >= np.uint64(1) << np.uint64(63 - part):
            words[count], x = x & LOW, x >> np.uint64(32)
            count += 1
        bits -= part
        low = (np.uint64(1) << np.uint64(part)) - np.uint64(1)
        x = x << np.uint64(part) | np.uint64(value) >> np.uint64(bits) & low
    return x, count


@njit(cache=True, forceinline=True)
def pop_bits(x, bits, buffered, pos, left):
    """(value, state, position, words left): what `push_bits` has written."""
    value, shift = np.uint64(0), 0
    while shift < bits:
        part = np.uint64(min(AT_ONCE, bits - shift))
        value |= (x & ((np.uint64(1) << part) - np.uint64(1))) << np.uint64(shift)
        x, pos, left = refill(x >> part, buffered, pos, left)
        shift += AT_ONCE
    return value, x, pos, left


@njit(cache=True, forceinline=True)
def refill(x, buffered, pos, left):
    """(state, position, words left): a state below FULL takes a word, as long as there are any."""
    if x < FULL and left > 0:
        return x << np.uint64(32) | buffer.take(buffered, pos, 32), pos + 32, left - 1
    return x, pos, left


@njit(cache=True)
def put_number(buffered, pos, head, head_bits, x, words, count, tail):
    """Write zeros, a one, ``head``, the state and its words; ``tail`` bits will follow.

    Returns (position, bits without the zeros).
    """
    state_bits = log2(x)
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
def log2(x):
    """floor(log2 x), x >= 1; -1 for 0."""
    high = np.int64(x >> np.uint64(32))
    if high > 0:
        return 31 + buffer.bit_length(high)
    return buffer.bit_length(np.int64(x)) - 1


@njit(cache=True)
def after_zeros(buffered, pos, end):
    """The position after the first one, which is in the first byte; or a status."""
    if end - pos < 8:
        return buffer.SHORT
    byte = np.int64(buffer.take(buffered, pos, 8))
    return pos + 9 - buffer.bit_length(byte) if byte else buffer.ENTROPY


@njit(cache=True)
def take_state(buffered, pos, bits):
    """(state, position, words after it) of a number of ``bits`` bits."""
    state_bits = bits if bits < 63 else 31 + (bits - 31) % 32
    x = np.uint64(1) << np.uint64(state_bits)
    if state_bits > 0:
        x |= buffer.take(buffered, pos, state_bits)
    return x, pos + state_bits, (bits - state_bits) // 32
