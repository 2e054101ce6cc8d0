"""Vectors in parts, each decoded on the device."""

from __future__ import annotations

from typing import Any

import torch

from mpisim.wire.parts import Parts, PartsForm
from mpisim.wire.placed.base import Placed


class PlacedParts(Placed):
    """``parts``: those of `Parts`, on the device."""

    host: Parts

    def __init__(self, host: Parts, device: Any, parts: list[Any]):
        super().__init__(host, device)
        self.parts = parts

    @classmethod
    def of(cls, form: PartsForm, parts: list[Any], device: Any) -> Any:
        """The message that consists of these."""
        return cls(Parts(form, tuple(part.host for part in parts)), device, parts)

    def decoded(self) -> Any:
        return torch.cat([part.decoded() for part in self.parts], 1)

    def add_to(self, rows: Any) -> None:
        rows += self.decoded()

    def total(self) -> Any:
        return torch.cat([part.total() for part in self.parts])
