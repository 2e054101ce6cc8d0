"""The statistics of batch norm, averaged over the parts of a pass with equal weights."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase


class Statistics:
    """Running means and variances of a model's normalisation layers, views of one flat tensor.

    PyTorch averages with equal weights, too (``momentum=None``), but counts on the device, and
    waits for that number in each layer. Here a hook counts.
    """

    def __init__(self, model: nn.Module):
        self.layers = [m for m in model.modules() if isinstance(m, _NormBase)]
        own = [(layer, name) for layer in self.layers for name in ("running_mean", "running_var")]
        own = [(layer, name) for layer, name in own if getattr(layer, name) is not None]
        old = [getattr(layer, name) for layer, name in own]
        first = next(model.parameters())
        self.flat = torch.cat([t.reshape(-1) for t in old]) if old else first.new_empty(0)
        start = 0
        for (layer, name), tensor in zip(own, old, strict=True):
            stop = start + tensor.numel()
            setattr(layer, name, self.flat[start:stop].view(tensor.shape))
            start = stop
        self._counts: dict[nn.Module, int] = dict.fromkeys(self.layers, 0)
        for layer in self.layers:
            layer.num_batches_tracked = None
            layer.register_forward_pre_hook(self._count)

    def reset(self) -> None:
        """Begin a new average."""
        self.flat.zero_()
        self._counts = dict.fromkeys(self.layers, 0)

    def saved(self) -> torch.Tensor:
        """A copy of the averages, flat."""
        return self.flat.clone()

    def restore(self, saved: torch.Tensor) -> None:
        """Set the averages that `saved` returned."""
        self.flat.copy_(saved)

    def _count(self, layer: nn.Module, _: object) -> None:
        """Before a layer's forward pass: 1 / count is the weight of what it sees now."""
        if layer.training:
            self._counts[layer] += 1
            layer.momentum = 1.0 / self._counts[layer]
