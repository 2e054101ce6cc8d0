"""PyTorch tensors on one device as the arrays of a run."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch

from mpisim.core.arrays import Arrays, to_device

# PyTorch reads it when it first takes memory on the CPU: large pages, as NumPy has them, make a
# step of Adam at d = 11 million twice as fast
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


class Tensors(Arrays):
    """Tensors on ``device``."""

    def __init__(self, device: torch.device):
        self.device = device
        self.wait: Callable[[], None] | None = None
        if device.type == "cuda":
            self.wait = lambda: torch.cuda.synchronize(device)

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype_of(dtype), device=self.device)

    def placed(self, array: np.ndarray, reason: str) -> torch.Tensor:
        return to_device(array, self.device, reason)


def dtype_of(dtype: np.dtype) -> torch.dtype:
    """PyTorch's type of the same name."""
    return getattr(torch, np.dtype(dtype).name)
