"""A message on the host whose decoded vectors are tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.core.arrays import FALLBACK, in_host_memory, to_device
from mpisim.wire.base import Message, Packed


class Placed(Message):
    """Encoded and decoded on the host; the decoded vectors are tensors on ``device``.

    host : the message that crosses
    """

    def __init__(self, host: Message, device: Any):
        self.host, self.device, self.form = host, device, host.form

    def encode(self) -> Packed:
        return self.host.encode()

    @property
    def payload_bits(self) -> np.ndarray:
        return self.host.payload_bits

    def layer_bits(self) -> np.ndarray | None:
        return self.host.layer_bits()

    def decoded(self) -> Any:
        return self._there(self.host.decoded())

    def add_to(self, rows: Any) -> None:
        if in_host_memory(rows.device):
            self.host.add_to(rows.numpy())
        else:
            rows += self.decoded()

    def total(self) -> Any:
        return self._there(self.host.total())

    def _there(self, vectors: np.ndarray) -> Any:
        return to_device(vectors, self.device, FALLBACK)
