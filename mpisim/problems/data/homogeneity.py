"""The split of images with a homogeneity p-hat (PermK paper, Appendix A.5)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.core.rng import Streams
from mpisim.problems.data.arrange import shuffle

Mix = Literal["workers", "samples"]
COMMON = 0  # the part D_0


@dataclasses.dataclass(frozen=True)
class Split:
    """Which images each of all n workers has.

    images : array, shape (rows in all,), int64
        Worker i has the images images[bounds[i]:bounds[i + 1]].
    bounds : array, shape (n + 1,), int64
    common : array, shape (n,), bool
        Which workers have exactly D_0.
    """

    images: np.ndarray
    bounds: np.ndarray
    common: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Images of each worker, shape (n,), int64."""
        return np.diff(self.bounds)

    def of(self, workers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The images of ``workers``, one behind the other, and their bounds."""
        sizes = self.sizes[workers]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        return self.images[np.repeat(self.bounds[workers], sizes) + within], bounds


def split(count: int, used: int, n: int, p: float, mix: Mix, seed: int) -> Split:
    """``used`` of ``count`` images, shuffled, in n + 1 parts D_0, ..., D_n as even as possible.

    Worker i takes D_0 with probability p, else D_i (mix = "workers", the paper); or D_i, each
    image of which the one of D_0 at the same place replaces with probability p ("samples", the
    published code). Where parts differ in size, the first ones are longer by an image.
    """
    order, streams = shuffle(count, seed)[:used], Streams(seed)
    sizes = used // (n + 1) + (np.arange(n + 1) < used % (n + 1))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = np.arange(1, n + 1)
    if mix == "workers":
        parts[_uniforms(streams, n, 1)[:, 0] < p] = COMMON
    bounds = np.concatenate([[0], np.cumsum(sizes[parts])])
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes[parts])
    places = np.repeat(starts[parts], sizes[parts]) + within
    if mix == "samples":
        replaced = _uniforms(streams, n, int(sizes[0])) < p
        replaced = replaced[np.repeat(np.arange(n), sizes[parts]), within]
        places[replaced] = within[replaced]
    alike = sizes[parts] == sizes[COMMON]
    same = np.bincount(np.repeat(np.arange(n), sizes[parts]), places == within, n)
    return Split(order[places], bounds, alike & (same == sizes[parts]))


def _uniforms(streams: Streams, n: int, count: int) -> np.ndarray:
    """Uniform numbers in [0, 1), shape (n, count)."""
    return (streams.raw("data/homogeneity", 0, 0, n, count) >> np.uint64(11)) * 2.0**-53
