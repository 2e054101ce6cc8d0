"""The split of images with a homogeneity p-hat (PermK paper, Appendix A.5)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.core.rng import Draw, Streams
from mpisim.problems.data.arrange import shuffle

Mix = Literal["workers", "samples"]
COMMON = 0  # the part D_0


@dataclasses.dataclass(frozen=True)
class ImageSplit:
    """The images of each of the n workers.

    images : array, shape (rows in all,), int64
        Worker i has the images images[bounds[i]:bounds[i + 1]].
    bounds : array, shape (n + 1,), int64
    common : array, shape (n,), bool
        Whether a worker has exactly D_0.
    """

    images: np.ndarray
    bounds: np.ndarray
    common: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Images of each worker, shape (n,), int64."""
        return np.diff(self.bounds)

    def of(self, workers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The images of ``workers``, one worker after the other, and their bounds."""
        sizes = self.sizes[workers]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        return self.images[np.repeat(self.bounds[workers], sizes) + within], bounds


def split(count: int, used: int, n: int, p: float, mix: Mix, seed: int) -> ImageSplit:
    """Shuffle ``used`` of ``count`` images into n + 1 parts D_0, ..., D_n, as even as possible.

    With mix = "workers" (the paper) worker i takes D_0 with probability p, else D_i. With
    "samples" (the published code) it takes D_i, where each image is replaced with probability p
    by the image at the same place of D_0. If sizes differ, the first parts have one image more.
    """
    order, draw = shuffle(count, seed)[:used], Draw(Streams(seed), "data/homogeneity", 0, 0, n)
    sizes = used // (n + 1) + (np.arange(n + 1) < used % (n + 1))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = np.arange(1, n + 1)
    if mix == "workers":
        parts[draw.uniforms(1)[:, 0] < p] = COMMON
    bounds = np.concatenate([[0], np.cumsum(sizes[parts])])
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes[parts])
    places = np.repeat(starts[parts], sizes[parts]) + within
    if mix == "samples":
        replaced = draw.uniforms(int(sizes[0])) < p
        replaced = replaced[np.repeat(np.arange(n), sizes[parts]), within]
        places[replaced] = within[replaced]
    same_size = sizes[parts] == sizes[COMMON]
    same = np.bincount(np.repeat(np.arange(n), sizes[parts]), places == within, n)
    return ImageSplit(order[places], bounds, same_size & (same == sizes[parts]))
