"""Samples on the device of the model, and what is done to them before the model sees them."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch.nn import functional

from mpisim.problems.torch.samples import are_images

PAD = 4  # pixels by which augmentation moves an image, at most


@dataclasses.dataclass(frozen=True)
class Normalise:
    """Makes what a model takes: images with mean 0 and variance 1 in each channel; others as is.

    mean, inverse_deviation : of each channel, shape (channels, 1, 1); None unless there are images
    layout : of images in memory
    """

    mean: torch.Tensor | None
    inverse_deviation: torch.Tensor | None
    layout: torch.memory_format

    @classmethod
    def of(cls, features: np.ndarray, device: torch.device, dtype: np.dtype) -> Normalise:
        """The normalisation of the training samples ``features``."""
        # on the CPU channels that come last are not faster, and sums would have other bits
        on_cpu = device.type == "cpu"
        layout = torch.contiguous_format if on_cpu else torch.channels_last
        if not are_images(features):
            return cls(None, None, layout)
        mean, inverse_deviation = (torch.from_numpy(v) for v in normalisation(features, dtype))
        return cls(mean.to(device), inverse_deviation.to(device), layout)

    def batch(
        self, features: np.ndarray, targets: np.ndarray, device: torch.device, dtype: torch.dtype
    ) -> Batch:
        """Samples (b, ...) on the device: floats in the type ``dtype``, others in their own."""

        def placed(values: np.ndarray) -> torch.Tensor:
            tensor = torch.tensor(np.ascontiguousarray(values))
            return tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)

        return Batch(placed(features), placed(targets), self)

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        if self.mean is not None and self.inverse_deviation is not None:
            features = (features - self.mean) * self.inverse_deviation
        layout = self.layout if features.dim() == 4 else torch.contiguous_format
        return features.contiguous(memory_format=layout)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Samples that a gradient is the mean over, on the device.

    features : (b, ...), not normalised
    targets : (b, ...)
    moves : (b, 3), int64, as `moves_of` returns; None: the images are not moved
    """

    features: torch.Tensor
    targets: torch.Tensor
    normalise: Normalise
    moves: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def first(self, count: int) -> Batch:
        """The first ``count`` samples."""
        return dataclasses.replace(
            self, features=self.features[:count], targets=self.targets[:count]
        )

    def chosen(self, rows: torch.Tensor, moves: torch.Tensor | None) -> Batch:
        """The samples with numbers ``rows`` (b,), moved or not."""
        return Batch(self.features[rows], self.targets[rows], self.normalise, moves)

    def part(self, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What the model takes of samples start, ..., stop - 1, and their targets."""
        features = self.features[start:stop]
        if self.moves is not None:
            features = moved(features, self.moves[start:stop])
        return self.normalise(features), self.targets[start:stop]


def moved(images: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
    """Images (b, c, h, w), cut out of a black border and mirrored as ``moves`` (b, 3) says."""
    b, _, h, w = images.shape
    device = images.device
    padded = functional.pad(images, (PAD,) * 4)
    rows = moves[:, :1] + torch.arange(h, device=device)
    columns = moves[:, 1:2] + torch.arange(w, device=device)
    columns = torch.where(moves[:, 2:] == 1, columns.flip(1), columns)
    number = torch.arange(b, device=device)[:, None, None]
    return padded[number, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def normalisation(images: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of each channel of images, shape (channels, 1, 1)."""
    counts = [np.bincount(images[:, c].reshape(-1), minlength=256) for c in range(images.shape[1])]
    share = np.array(counts) / np.sum(counts, axis=1)[:, None]
    mean = share @ np.arange(256.0)
    deviation = np.sqrt(share @ np.arange(256.0) ** 2 - mean**2)
    shape = (-1, 1, 1)
    return mean.reshape(shape).astype(dtype), (1 / deviation).reshape(shape).astype(dtype)


def moves_of(uniforms: np.ndarray) -> np.ndarray:
    """How images are moved: first row, first column, and whether mirrored (1), (..., 3), int64.

    Rows and columns are those of the image in a black border of `PAD` pixels.
    uniforms (..., 3) in [0, 1). The published CD-Adam code uses RandomCrop and
    RandomHorizontalFlip.
    """
    corner = (uniforms[..., :2] * (2 * PAD + 1)).astype(np.int64)
    return np.concatenate([corner, (uniforms[..., 2:] < 0.5).astype(np.int64)], axis=-1)
