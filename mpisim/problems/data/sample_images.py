"""Small generated images, similar to MNIST, so that everything runs without a network.

Ten strokes through random places stand for the digits. Each image is one of them, moved a little
and drawn with a soft pen. As in MNIST, images are 28 x 28, about a fifth of the pixels are above 0,
and a few dozen principal components explain most of the variance.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mpisim.problems.data.sample import uniforms

CLASSES, PLACES = 10, 5  # kinds of strokes, and places on the way of each
JITTER, PEN = 0.05, 0.075  # of the side
_STROKES, _KINDS, _MOVES, _WIDTHS = range(100, 104)  # purposes


@lru_cache(maxsize=1)
def sample_images(count: int = 1200, side: int = 28, seed: int = 0) -> np.ndarray:
    """Shape (count, side, side), uint8, the same on every machine up to the rounding of a level."""
    strokes = 0.2 + 0.6 * uniforms(_STROKES, (CLASSES, PLACES, 2), seed)
    kinds = (CLASSES * uniforms(_KINDS, (count,), seed)).astype(int)
    moves = JITTER * (2 * uniforms(_MOVES, (count, PLACES, 2), seed) - 1)
    places = strokes[kinds] + moves
    widths = PEN * (0.75 + 0.5 * uniforms(_WIDTHS, (count,), seed))
    distances = np.full((count, side, side), np.inf)
    for k in range(PLACES - 1):
        np.minimum(distances, _distances(places[:, k], places[:, k + 1], side), out=distances)
    ink = np.clip(1.5 - distances / widths[:, None, None], 0, 1)
    images = np.rint(255 * ink).astype(np.uint8)
    images.flags.writeable = False
    return images


def _distances(start: np.ndarray, stop: np.ndarray, side: int) -> np.ndarray:
    """Of all pixels to the lines from ``start`` to ``stop`` (count, 2): (count, side, side)."""
    centres = (np.arange(side) + 0.5) / side
    down, right = (stop - start).T[:, :, None, None]
    y = centres[:, None] - start[:, 0, None, None]
    x = centres[None, :] - start[:, 1, None, None]
    along = np.clip((y * down + x * right) / (down**2 + right**2), 0, 1)
    away_y, away_x = y - along * down, x - along * right
    return np.sqrt(away_y * away_y + away_x * away_x)
