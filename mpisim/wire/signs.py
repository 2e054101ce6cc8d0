"""Sign vectors with one scale: 32 + d bits (64 + d with float64 values on the wire); points; flags.

The scale comes first, then one bit a coordinate (1: negative; the sign of 0 is +1), first
coordinate in the highest bit, and ones up to the next byte. Layers have a scale each. A scale that
is not finite on the wire travels as the quiet NaN, and all values of its layer are NaN.

`Points` have one of 2^b values, times the scale, for each coordinate: b such bits, or an entropy
code with frequencies that both sides know, where the scale stands last.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.wire.base import (
    CodedMessage,
    Form,
    KernelMessage,
    Message,
    Packed,
    checked,
    pack_tensors,
    same,
)
from mpisim.wire.codecs import entropy
from mpisim.wire.codecs.bits import (
    ENTROPY,
    PADDING,
    bytes_for,
    check,
    check_scales,
    raw,
    round_scales,
)

ONES = 0x7F  # the padding of a flag's byte
STRETCH = 1 << 15  # coordinates packed together so that they stay in cache, a multiple of 8


@dataclasses.dataclass(eq=False)
class SignsForm(Form):
    """Sizes are known: the scales and ceil(d / 8) bytes.

    starts : layer l is coordinates starts[l] to starts[l + 1] - 1; one layer unless given
    """

    starts: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.starts is None:
            self.starts = np.array([0, self.d])
        self.layers = len(self.starts) - 1

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, self.scale_bytes + -(-self.d // 8))

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scales of a message."""
        return self.layers * self.precision.wire.itemsize

    @property
    def padding(self) -> int:
        """The bits of the last byte that belong to no coordinate."""
        return (1 << (-self.d % 8)) - 1

    def pack(self, scales: np.ndarray, v: np.ndarray) -> Signs:
        """The message with these scales (workers, layers), and the signs of v; it rounds scales.

        ``v`` may be a tensor.
        """
        scales = np.asarray(scales, np.float64).reshape(self.workers, self.layers)
        scales = round_scales(scales, self.precision.wire)
        if not isinstance(v, np.ndarray):
            return pack_tensors(self, scales, v)
        bits = np.empty((len(v), -(-self.d // 8)), np.uint8)
        for start in range(0, self.d, STRETCH):
            part = v[:, start : start + STRETCH]
            bits[:, start // 8 : (start + STRETCH) // 8] = np.packbits(part < 0, axis=1)
        bits[:, -1] |= self.padding
        return Signs(self, scales, bits)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Signs:
        data, _ = checked(self, data, sizes)
        first = self.scale_bytes
        rows = data.reshape(self.workers, first + -(-self.d // 8))
        scales = rows[:, :first].copy().view(self.precision.wire)
        check_scales(raw(scales))
        wrong = rows[:, -1] & self.padding != self.padding
        if wrong.any():
            check(int(wrong.argmax()), PADDING)
        return Signs(self, scales, np.ascontiguousarray(rows[:, first:]))


@dataclasses.dataclass(eq=False)
class Signs(KernelMessage):
    """Scaled signs of a block of workers.

    scales : array, shape (m, layers), wire precision, >= 0, or the quiet NaN
    bits : array, shape (m, ceil(d / 8)), uint8, padded with ones
    """

    form: SignsForm
    scales: np.ndarray
    bits: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return same(self.form.workers, 8 * self.form.scale_bytes + self.form.d)

    def layer_bits(self) -> np.ndarray:
        bits = self.form.precision.bits + np.diff(np.asarray(self.form.starts))
        return np.tile(bits, (self.form.workers, 1))

    def encode(self) -> Packed:
        first = self.form.scale_bytes
        rows = np.empty((self.form.workers, first + self.bits.shape[1]), np.uint8)
        rows[:, :first] = self.scales.view(np.uint8)
        rows[:, first:] = self.bits
        return Packed(rows.reshape(-1), self.form.sizes, self.payload_bits)

    def put(self, rows: np.ndarray, add: bool) -> None:
        scales = self.scales.astype(self.form.precision.arithmetic, copy=False)
        _put(rows, add, scales, self.form.starts, self.bits)


@njit(cache=True)
def _put(rows, add, scales, starts, bits):
    """`KernelMessage.put`: the signs of worker i, times scales[i, layer]."""
    if not add:
        rows[:] = -0.0  # plus any number it is that number, -0 included
    for i in range(bits.shape[0]):
        _add_row(rows[i * rows.shape[0] // bits.shape[0]], scales[i], starts, bits[i])


@njit(cache=True)
def _value(bits, j, scale):
    return -scale if (bits[j >> 3] >> (7 - (j & 7))) & 1 else scale


@njit(cache=True)
def _add_row(row, scales, starts, bits):
    """Whole bytes of a layer take vector instructions."""
    for layer in range(scales.size):
        start, stop, scale = starts[layer], starts[layer + 1], scales[layer]
        first, last = min(stop, start + 7 & -8), stop & -8
        for j in range(start, first):
            row[j] += _value(bits, j, scale)
        for j in range(np.uint64(first), np.uint64(last), np.uint64(8)):
            byte = np.int64(bits[j >> np.uint64(3)])
            for t in range(8):
                row[j + np.uint64(t)] += -scale if byte & (128 >> t) else scale
        for j in range(max(first, last), stop):
            row[j] += _value(bits, j, scale)


@dataclasses.dataclass(eq=False)
class PointsForm(Form):
    """Messages of a scale and a point for each coordinate.

    points : the 2^b values that a coordinate may have, times its vector's scale, float64
    shares : how often each size of symmetric points is expected, for an entropy code; else empty
    """

    points: np.ndarray
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        b = (self.points.size - 1).bit_length()
        self.places = np.arange(b - 1, -1, -1)
        self.inner = SignsForm(b * self.d, self.workers, self.precision)

    @property
    def sizes(self) -> np.ndarray | None:
        return None if self.shares else self.inner.sizes

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Points:
        if self.shares:
            return self._read(data, sizes)
        signs = self.inner.decode(data, sizes)
        bits = np.unpackbits(signs.bits, axis=1, count=self.inner.d)
        which = bits.reshape(self.workers, self.d, self.places.size) @ (1 << self.places)
        return Points(self, signs.scales, which)

    def _read(self, data: np.ndarray, sizes: np.ndarray) -> Points:
        data, sizes = checked(self, data, sizes)
        scales = np.empty((self.workers, 1), self.precision.wire)
        unsigned, low = raw(scales), self.precision.bits - 1
        codes, payload = entropy.read_symbols(data, sizes, self.d, unsigned, low, self.shares)
        check_scales(unsigned)
        sides = (codes & 255).astype(np.int64)  # the least point of a side is 1
        if not sides.all():
            check(int((sides == 0).any(axis=1).argmax()), ENTROPY)
        half = self.points.size >> 1
        return Points(self, scales, half + np.where(codes > 255, -sides, sides - 1), payload)


@dataclasses.dataclass(eq=False)
class Points(CodedMessage):
    """Scales (m, 1), wire precision, and which point each coordinate has, (m, d), int64."""

    form: PointsForm
    scales: np.ndarray
    which: np.ndarray
    payload: np.ndarray | None = None

    @property
    def payload_bits(self) -> np.ndarray:
        form = self.form
        if form.shares:
            return super().payload_bits
        return same(form.workers, 8 * form.inner.scale_bytes + form.inner.d)

    def encode(self) -> Packed:
        form = self.form
        if not form.shares:
            bits = (self.which[:, :, None] >> form.places & 1).reshape(-1, form.inner.d)
            return form.inner.pack(self.scales, -bits).encode()
        above = self.which - (form.points.size >> 1)
        codes = np.where(above < 0, 256 - above, 1 + above).astype(np.uint16)
        scales, low = raw(self.scales), form.precision.bits - 1  # all but the signs
        data, self.payload = entropy.write_symbols(codes, scales, low, form.shares)
        return Packed(data, bytes_for(self.payload), self.payload)

    def decoded(self) -> np.ndarray:
        kind = self.form.precision.arithmetic
        with np.errstate(over="ignore"):  # infinity, as of other messages
            return self.scales.astype(kind) * self.form.points.astype(kind)[self.which]


@dataclasses.dataclass(eq=False)
class FlagsForm(Form):
    """A bit from each worker, d = 1: a byte, with the bit in front and ones after it."""

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, 1)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Flags:
        data, _ = checked(self, data, sizes)
        wrong = data & ONES != ONES
        if wrong.any():
            check(int(wrong.argmax()), PADDING)
        return Flags(self, data > ONES)


@dataclasses.dataclass(eq=False)
class Flags(Message):
    """flags : the bits, shape (workers,), bool"""

    form: FlagsForm
    flags: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return same(self.form.workers, 1)

    def encode(self) -> Packed:
        data = np.where(self.flags, 0xFF, ONES).astype(np.uint8)
        return Packed(data, self.form.sizes, self.payload_bits)

    def decoded(self) -> np.ndarray:
        return self.flags[:, None].astype(self.form.precision.arithmetic)
