"""Elias omega words against hand-computed ones, the string coder, and arbitrary bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpisim.wire.codecs.bits import LARGE, SHORT, new_words, to_bytes, to_words
from mpisim.wire.codecs.omega import omega_bits, put_omega, read_omega
from tests.wire import string_elias

numbers = st.lists(
    st.one_of(st.integers(1, 70), st.integers(1, 5000), st.integers(1, 2**63 - 1)), max_size=80
)


def encode(values) -> tuple[np.ndarray, str]:
    """The buffer, and its bits as a string."""
    words, pos = new_words(80 * len(values)), 0
    for n in values:
        before, pos = pos, put_omega(words, pos, n)
        assert pos - before == omega_bits(n)
    data = to_bytes(words, -(-pos // 8))
    return words, "".join(format(byte, "08b") for byte in data)[:pos]


def decode(words, end, count) -> list[int]:
    """``count`` numbers that end at ``end``, or a status as the last of them."""
    values, pos, n = [], 0, 1
    for _ in range(count):
        n, pos = read_omega(words, pos, end)
        values.append(n)
        if n < 1:
            break
    return values if pos == end or n < 1 else [*values, SHORT]


def as_words(bits: str) -> np.ndarray:
    return to_words(np.frombuffer(string_elias.to_bytes(bits), np.uint8))


@pytest.mark.parametrize(
    ("n", "word"),
    [
        (1, "0"),
        (2, "100"),
        (3, "110"),
        (4, "101000"),
        (8, "1110000"),
        (16, "10100100000"),
        (100, "1011011001000"),
    ],
)
def test_words_computed_by_hand(n, word):
    assert encode([n])[1] == word


@settings(deadline=None, max_examples=60)
@given(values=numbers)
def test_words_of_the_string_coder(values):
    words, bits = encode(values)
    assert bits == string_elias.encode(values)
    assert decode(words, len(bits), len(values)) == values


@settings(deadline=None, max_examples=150)
@given(bits=st.text("01", max_size=400))
def test_arbitrary_bits_are_what_the_encoder_writes_or_refused(bits):
    words, pos, values = as_words(bits), 0, []
    while pos < len(bits):
        n, pos = read_omega(words, pos, len(bits))
        if n < 1:
            assert n in (SHORT, LARGE)
            return
        values.append(n)
    if pos == len(bits):
        assert encode(values)[1] == bits


@settings(deadline=None, max_examples=60)
@given(values=numbers.filter(bool), cut=st.integers(1, 40))
def test_cut_words_are_refused(values, cut):
    words, bits = encode(values)
    assert decode(words, max(0, len(bits) - cut), len(values))[-1] == SHORT


def test_numbers_beyond_63_bits_are_refused():
    word = string_elias.omega(2**63)
    assert read_omega(as_words(word), 0, len(word))[0] == LARGE
