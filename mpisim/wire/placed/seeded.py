"""Values at coordinates that both sides know, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import KNOWN, MESSAGE, to_device, to_host
from mpisim.core.tensors.place import dtype_of
from mpisim.wire.placed.sparse import PlacedSparse
from mpisim.wire.sparse import Seeded, SeededForm


class PlacedSeeded(PlacedSparse):
    """``values``: `Seeded.values` on the device."""

    host: Seeded

    def __init__(self, host: Seeded, device: Any, values: torch.Tensor | None = None):
        super().__init__(host, device)
        self.values = to_device(host.values, device, MESSAGE) if values is None else values
        self.indices, self.scale = _coordinates(host.form, device)
        self.decodes = self.scale * self.values.to(dtype_of(host.form.precision.arithmetic))
        self.ends = host.form.ptr.tolist()

    @classmethod
    def take(cls, form: SeededForm, v: torch.Tensor) -> Any:
        """`SeededForm.take` of vectors on the device."""
        indices, _ = _coordinates(form, v.device)
        ends, parts = form.ptr.tolist(), []
        for row, start, stop in zip(v, ends[:-1], ends[1:], strict=True):
            parts.append(row[indices[start:stop]])
        kept = torch.cat(parts) if parts else v.new_empty(0)
        values = kept.to(dtype_of(form.precision.wire))
        return cls(Seeded(form, to_host(values, MESSAGE)), v.device, values)

    def worker(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        own = slice(self.ends[i], self.ends[i + 1])
        return self.indices[own], self.decodes[own]


def _coordinates(form: SeededForm, device: Any) -> tuple[torch.Tensor, Any]:
    """Indices and scale of a form on the device, copied once."""
    if "_there" not in vars(form):
        scale = form.scale
        if isinstance(scale, np.ndarray):
            own = scale.astype(form.precision.arithmetic, copy=False)
            scale = to_device(own, device, KNOWN)
        vars(form)["_there"] = to_device(form.indices, device, KNOWN), scale
    return vars(form)["_there"]
