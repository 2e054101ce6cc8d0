"""Values of all coordinates, on the device."""

from __future__ import annotations

from typing import Any

import torch

from mpisim.core.arrays import MESSAGE, to_host
from mpisim.core.tensors.place import dtype_of
from mpisim.wire.dense import Dense, DenseForm
from mpisim.wire.placed.rows import PlacedRows


class PlacedDense(PlacedRows):
    """``values``: `Dense.values` on the device."""

    host: Dense

    def __init__(self, host: Dense, device: Any, values: torch.Tensor | None = None):
        super().__init__(host, device)
        self.values = self.up(host.values) if values is None else values

    @classmethod
    def of(cls, form: DenseForm, v: torch.Tensor) -> Any:
        """The message with the vectors ``v`` (m, d), rounded to the wire: a copy of them."""
        values = torch.empty(v.shape, dtype=dtype_of(form.precision.wire), device=v.device)
        values.copy_(v)
        return cls(Dense(form, to_host(values, MESSAGE)), v.device, values)

    def row(self, i: int) -> torch.Tensor:
        return self.values[i].to(self.dtype, copy=True)
