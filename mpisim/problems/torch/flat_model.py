"""A PyTorch model as a function of one flat vector, on one device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from mpisim.problems.torch import devices
from mpisim.problems.torch.batch_norm import Statistics
from mpisim.problems.torch.batches import Batch

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class FlatModel:
    """Mean losses and gradients of a model over samples.

    Parameters and gradient are views of two flat tensors, shape (d,), in the order of
    ``model.parameters()``. In training, batch norm uses the statistics of the samples that go
    through together, and averages them over one call of `gradient`. `test` uses such an average.
    Nothing waits for the device.

    model : on the CPU, with parameters of the arithmetic's type; moved to ``device``.
    loss : from outputs and targets (b, ...) to the sum of b losses
    correct : likewise to the number of samples that are classified correctly
    mixed : run forward passes under bfloat16 autocast.
    """

    def __init__(
        self, model: nn.Module, device: torch.device, loss: Function, correct: Function, mixed: bool
    ):
        self.model, self.device, self.mixed = model.to(device), device, mixed
        self.loss, self.correct = loss, correct
        parameters = list(self.model.parameters())
        self.shapes = tuple((len(p), p[0].numel()) if p.dim() else (1, 1) for p in parameters)
        self.d = sum(p.numel() for p in parameters)
        self.x = torch.cat([p.detach().reshape(-1) for p in parameters])
        self.grad = torch.zeros_like(self.x)
        start = 0
        for p in parameters:
            stop = start + p.numel()
            p.data = self.x[start:stop].view(p.shape)
            p.grad = self.grad[start:stop].view(p.shape)
            start = stop
        self.statistics = Statistics(self.model)

    def point(self) -> torch.Tensor:
        """The parameters, shape (d,)."""
        return self.x.clone()

    def to_point(self, x: torch.Tensor | np.ndarray) -> None:
        """Set the parameters, shape (d,)."""
        self.x.copy_(torch.as_tensor(x))

    def gradient(self, batch: Batch, chunk: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """In training mode, over all samples of the batch: their sums, and the gradient (d,).

        The sums, float64 on the device, are of the losses and of the samples that are classified
        correctly. Samples go through in as few parts of at most ``chunk`` as possible, of sizes as
        equal as possible. The next call overwrites the gradient. seed : of dropout.
        """
        self.model.train()
        self.statistics.reset()
        devices.seed(self.device, seed)
        return self._passes(batch, chunk)

    def test(
        self, statistics: torch.Tensor, batch: Batch, chunk: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same in evaluation mode, with the `Statistics.saved` after a call of `gradient`."""
        self.model.eval()
        self.statistics.restore(statistics)
        return self._passes(batch, chunk)

    def _passes(self, batch: Batch, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = len(batch)
        parts = -(-rows // chunk)
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.grad.zero_()
        for part in range(parts):
            inputs, targets = batch.part(rows * part // parts, rows * (part + 1) // parts)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
                outputs = self.model(inputs)
            outputs = outputs.to(self.x.dtype)
            loss = self.loss(outputs, targets)
            (loss / rows).backward()
            with torch.no_grad():
                sums += torch.stack([loss.double(), self.correct(outputs, targets).double()])
        return sums, self.grad
