"""The images of a block of workers, and what the linear autoencoder computes once for a point."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike

from mpisim.core.numerics.sums import product
from mpisim.problems import autoencoder_gradients as gradients
from mpisim.problems.data.arrange import ImageSplit

WHITE = 255


@dataclasses.dataclass(frozen=True)
class ImageShards:
    """The different shards of a rank's workers, as `autoencoder_gradients` stores them.

    store : (ptr, rows, values, starts)
        int64 (shards, d_f + 1), uint32 (pixels,), uint8 (pixels,), int64 (shards + 1,).
    slots : array, shape (m,), int64
        Each worker's shard. Shard 0 is D_0, and is empty if no worker has it.
    shared : bool
        Several workers have D_0.
    levels : array, shape (256,)
        Grey levels as numbers in [0, 1].
    weights, norms : arrays, shape (images of all shards,)
        The weight of each image in its worker's mean, and |a_t|^2.
    """

    store: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    slots: np.ndarray
    shared: bool
    levels: np.ndarray
    weights: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(
        cls,
        pixels: np.ndarray,
        parts: ImageSplit,
        first: int,
        count: int,
        weight: float,
        dtype: np.dtype,
    ) -> ImageShards:
        """The shards of workers first, ..., first + count - 1."""
        workers = np.arange(first, first + count)
        common = parts.common[workers]
        slots = np.where(common, 0, np.cumsum(~common))
        images, bounds = parts.of(np.concatenate([workers[common][:1], workers[~common]]))
        starts = bounds if common.any() else np.concatenate([[0], bounds])
        ptr = np.zeros((len(starts) - 1, pixels.shape[1] + 1), np.int64)
        rows, values = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
        norms = np.empty(len(images))
        for u, (start, stop) in enumerate(pairwise(starts)):
            columns = pixels[images[start:stop]].T
            ptr[u] = ptr[u - 1, -1]
            ptr[u, 1:] += np.cumsum(np.count_nonzero(columns, axis=1))
            rows.append(np.nonzero(columns)[1].astype(np.uint32))
            values.append(columns[columns > 0])
            norms[start:stop] = (columns.astype(np.float64) ** 2).sum(axis=0)
        sizes = np.diff(starts)
        weights = np.repeat(weight / np.maximum(sizes, 1), sizes).astype(dtype)
        levels = np.arange(WHITE + 1) / WHITE
        shared = bool(common.sum() > 1)
        store = ptr, np.concatenate(rows), np.concatenate(values), starts
        return cls(store, slots, shared, levels.astype(dtype), weights, norms / WHITE**2)


class Parameters:
    """x = (D, E): D (d_f, d_e), E (d_e, d_f), D^T D, E E^T and b = [E^T, K], without any image."""

    def __init__(self, x: np.ndarray, d_f: int, dtype: DTypeLike):
        self.x = x.astype(dtype)
        decoder, encoder = self.x[: x.size // 2], self.x[x.size // 2 :]
        self.decoder, self.encoder = decoder.reshape(d_f, -1), encoder.reshape(-1, d_f)
        transposed = np.ascontiguousarray(self.encoder.T)
        self.gram = product(np.ascontiguousarray(self.decoder.T), self.decoder)
        self.encoder_gram = product(self.encoder, transposed)
        k = product(transposed, self.gram) - self.decoder
        self.b = np.hstack([transposed, k])

    @property
    def distance(self) -> float:
        """|D E - I|_F^2."""
        both = np.sum(self.gram * self.encoder_gram) - 2 * np.sum(self.decoder * self.encoder.T)
        return float(both + len(self.decoder))

    def ridge(self, lambda_: float) -> tuple[np.ndarray, np.ndarray]:
        """What lambda adds to S_i b and to E S_i E^T."""
        half = self.x.dtype.type(lambda_ / 2)
        return half * self.b, half * self.encoder_gram


class Codes(Parameters):
    """The codes [E a, K^T a] of the rank's images at a point, and q_i of the shards.

    A shard is encoded when a gradient or loss needs it.
    """

    def __init__(self, x: np.ndarray, shards: ImageShards, lambda_: float):
        pixels = shards.store[0].shape[1] - 1
        super().__init__(x, pixels, shards.levels.dtype)
        ridge, self._start_q = self.ridge(lambda_)
        self.shards = shards
        self._missing = np.ones(len(shards.store[0]), bool)
        codes = np.empty((len(shards.weights), self.b.shape[1]), self.x.dtype)
        q = np.empty((len(shards.store[0]), *self._start_q.shape), self.x.dtype)
        self._at_point = (shards.store, shards.levels, shards.weights, codes, q,
                       self.decoder, ridge)  # fmt: skip

    def of(self, slots: np.ndarray) -> tuple:
        """What `autoencoder_gradients` calls ``at_point``, with the codes of these shards."""
        if self._missing.any():
            which = np.unique(slots)
            which = which[self._missing[which]]
            store, levels, weights, codes, q = self._at_point[:5]
            gradients.encode_shards(store, levels, weights, self.b, self._start_q, which, codes, q)
            self._missing[which] = False
        return self._at_point

    @cached_property
    def common(self) -> np.ndarray:
        """The gradient (d,) of the workers that have D_0; empty unless there are several."""
        out = np.empty((int(self.shards.shared), self.x.size), self.x.dtype)
        slots = np.zeros(len(out), np.int64)
        gradients.write_gradients(self.of(slots), np.empty(0, self.x.dtype), slots, out)
        return out.ravel()
