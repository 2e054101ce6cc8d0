"""Where the vectors of a run live, and the only crossings between there and the host.

A problem says it: in NumPy arrays, or in PyTorch tensors on a device. Methods compute with the
operators of the array API standard, which both have, with `Arrays.zeros` and the functions here.
Messages, MPI and the log belong to the host and are NumPy's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np


class Arrays:
    """NumPy arrays in the host's memory.

    wait : returns when the device has done what it was asked to do; None where it always has
    """

    device: Any = None
    wait: Callable[[], None] | None = None

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype) -> Any:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def placed(self, array: np.ndarray) -> Any:
        """A host's array as one of these."""
        return array


HOST = Arrays()
HOST_MEMORY = ("cpu",)  # PyTorch's devices whose memory is the host's


def is_tensor(v: Any) -> bool:
    """Whether ``v`` is a PyTorch tensor; False without asking where PyTorch is not loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(v, torch.Tensor)


def in_host_memory(device: Any) -> bool:
    """Whether tensors on ``device`` are in the host's memory, where NumPy sees them uncopied."""
    return device.type in HOST_MEMORY


def sqrt(v: Any) -> Any:
    """The square root, correctly rounded; PyTorch's on a CPU, which is MKL's, is not."""
    if isinstance(v, np.ndarray):
        return np.sqrt(v)
    torch: Any = sys.modules["torch"]
    return torch.from_numpy(np.sqrt(v.numpy())) if in_host_memory(v.device) else v.sqrt()


def maximum(a: Any, b: Any) -> Any:
    """The larger of each two numbers, NaN where there is one; ``a`` may be a number."""
    return np.maximum(a, b) if isinstance(b, np.ndarray) else b.clamp(min=a)


def concatenated(parts: list[Any], axis: int = 0) -> Any:
    """Arrays one after another, along an axis."""
    if is_tensor(parts[0]):
        return sys.modules["torch"].cat(parts, axis)
    return np.concatenate(parts, axis)


def to_host(v: Any) -> Any:
    """A tensor as a NumPy array: a copy, or the same memory if that is the host's.

    What is no tensor stays as it is.
    """
    if not is_tensor(v):
        return v
    if in_host_memory(v.device):
        return v.numpy()
    host = v.cpu()
    return (host.clone() if host is v else host).numpy()


def to_device(array: np.ndarray, device: Any) -> Any:
    """A NumPy array as a tensor on ``device``: a copy, or the same memory if that is the host's."""
    torch: Any = sys.modules["torch"]
    packed = np.ascontiguousarray(array)
    tensor = torch.from_numpy(packed if packed.flags.writeable else packed.copy())
    if in_host_memory(device):
        return tensor
    there = tensor.to(device)
    return there.clone() if there is tensor else there
