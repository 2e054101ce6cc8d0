"""What is done to images before a model sees them: averaging, normalisation, augmentation.

What is done once, and what decides something, is NumPy's. The images of minibatches are moved and
normalised where they are (`batches`).
"""

from __future__ import annotations

import numpy as np

PAD = 4  # pixels by which augmentation moves an image, at most


def are_images(features: np.ndarray) -> bool:
    """Whether features are images, (N, channels, height, width), uint8."""
    return features.dtype == np.uint8 and features.ndim == 4


def pooled(images: np.ndarray, size: int) -> np.ndarray:
    """Images averaged over squares of ``size`` x ``size`` pixels, rounded; others as they are."""
    if not are_images(images) or size == 1:
        return images
    side = images.shape[-1] // size * size
    blocks = images[..., :side, :side].reshape(*images.shape[:2], side // size, size, -1, size)
    return np.rint(blocks.mean(axis=(3, 5))).astype(np.uint8)


def normalisation(images: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of each channel of images, shape (channels, 1, 1)."""
    counts = [np.bincount(images[:, c].reshape(-1), minlength=256) for c in range(images.shape[1])]
    share = np.array(counts) / np.sum(counts, axis=1)[:, None]
    mean = share @ np.arange(256.0)
    deviation = np.sqrt(share @ np.arange(256.0) ** 2 - mean**2)
    shape = (-1, 1, 1)
    return mean.reshape(shape).astype(dtype), (1 / deviation).reshape(shape).astype(dtype)


def moves(uniforms: np.ndarray) -> np.ndarray:
    """How images are moved: first row, first column, and whether mirrored (1), (..., 3), int64.

    Rows and columns are those of the image in a black border of `PAD` pixels.
    uniforms (..., 3) in [0, 1). The published CD-Adam code uses RandomCrop and
    RandomHorizontalFlip.
    """
    corner = (uniforms[..., :2] * (2 * PAD + 1)).astype(np.int64)
    return np.concatenate([corner, (uniforms[..., 2:] < 0.5).astype(np.int64)], axis=-1)
