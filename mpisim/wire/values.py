"""Messages that are values in wire precision, one behind the other, and nothing else."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod

import numpy as np

from mpisim.wire.base import Form, Message, Packed, check_sizes


class ValuesForm(Form):
    """Both sides know how many values each worker sends, and so the sizes."""

    @property
    @abstractmethod
    def sizes(self) -> np.ndarray:
        """Bytes of each message, shape (workers,), int64."""

    def read(self, data: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The values in ``data``, worker by worker, as one row of wire precision."""
        check_sizes(self, data, sizes)
        return data.view(self.precision.wire)


@dataclasses.dataclass(eq=False)
class ValuesMessage(Message):
    """``values``: worker axis first, C order, wire precision; any float is allowed."""

    form: ValuesForm
    values: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return 8 * self.form.sizes

    def encode(self) -> Packed:
        sizes = self.form.sizes
        return Packed(self.values.reshape(-1).view(np.uint8), sizes, 8 * sizes)
