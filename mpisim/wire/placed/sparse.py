"""Messages of a few coordinates, put in place on the device."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch

from mpisim.core.tensors.place import dtype_of
from mpisim.wire.placed.base import Placed


class PlacedSparse(Placed):
    """No coordinate of a worker occurs twice, so the order in which they are written is nothing."""

    @abstractmethod
    def worker(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Indices and decoded values of worker i."""

    def decoded(self) -> Any:
        out = self._zeros(self.form.workers, self.form.d)
        for i in range(self.form.workers):
            indices, values = self.worker(i)
            out[i, indices] = values
        return out

    def add_to(self, rows: Any) -> None:
        for i in range(self.form.workers):
            _add(rows[i], *self.worker(i))

    def total(self) -> Any:
        total = self._zeros(self.form.d)
        for i in range(self.form.workers):
            _add(total, *self.worker(i))
        return total

    def _zeros(self, *shape: int) -> torch.Tensor:
        dtype = dtype_of(self.form.precision.arithmetic)
        return torch.zeros(shape, dtype=dtype, device=self.device)


def _add(row: torch.Tensor, indices: torch.Tensor, values: torch.Tensor) -> None:
    row[indices] = row[indices] + values
