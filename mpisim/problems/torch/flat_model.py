"""A PyTorch model as a function of one flat vector, on one device."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts


def device_of(name: str, first: int) -> torch.device:
    """The device called ``name``; "auto" is an accelerator if there is one, else the CPU.

    Ranks, told apart by their ``first`` worker, share the accelerators if there are several.
    """
    if name == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", first % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cpu")
    raise RuntimeError(f"there is no device {name!r}")


class FlatModel:
    """Mean losses and gradients of a model over samples.

    Parameters and gradient are views of two flat tensors, shape (d,), in the order of
    ``model.parameters()``. In training, batch norm uses the statistics of the samples that go
    through together, and averages them over one call of `gradient`. `test` uses such an average.

    model : on the CPU, with parameters of the arithmetic's type; moved to ``device``.
    mixed : run forward passes under bfloat16 autocast.
    """

    def __init__(self, model: nn.Module, device: torch.device, mixed: bool):
        torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
        if device.type == "cpu":
            torch.set_num_threads(1)  # fixes the order of every sum
        self.model, self.device, self.mixed = model.to(device), device, mixed
        parameters = list(self.model.parameters())
        self.sizes = tuple(p.numel() for p in parameters)
        self.d = sum(self.sizes)
        self.x = torch.cat([p.detach().reshape(-1) for p in parameters])
        self.grad = torch.zeros_like(self.x)
        start = 0
        for p in parameters:
            stop = start + p.numel()
            p.data = self.x[start:stop].view(p.shape)
            p.grad = self.grad[start:stop].view(p.shape)
            start = stop
        self.norms = [m for m in self.model.modules() if isinstance(m, _BatchNorm)]
        for norm in self.norms:
            norm.momentum = None  # a cumulative average with equal weights

    def point(self) -> np.ndarray:
        """The parameters, shape (d,)."""
        return self.x.cpu().numpy().copy()

    def to_point(self, x: np.ndarray) -> None:
        """Set the parameters, shape (d,)."""
        self.x.copy_(torch.from_numpy(np.ascontiguousarray(x)))

    def gradient(
        self, features: np.ndarray, labels: np.ndarray, chunk: int, seed: int
    ) -> tuple[float, int, np.ndarray]:
        """In training mode: mean loss, number of samples classified correctly, gradient (d,).

        features (r, ...) in the model's arithmetic, labels (r,): they go through in as few parts
        of at most ``chunk`` samples as possible, of sizes as equal as possible. seed : of dropout.
        """
        self.model.train()
        for norm in self.norms:
            norm.reset_running_stats()
        torch.manual_seed(seed)
        return self._passes(features, labels, chunk)

    def test(
        self, statistics: list[torch.Tensor], features: np.ndarray, labels: np.ndarray, chunk: int
    ) -> tuple[float, int, np.ndarray]:
        """The same in evaluation mode, with the `statistics` that a call of `gradient` left."""
        self.model.eval()
        for own, saved in zip(self._running(), statistics, strict=True):
            own.copy_(saved)
        return self._passes(features, labels, chunk)

    def statistics(self) -> list[torch.Tensor]:
        """Batch norm's averages over the last call of `gradient`."""
        return [tensor.clone() for tensor in self._running()]

    def _running(self) -> list[torch.Tensor]:
        tensors = [t for norm in self.norms for t in (norm.running_mean, norm.running_var)]
        return [tensor for tensor in tensors if tensor is not None]

    def _passes(
        self, features: np.ndarray, labels: np.ndarray, chunk: int
    ) -> tuple[float, int, np.ndarray]:
        rows, total, correct = len(labels), 0.0, 0
        parts = -(-rows // chunk)
        self.grad.zero_()
        for part in range(parts):
            which = slice(rows * part // parts, rows * (part + 1) // parts)
            inputs = torch.from_numpy(np.ascontiguousarray(features[which])).to(self.device)
            wanted = torch.from_numpy(labels[which]).to(self.device)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
                outputs = self.model(inputs)
            loss = nn.functional.cross_entropy(outputs.to(self.x.dtype), wanted, reduction="sum")
            (loss / rows).backward()
            total += loss.item()
            correct += int((outputs.argmax(1) == wanted).sum())
        return total / max(rows, 1), correct, self.grad.cpu().numpy().copy()
