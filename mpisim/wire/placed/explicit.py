"""Indices and values, on the device."""

from __future__ import annotations

from typing import Any

import torch

from mpisim.core.arrays import MESSAGE, to_device, to_host
from mpisim.core.tensors.place import dtype_of
from mpisim.wire.explicit import Explicit, ExplicitForm
from mpisim.wire.placed.sparse import PlacedSparse


class PlacedExplicit(PlacedSparse):
    """``indices`` and ``values``: those of `Explicit` on the device."""

    host: Explicit

    def __init__(
        self,
        host: Explicit,
        device: Any,
        indices: torch.Tensor | None = None,
        values: torch.Tensor | None = None,
    ):
        super().__init__(host, device)
        self.indices = to_device(host.indices, device, MESSAGE) if indices is None else indices
        self.values = to_device(host.values, device, MESSAGE) if values is None else values

    @classmethod
    def take(cls, form: ExplicitForm, v: torch.Tensor, indices: torch.Tensor) -> Any:
        """`ExplicitForm.take` of vectors on the device."""
        values = v.gather(1, indices).to(dtype_of(form.precision.wire))
        host = Explicit(form, to_host(indices, MESSAGE), to_host(values, MESSAGE))
        return cls(host, v.device, indices, values)

    def worker(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        dtype = dtype_of(self.form.precision.arithmetic)
        return self.indices[i], self.values[i].to(dtype)
