"""The images of a block of workers, laid out for the compiled loops of the autoencoder."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.problems import autoencoder_kernels as kernels
from mpisim.problems.data.homogeneity import ImageSplit

WHITE = 255


@dataclasses.dataclass(frozen=True)
class ImageShards:
    """The different shards of a rank's workers, as `autoencoder_kernels` stores them.

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
        ptr = np.empty((len(starts) - 1, pixels.shape[1] + 1), np.int64)
        kernels.count_pixels(pixels, images, starts, ptr)
        rows, values = (np.empty(ptr[-1, -1], kind) for kind in (np.uint32, np.uint8))
        norms = np.empty(len(images))
        kernels.place_pixels(pixels, images, starts, ptr, rows, values, norms)
        sizes = np.diff(starts)
        weights = np.repeat(weight / np.maximum(sizes, 1), sizes).astype(dtype)
        levels = np.arange(WHITE + 1) / WHITE
        shared = bool(common.sum() > 1)
        store = ptr, rows, values, starts
        return cls(store, slots, shared, levels.astype(dtype), weights, norms / WHITE**2)

    @property
    def d_f(self) -> int:
        """Pixels of an image."""
        return self.store[0].shape[1] - 1
