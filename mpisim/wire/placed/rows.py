"""Messages that are decoded on the device, one worker at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import MESSAGE, to_device
from mpisim.core.tensors.place import dtype_of
from mpisim.wire.base import Message
from mpisim.wire.placed.base import Placed


class PlacedRows(Placed):
    """Sums are taken worker by worker, as on the host."""

    def __init__(self, host: Message, device: Any):
        super().__init__(host, device)
        self.dtype = dtype_of(host.form.precision.arithmetic)

    @abstractmethod
    def row(self, i: int) -> torch.Tensor:
        """What the message of worker i decodes to, shape (d,): a tensor that nothing else uses."""

    def decoded(self) -> Any:
        form = self.form
        out = torch.empty((form.workers, form.d), dtype=self.dtype, device=self.device)
        for i in range(form.workers):
            out[i] = self.row(i)
        return out

    def add_to(self, rows: Any) -> None:
        for i in range(self.form.workers):
            rows[i] += self.row(i)

    def total(self) -> Any:
        total = torch.zeros(self.form.d, dtype=self.dtype, device=self.device)
        for i in range(self.form.workers):
            total += self.row(i)
        return total

    def up(self, array: np.ndarray) -> torch.Tensor:
        """Something packed, on the device."""
        return to_device(array, self.device, MESSAGE)
