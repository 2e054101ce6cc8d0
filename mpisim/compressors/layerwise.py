"""Compression layer by layer: one message for each tensor of a network, or matrix of a problem."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.worker_rows import WorkerRows
from mpisim.core.errors import InputError
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.rng import Draw
from mpisim.wire.base import Message, pack_tensors
from mpisim.wire.composed import Parts, PartsForm


@compressor("layerwise", "layerwise", {})
class Layerwise(Compressor):
    """C(v) = (C^1(v^1), ..., C^L(v^L)) for the layers v^l of v, each drawn independently.

    inner : the compressor of each layer, bound to its length: a share of d is one of the layer's

    The layers are the problem's (`Problem.layers`); a problem without has one. The bounds of all
    layers hold together: omega, A and 1 - alpha are the largest of the layers', B the least, zeta
    is the sum. Paper bits are the sum of the layers'.
    """

    inner: Compressor

    def check(self) -> None:
        self._bind_layers((self.d,))

    def prepare(self, star: Uplink, problem: Objective) -> None:
        self._bind_layers(problem.layers)

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        raise InputError("compressor.inner.name: 'layerwise' is not allowed inside 'smooth', where"
                         " vectors have no layers")  # fmt: skip

    def _bind_layers(self, layers: tuple[int, ...]) -> None:
        self.layers = [self.bind_inner("inner", d) for d in layers]
        first = self.layers[0]
        if first.fitted:
            raise InputError(
                f"compressor.inner.name: {first.name!r} is not allowed; it is fitted to the problem"
            )
        self.correlated, self.on_device = first.correlated, first.on_device

    def _draws(self, draw: Draw) -> list[Draw]:
        purposes = (f"{draw.purpose}/layer {layer}" for layer in range(len(self.layers)))
        return [dataclasses.replace(draw, purpose=purpose) for purpose in purposes]

    def form(self, draw: Draw) -> PartsForm:
        each = zip(self.layers, self._draws(draw), strict=True)
        forms = tuple(layer.form(own) for layer, own in each)
        return PartsForm(draw.workers, self.precision, forms)

    def compress(self, v: np.ndarray, draw: Draw) -> Message:
        parts, start = [], 0
        for layer, own in zip(self.layers, self._draws(draw), strict=True):
            parts.append(layer.compress(v[:, start : start + layer.d], own))
            start += layer.d
        form = PartsForm(draw.workers, self.precision, tuple(part.form for part in parts))
        if isinstance(v, np.ndarray):
            return Parts(form, tuple(parts))
        return pack_tensors(form, parts, v.device)

    @property
    def omega(self) -> float | None:
        return _largest([layer.omega for layer in self.layers])

    @property
    def alpha(self) -> float | None:
        return _least([layer.alpha for layer in self.layers])

    @property
    def A(self) -> float | None:
        return _largest([layer.A for layer in self.layers])

    @property
    def B(self) -> float | None:
        return _least([layer.B for layer in self.layers])

    @property
    def density(self) -> float:
        return sum(layer.density for layer in self.layers)

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Parts)
        each = zip(self.layers, message.parts, strict=True)
        return np.array([layer.paper_bits(part) for layer, part in each]).sum(axis=0)


def _largest(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _least(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) else None
