"""A bit from each worker: a byte, with the bit in front and ones behind it."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.wire.base import Form, Message, Packed, check_sizes, same
from mpisim.wire.codecs.bits import PADDING, check

ONES = 0x7F  # the padding of the byte


@dataclasses.dataclass(eq=False)
class FlagsForm(Form):
    """d = 1; a message is one byte."""

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, 1)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Flags:
        check_sizes(self, data, sizes)
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
