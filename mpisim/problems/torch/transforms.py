"""What is done to images before a model sees them: averaging, normalisation, augmentation."""

from __future__ import annotations

import numpy as np

PAD = 4  # pixels by which augmentation moves an image, at most


def pooled(images: np.ndarray, size: int) -> np.ndarray:
    """uint8 images averaged over squares of ``size`` x ``size`` pixels, rounded; others as is."""
    if images.dtype != np.uint8 or size == 1:
        return images
    side = images.shape[-1] // size * size
    blocks = images[..., :side, :side].reshape(*images.shape[:2], side // size, size, -1, size)
    return np.rint(blocks.mean(axis=(3, 5))).astype(np.uint8)


def normalisation(images: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of each channel, shape (channels, 1, 1)."""
    if images.dtype != np.uint8:
        return np.zeros(1, dtype), np.ones(1, dtype)
    counts = [np.bincount(images[:, c].reshape(-1), minlength=256) for c in range(images.shape[1])]
    share = np.array(counts) / np.sum(counts, axis=1)[:, None]
    mean = share @ np.arange(256.0)
    deviation = np.sqrt(share @ np.arange(256.0) ** 2 - mean**2)
    shape = (-1, 1, 1)
    return mean.reshape(shape).astype(dtype), (1 / deviation).reshape(shape).astype(dtype)


def augmented(images: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Images (b, c, h, w), cropped at random from a black border of 4 pixels, and mirrored or not.

    uniforms (b, 3): row, column, mirror. The published CD-Adam code uses RandomCrop and
    RandomHorizontalFlip.
    """
    b, c, h, w = images.shape
    padded = np.zeros((b, c, h + 2 * PAD, w + 2 * PAD), images.dtype)
    padded[:, :, PAD : PAD + h, PAD : PAD + w] = images
    top, left = (uniforms[:, :2] * (2 * PAD + 1)).astype(np.int64).T
    rows, columns = top[:, None] + np.arange(h), left[:, None] + np.arange(w)
    columns = np.where(uniforms[:, 2:] < 0.5, columns[:, ::-1], columns)
    cut = padded[np.arange(b)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return cut.transpose(0, 3, 1, 2)
