"""Signs, packed and unpacked on the device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import KNOWN, MESSAGE, to_device, to_host
from mpisim.core.tensors.bits import pack_negative, sign_table, unpack
from mpisim.wire.placed.rows import PlacedRows
from mpisim.wire.signs import Signs, SignsForm


class PlacedSigns(PlacedRows):
    """``bits``: `Signs.bits` on the device."""

    host: Signs

    def __init__(self, host: Signs, device: Any, bits: torch.Tensor | None = None):
        super().__init__(host, device)
        self.bits = self.up(host.bits) if bits is None else bits
        self.scales = self.up(host.scales).to(self.dtype)
        self.table = sign_table(self.dtype, device)

    @classmethod
    def pack(cls, form: SignsForm, scales: np.ndarray, v: torch.Tensor) -> Any:
        """`SignsForm.pack`, with the scales on the host and ``v`` on the device."""
        bits = pack_negative(v)
        host = Signs(form, scales.reshape(-1, form.layers), to_host(bits, MESSAGE))
        return cls(host, v.device, bits)

    def row(self, i: int) -> torch.Tensor:
        form, scales = self.host.form, self.scales[i]
        if form.layers == 1:
            return unpack(self.table * scales, self.bits[i], form.d)
        row = unpack(self.table, self.bits[i], form.d)
        return row.mul_(torch.repeat_interleave(scales, self.lengths, output_size=form.d))

    @cached_property
    def lengths(self) -> torch.Tensor:
        """Coordinates of each layer."""
        return to_device(np.diff(np.asarray(self.host.form.starts)), self.device, KNOWN)
