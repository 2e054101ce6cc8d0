"""Every kind of message: exact round trips, sums in worker order, and corrupt bytes."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpisim.core.errors import InputError, WireError
from mpisim.testing import SINGLE
from mpisim.wire.base import Precision
from mpisim.wire.exponents import ExponentsForm
from mpisim.wire.fewer import FewerForm
from mpisim.wire.levels import Levels, LevelsForm
from mpisim.wire.signs import STRETCH, FlagsForm, SignsForm
from mpisim.wire.sparse import ExplicitForm, SeededForm
from tests.helpers import some_of
from tests.trials.messages import ALL, check, corrupted, pair
from tests.wire import string_elias
from tests.wire.messages import KINDS, PRECISIONS, contents, random_message, received, refused

each_kind = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 2**32)


@pytest.mark.drawn(80)
@each_kind
@pytest.mark.parametrize("precision", PRECISIONS, ids=str)
@pytest.mark.parametrize(("d", "m"), [(1, 1), (1, 3), (7, 0), (8, 2), (129, 3), (5000, 2)])
def test_round_trip_is_exact(kind, precision, d, m):
    message = random_message(kind, np.random.default_rng(d + m), d, m, precision)
    packed = message.encode()
    assert packed.data.dtype == np.uint8 and packed.data.shape == (packed.sizes.sum(),)
    assert np.all(8 * packed.sizes >= packed.payload_bits)
    parts, head = len(getattr(message, "parts", "1")), getattr(message.form, "head", 0)
    # a flag bit and 7 of padding, for each part, and the lengths of parts
    assert np.all(8 * packed.sizes <= packed.payload_bits + 8 * (parts + head))
    assert packed.payload_bits.dtype == packed.sizes.dtype == np.int64
    if message.form.sizes is not None:
        assert np.array_equal(message.form.sizes, packed.sizes)
    again = message.form.decode(packed.data, packed.sizes)
    assert contents(again) == contents(message)
    assert np.array_equal(again.payload_bits, packed.payload_bits)
    assert np.array_equal(message.payload_bits, packed.payload_bits)
    assert again.decoded().tobytes() == message.decoded().tobytes()


@each_kind
@settings(deadline=None, max_examples=40)
@given(seed=seeds, data=st.binary(max_size=80), cut=st.lists(st.integers(0, 80), max_size=2))
def test_arbitrary_bytes_are_a_message_or_a_wire_error(kind, seed, data, cut):
    rng = np.random.default_rng(seed)
    form = random_message(kind, rng, int(rng.integers(1, 30)), len(cut) + 1, SINGLE).form
    ends = [0, *sorted(min(c, len(data)) for c in cut), len(data)]
    assert not check(form, np.frombuffer(data, np.uint8), np.diff(ends))


@some_of(40, kind=range(ALL))
def test_corrupted_messages_are_a_message_or_a_wire_error(kind, seed):
    """Of each kind, and of each compressor; `make trial` has ten million."""
    rng = np.random.default_rng([seed, kind])
    _, form, messages = pair(kind, rng)
    with np.errstate(all="ignore"):
        wrong = [check(form, data, sizes) for data, sizes in corrupted(messages, rng)]
    assert not any(wrong)


@each_kind
def test_sizes_that_do_not_fit_the_bytes(kind):
    message = random_message(kind, np.random.default_rng(0), 20, 2, SINGLE)
    packed = message.encode()
    size, sizes = packed.data.size, packed.sizes
    bad = [sizes[:1], sizes + 1, sizes - 1, np.array([-1, size + 1]), sizes * 2**62]
    for other in (*bad, sizes[[0, 1, 1]]):
        with pytest.raises(WireError):
            message.form.decode(packed.data, other)


def test_levels_are_packed_from_norms_and_numbers_of_any_type():
    form = LevelsForm.uniform(40, 3, SINGLE, 2.5)  # few levels: summed by `_sum_few`
    norms, levels = np.array([0.1, np.nan, 1e300]), np.zeros((3, 40))
    levels[0, :2], levels[1, 5], levels[2, 6] = [3, -1], np.nan, 2
    message = form.pack(norms, levels)
    direct = Levels(form, message.norms, np.nan_to_num(levels, nan=-(2**31)).astype(np.int32))
    decoded = received(message).decoded()
    assert decoded.tobytes() == message.decoded().tobytes()
    assert np.float32(0.1) * np.array([1.2, -0.4]) == pytest.approx(decoded[0, :2], rel=1e-15)
    assert np.isnan(decoded[1:]).all()
    for one in (message, direct):  # an integer made of NaN is not looked up
        assert np.isnan(one.total()).all()
    for bad in (4.0, 0.5, np.nan, np.inf, np.int32(-(2**31)), np.int8(-128)):
        other = np.zeros((3, 40), np.asarray(bad).dtype)
        other[0, 2] = bad
        with pytest.raises(InputError, match=f"a level is {bad}; allowed: whole numbers, at most"):
            form.pack(norms, other)


def test_levels_of_a_norm_that_is_zero_on_the_wire_are_zeros():
    form = LevelsForm.uniform(40, 2, SINGLE, 2.5)
    message = form.pack(np.array([1e-60, 0.0]), np.full((2, 40), [[2.0], [np.nan]]))
    assert not received(message).decoded().any()


def test_levels_bytes_of_the_string_coder():
    rng = np.random.default_rng(3)
    levels = (rng.integers(-900, 900, (3, 9000)) * (rng.random((3, 9000)) < 0.02)).astype(np.int32)
    levels[0, 1:6000] = 0  # a gap beyond the tables
    levels[1] = rng.integers(-2, 3, 9000)
    levels[2, 17] = -123_456_789
    form = LevelsForm.uniform(9000, 3, SINGLE, 2**30)
    packed = Levels(form, np.float32([[1], [2], [3]]), levels).encode()
    words = [format(struct.unpack(">I", struct.pack(">f", i + 1))[0], "032b") for i in range(3)]
    words = [w + string_elias.triples(row) for w, row in zip(words, levels, strict=True)]
    assert packed.payload_bits.tolist() == [len(w) for w in words]
    assert packed.data.tobytes() == b"".join(string_elias.to_bytes(w) for w in words)


NORM = format(struct.unpack(">I", struct.pack(">f", 1.5))[0], "032b")


REFUSED = {
    LevelsForm.uniform(10, 1, SINGLE, 4): [
        (NORM[:24], "ends inside"),
        (NORM + string_elias.omega(11) + "0" + "0", "index"),
        (NORM + string_elias.omega(10) + "0" + "0" + string_elias.omega(1) + "00", "index"),
        (NORM + "0" + "1" + string_elias.omega(5), "level"),
        (NORM + "0" + "1" + string_elias.omega(2**63 - 1), "level"),
        (NORM + "0" + "1" + string_elias.omega(2**63), "too large"),
        (NORM + "1" * 80, "too large|ends inside"),
        (NORM + "0000" + "0111", "ends inside"),
        ("1" + NORM[1:], "norm"),
        ("1" + "0" * 31, "norm"),
        ("0" + "1" * 8 + "0" * 23, "norm"),
        ("0" * 32 + "000", "levels follow"),
        ("0" + "1" * 9 + "0" * 22 + "000", "levels follow"),
    ],
    LevelsForm.uniform(10, 1, SINGLE, 4, "e1"): [  # the norm without its sign, how many, which
        (NORM[1:17], "ends inside"),
        (NORM[1:] + "1011" + "0" * 30, "index"),  # 11 of 10 levels
        (NORM[1:] + "0001" + "1010" + "00", "index"),  # rank 10 of 10
        (NORM[1:] + "0001" + "0000", "ends inside"),
        (NORM[1:] + "0001" + "0000" + "0" + "11110", "level"),  # 5, and 4 is the most
        (NORM[1:] + "0001" + "0000" + "0" + "0" + "1" * 15, "padding"),
        ("0" * 31 + "0001" + "0000" + "00", "levels follow"),
        ("1" * 8 + "1" + "0" * 22 + "0001" + "0000" + "00", "levels follow"),
        ("1" * 31 + "0000", "norm"),
    ],
    ExplicitForm(10, 1, SINGLE, 2): [
        ("0" + "0001" + "0001" + "0" * 64, "index"),  # twice the same
        ("0" + "0010" + "0001" + "0" * 64, "index"),  # not ascending
        ("0" + "0001" + "1010" + "0" * 64, "index"),  # beyond d = 10
        ("1" + string_elias.omega(3) + string_elias.omega(8) + "0" * 64, "index"),
        ("0" + "0000" + "0001" + "0" * 64, "shorter"),
        ("1" + string_elias.omega(2) + string_elias.omega(8) + "0" * 64, "shorter"),
        ("0" + "0010" + "1001" + "0" * 56, "ends inside"),
        ("0" + "0010" + "1001" + "0" * 64 + "1" * 15, "padding"),
    ],
    SignsForm(3, 1, SINGLE): [
        ("0" * 35 + "11110", "padding"),
        ("0" * 24 + "1" + "0" * 7 + "1" * 8, "norm"),  # -0, in the machine's byte order
    ],
    FlagsForm(1, 1, SINGLE): [("1" * 7 + "0", "padding")],
    ExponentsForm(1, 1, SINGLE): [("0" * 16, "padding")],
    FewerForm(4, 1, SINGLE, 1, "entropy"): [
        ("1" + "0" * 63, "too large"),  # as if there were -1 coordinates
        ("1" + "0" * 62 + "1", "too large"),  # none, whose code is a single 1
    ],
}


@pytest.mark.parametrize(
    ("form", "bits", "match"), [(form, *case) for form in REFUSED for case in REFUSED[form]]
)
def test_bits_that_are_refused(form, bits, match):
    refused(form, bits, match)


LENGTHS = [*range(1, 26), 1000, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH + 13]


@some_of(16, dtype=["float32", "float64"], d=LENGTHS)
def test_layers_begin_anywhere_in_a_byte(d, dtype):
    """In any of the stretches that are packed one after another, too."""
    random = np.random.default_rng(d)
    precision = Precision(np.dtype("float32"), np.dtype(dtype))
    for layers in (count for count in (1, 2, 5) if count <= d):
        inner = np.sort(random.choice(np.arange(1, d), layers - 1, replace=False))
        starts = np.array([0, *inner, d])
        v, rows = random.standard_normal((3, d)), random.standard_normal((3, d)).astype(dtype)
        scales = np.abs(random.standard_normal((3, layers))).astype(np.float32)
        scales[0] = 0
        message = SignsForm(d, 3, precision, starts).pack(scales, v)
        wanted = np.where(v < 0, -1, 1).astype(dtype) * np.repeat(scales, np.diff(starts), axis=1)
        assert message.decoded().tobytes() == wanted.astype(dtype).tobytes()
        assert message.total().tobytes() == (wanted[0] + wanted[1] + wanted[2] + 0.0).tobytes()
        sums = rows + wanted
        message.add_to(rows)
        assert rows.tobytes() == sums.tobytes()
        assert received(message).decoded().tobytes() == wanted.tobytes()


def test_a_row_has_each_coordinate_once():
    with pytest.raises(InputError, match=r"of_rows: 9 coordinates a row; allowed: up to d = 8"):
        SeededForm.of_rows(8, SINGLE, np.zeros((2, 9), np.int64), 1.0)
