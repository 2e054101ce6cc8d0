"""Elias codes against hand-computed words, the string coder, and arbitrary bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpisim.core.errors import InputError, WireError
from mpisim.wire.codecs import omega as elias
from tests.wire import string_elias

CODES = {
    "gamma": (elias.gamma_encode, elias.gamma_decode, elias.gamma_length, string_elias.gamma),
    "delta": (elias.delta_encode, elias.delta_decode, elias.delta_length, string_elias.delta),
    "omega": (elias.omega_encode, elias.omega_decode, elias.omega_length, string_elias.omega),
}
each_code = pytest.mark.parametrize("code", CODES)
numbers = st.lists(
    st.one_of(st.integers(1, 70), st.integers(1, 5000), st.integers(1, 2**63 - 1)), max_size=80
)


def as_bits(data: np.ndarray, nbits: int) -> str:
    return "".join(format(byte, "08b") for byte in data)[:nbits]


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
def test_omega_words_computed_by_hand(n, word):
    assert as_bits(*elias.omega_encode(np.array([n]))) == word


def test_omega_lengths_from_the_literature():
    lengths = {1: 1, 3: 3, 7: 6, 15: 7, 31: 11, 63: 12, 127: 13, 255: 14, 511: 16, 1023: 17}
    lengths |= {2047: 18, 65535: 23, 65536: 28}
    got = elias.omega_length(np.array(list(lengths)))
    assert dict(zip(lengths, got.tolist(), strict=True)) == lengths


@each_code
@settings(deadline=None, max_examples=60)
@given(values=numbers)
def test_words_of_the_string_coder(code, values):
    encode, decode, length, reference = CODES[code]
    array = np.array(values, np.int64)
    expected = string_elias.encode(values, reference)
    data, nbits = encode(array)
    assert nbits == len(expected) == length(array).sum()
    assert data.tobytes() == string_elias.to_bytes(expected)
    assert np.array_equal(decode(data, nbits, len(values)), array)


@each_code
def test_every_power_of_two_and_its_neighbours(code):
    encode, decode, _, _ = CODES[code]
    powers = 2 ** np.arange(1, 63, dtype=np.int64)
    values = np.concatenate([powers - 1, powers, powers + 1, [2**63 - 1], np.arange(1, 9000)])
    data, nbits = encode(values)
    assert np.array_equal(decode(data, nbits, values.size), values)


@each_code
@pytest.mark.parametrize("bad", [0, -1, -(2**63)])
def test_below_one_there_is_no_code_word(code, bad):
    encode, _, length, _ = CODES[code]
    for function in (encode, length):
        with pytest.raises(InputError, match=f"{bad}: it must be an integer from 1 to"):
            function(np.array([3, bad, 5]))


def test_other_arrays_are_refused():
    for bad in (np.array([1.0]), np.array([[1]]), np.array([2**63], np.uint64)):
        with pytest.raises(InputError):
            elias.omega_encode(bad)


@each_code
@settings(deadline=None, max_examples=150)
@given(data=st.binary(max_size=60), missing=st.integers(0, 7), count=st.integers(-1, 500))
def test_arbitrary_bytes_give_values_or_wire_error(code, data, missing, count):
    encode, decode, _, _ = CODES[code]
    array = np.frombuffer(data, np.uint8)
    try:
        values = decode(array, 8 * len(data) - missing, count)
    except WireError:
        return
    again, nbits = encode(values)  # what is accepted is exactly what the encoder writes
    assert again.tobytes() == data and nbits == 8 * len(data) - missing


@each_code
@settings(deadline=None, max_examples=60)
@given(values=numbers.filter(bool), cut=st.integers(1, 40))
def test_cut_messages_are_refused(code, values, cut):
    encode, decode, _, _ = CODES[code]
    data, nbits = encode(np.array(values))
    short = max(0, nbits - cut)
    with pytest.raises(WireError):
        decode(data[: -(-short // 8)], short, len(values))


@each_code
def test_numbers_beyond_63_bits_are_refused(code):
    word = CODES[code][3](2**63)
    data = np.frombuffer(string_elias.to_bytes(word), np.uint8)
    with pytest.raises(WireError, match="too large"):
        CODES[code][1](data, len(word), 1)


def test_a_count_that_cannot_fit_takes_no_memory():
    with pytest.raises(WireError):
        elias.omega_decode(np.zeros(8, np.uint8), 64, 2**60)


def test_no_omega_word_is_hidden_in_the_padding():
    for spare in range(8):
        with pytest.raises(WireError):
            elias.omega_decode(np.array([255], np.uint8)[: spare > 0], spare, 1)
