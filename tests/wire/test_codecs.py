"""Codes against strings written from their definitions, and against entropies of sources."""

from math import comb

import numpy as np
import pytest

from mpisim.core.errors import InputError, WireError
from mpisim.testing import DOUBLE, SINGLE
from mpisim.wire.codecs.elias import omega_bits
from mpisim.wire.levels import Levels, LevelsForm
from tests.helpers import some_of
from tests.wire import string_elias
from tests.wire.messages import received


def message(rows, codec, s=1e6, precision=SINGLE, starts=None) -> Levels:
    """Norms 1.5; ``rows`` of levels."""
    levels = np.array(rows, np.int32)
    m, d = levels.shape
    starts = np.array([0, d] if starts is None else starts)
    form = LevelsForm(d, m, precision, np.array([float(s)]), starts, codec)
    return Levels(form, np.full((m, starts.size - 1), 1.5, precision.wire), levels)


def binary(number: int, width: int) -> str:
    return format(number, "b").zfill(width) if width else ""


def e1(row, norm: str) -> str:
    """Appendix E.1 of each 1024 coordinates, with Python's integers."""
    if len(row) > 1024:
        return e1(row[:1024], norm) + e1(row[1024:], "")
    d, places = len(row), [j for j, level in enumerate(row) if level]
    k = len(places)
    rank = sum(comb(j, t + 1) for t, j in enumerate(places))
    word = norm + binary(k, d.bit_length()) + binary(rank, (comb(d, k) - 1).bit_length())
    word += "".join("1" if row[j] < 0 else "0" for j in places)
    return word + "".join("1" * (abs(int(row[j])) - 1) + "0" for j in places)


NORM = {32: binary(0x3FC00000, 31), 64: binary(0x3FF8000000000000, 63)}


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@some_of(8, d=[1, 2, 31, 32, 33, 64, 300, 1024, 2500])
def test_e1_bytes_are_those_of_the_string_coder(d, precision):
    rng = np.random.default_rng(d)
    rows = [rng.integers(-9, 10, d) * (rng.random(d) < share) for share in (0, 0.01, 0.1, 0.5, 1)]
    rows[1][-1] = -200  # a long unary word
    rows[4][:] = 1
    sent = message(rows, "e1", precision=precision)
    words = [e1(row, NORM[precision.bits]) for row in rows]
    packed = sent.encode()
    assert packed.payload_bits.tolist() == sent.payload_bits.tolist() == [len(w) for w in words]
    assert packed.data.tobytes() == b"".join(string_elias.to_bytes(word) for word in words)
    assert np.array_equal(sent.form.decode(packed.data, packed.sizes).levels, rows)


def test_words_of_the_string_coder():
    words = {1: "0", 2: "100", 3: "110", 4: "101000", 8: "1110000", 100: "1011011001000"}
    assert {n: string_elias.omega(n) for n in words} == words
    for n in (*words, 4095, 4096, 5000, 2**31, 2**63 - 1):
        assert omega_bits(n) == len(string_elias.omega(n))


def test_e1_levels_that_take_too_many_bits_are_one_line():
    line = r"^compressor\.codec: 'e1' takes 2,147,483,647 bits .* allowed: 1,073,741,824"
    with pytest.raises(InputError, match=line):
        message([[0, 2**31 - 1], [1, 1]], "e1", s=2**31 - 1).encode()


def test_levels_of_the_entropy_coder_are_checked():
    sent = message([[0, 3, 0, -1]], "entropy")
    packed = sent.encode()
    small = LevelsForm.uniform(4, 1, SINGLE, 2, "entropy")
    with pytest.raises(WireError):
        small.decode(packed.data, packed.sizes)
    with pytest.raises(WireError, match="levels follow"):
        received(Levels(sent.form, np.zeros((1, 1), np.float32), sent.levels))


@pytest.mark.parametrize("codec", ["elias", "e1", "entropy"])
def test_steps_of_each_worker(codec):
    """s need not be whole: values are norm level / s, levels at most ceil(s), each worker's own."""
    s = np.array([[0.3, 2.5, 7.0], [4.0, 0.1, 1.5]])
    form = LevelsForm(3, 2, DOUBLE, s, np.array([0, 1, 3]), codec)
    norms = np.array([[2.0, 3.0], [0.5, 1.0]])
    sent = Levels(form, norms, np.array([[1, -3, 7], [4, 0, -2]], np.int32))
    again = received(sent)
    assert np.array_equal(again.levels, sent.levels) and np.array_equal(again.norms, norms)
    values = [[2 / 0.3, 3 * (-3 / 2.5), 3.0], [0.5, 0, -2 / 1.5]]
    np.testing.assert_allclose(again.decoded(), values, rtol=1e-15)
    for worker, levels in enumerate(([[2, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 2, 0]])):
        with pytest.raises(WireError, match=rf"message {worker}.*level"):
            received(Levels(form, norms, np.array(levels, np.int32)))
