"""Codes of signed powers of two, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import MESSAGE, to_host
from mpisim.wire.exponents import Exponents, ExponentsForm
from mpisim.wire.placed.rows import PlacedRows


class PlacedExponents(PlacedRows):
    """``codes``: `Exponents.codes` on the device, int16."""

    host: Exponents

    def __init__(self, host: Exponents, device: Any, codes: torch.Tensor | None = None):
        super().__init__(host, device)
        self.codes = self.up(host.codes.view(np.int16)) if codes is None else codes
        self.values = self.up(host.form.values)

    @classmethod
    def of(cls, form: ExponentsForm, codes: torch.Tensor) -> Any:
        """The message with ``codes`` (m, d), int16, on the device."""
        return cls(Exponents(form, to_host(codes, MESSAGE).view(np.uint16)), codes.device, codes)

    def row(self, i: int) -> torch.Tensor:
        return self.values.index_select(0, self.codes[i].int())
