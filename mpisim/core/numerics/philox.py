"""Philox-4x64-10 (Salmon et al., 2011), compiled: 64-bit words at an address, without a state.

The words are those of `numpy.random.Philox`. Setting NumPy's generator to an address takes ten
times as long as drawing the few words of a round.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types

from mpisim.core.numerics.lanes import intrinsic

MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
WEYL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
ROUNDS = 10
WORDS = 4  # in one step of the counter


@intrinsic
def product(typing_context, a, b):
    """(upper, lower) 64 bits of the product of two uint64: one instruction, which Python lacks."""
    both = types.UniTuple(types.uint64, 2)

    def code(context, builder, signature, arguments):
        wide, word = ir.IntType(128), ir.IntType(64)
        first, second = (builder.zext(argument, wide) for argument in arguments)
        product = builder.mul(first, second)
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, both, (high, builder.trunc(product, word)))

    return both(types.uint64, types.uint64), code


@njit(cache=True, forceinline=True)
def step(seed, purpose, c0, repetition, round, message):
    """The four words at a counter; those that the caller does not use cost nothing."""
    c0, c1 = np.uint64(c0), np.uint64(repetition)
    c2, c3 = np.uint64(round), np.uint64(message)
    k0, k1 = np.uint64(seed), np.uint64(purpose)
    for _ in range(ROUNDS):
        high0, low0 = product(MULTIPLIERS[0], c0)
        high1, low1 = product(MULTIPLIERS[1], c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return c0, c1, c2, c3


@njit(cache=True)
def fill(out, seed, purpose, round, message, repetition, start):
    """The words of steps start, start + 1, ..., in ``out``: flat, uint64, a multiple of `WORDS`.

    The key is (seed, purpose); the counter is (step, repetition, round, message), from 1 on, as
    NumPy increments before it draws.
    """
    for s in range(out.size // WORDS):
        words = step(seed, purpose, start + s + 1, repetition, round, message)
        for i in range(WORDS):
            out[WORDS * s + i] = words[i]


@njit(cache=True)
def steps_for(count):
    """Steps of the counter that a worker owns when it draws ``count`` words."""
    return (count + WORDS - 1) // WORDS


@njit(cache=True)
def words(seed, purpose, round, message, repetition, first, workers, count):
    """Shape (workers, count), uint64, for workers first, first + 1, ..., `steps_for` steps each."""
    steps = steps_for(count)
    if count == 1:
        first_words = np.empty((workers, 1), np.uint64)
        for i in range(workers):
            first_words[i, 0] = step(seed, purpose, first + i + 1, repetition, round, message)[0]
        return first_words
    out = np.empty((workers, steps * WORDS), np.uint64)
    fill(out.reshape(-1), seed, purpose, round, message, repetition, first * steps)
    return out[:, :count]


@njit(cache=True)
def words_of(seed, purpose, round, message, workers, count):
    """Rows ``workers``, ascending, of `words` with first = 0, shape (workers.size, count), C order.

    The repetition is 0, and 1, 2, ... for a worker that is there again.
    """
    steps, again = steps_for(count), 0
    row, out = np.empty(steps * WORDS, np.uint64), np.empty((workers.size, count), np.uint64)
    for i in range(workers.size):
        again = again + 1 if i > 0 and workers[i] == workers[i - 1] else 0
        fill(row, seed, purpose, round, message, again, workers[i] * steps)
        for j in range(count):
            out[i, j] = row[j]
    return out


@njit(cache=True)
def uniform(seed, purpose, round, message):
    """The first word of worker 0 as a number in [0, 1): its upper 53 bits."""
    return (words(seed, purpose, round, message, 0, 0, 1, 1)[0, 0] >> np.uint64(11)) * 2.0**-53
