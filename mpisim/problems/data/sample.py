"""Small generated data sets, so that everything runs without a network.

The LibSVM file is similar to a9a, and the images are similar to MNIST. Like a9a the file has
one-hot groups of binary features (of the sizes of the Adult census attributes), about 14 entries a
row and about 24% positive labels. The labels come from a planted logistic model.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.files import write_file
from mpisim.problems.loss_kernels import sigmoid

GROUPS = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)  # 123 features
POSITIVE = 0.24
MISSING = 0.01
_PRESENT, _WEIGHTS, _LABELS, _GROUP = range(4)  # purposes; the groups follow


def sample_text(rows: int = 1600, seed: int = 0) -> str:
    """LibSVM text, the same on every machine: labels +1 and -1, entries INDEX:1."""
    edges = np.cumsum((0, *GROUPS))
    groups = enumerate(pairwise(edges.tolist()))
    columns = np.stack([_categories(rows, a, b, g, seed) for g, (a, b) in groups], axis=1)
    present = uniforms(_PRESENT, (rows, len(edges) - 1), seed) >= MISSING
    present[:, 0] = True
    weights = 3.0 * uniforms(_WEIGHTS, (edges[-1],), seed) - 1.5
    margins = np.where(present, weights[columns], 0.0).sum(axis=1)
    chances = sigmoid(margins + _intercept(margins))
    labels = uniforms(_LABELS, (rows,), seed) < chances
    lines = []
    for label, row, keep in zip(labels, columns, present, strict=True):
        entries = " ".join(f"{j + 1}:1" for j in row[keep])
        lines.append(f"{'+1' if label else '-1'} {entries}\n")
    return "".join(lines)


def write_sample(path: Path | str, rows: int = 1600) -> None:
    """Write `sample_text` to ``path``, whole or not at all; `InputError` if that fails."""
    write_file(Path(path), sample_text(rows).encode(), InputError, shared=True)


def _categories(rows: int, start: int, stop: int, group: int, seed: int) -> np.ndarray:
    """A column of start, ..., stop - 1 for each row, the k-th with probability ~ 1 / k."""
    weights = 1.0 / np.arange(1, stop - start + 1)
    limits = np.cumsum(weights / weights.sum())[:-1]
    draws = uniforms(_GROUP + group, (rows,), seed)
    return start + np.searchsorted(limits, draws, side="right")


def uniforms(purpose: int, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Uniform numbers in [0, 1), independent for each ``purpose``, the same in every version.

    NumPy never changes raw Philox words, but may change what it makes of them. The streams of runs
    may change too.
    """
    words = np.random.Philox(key=np.array([seed, purpose], np.uint64)).random_raw(prod(shape))
    return (words >> np.uint64(11)).reshape(shape) * 2.0**-53


def _intercept(margins: np.ndarray) -> float:
    """The shift that makes the mean probability POSITIVE, by bisection."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        below = sigmoid(margins + middle).mean() < POSITIVE
        low, high = (middle, high) if below else (low, middle)
    return low


# Ten strokes through random places stand for the digits. An image is one of them, moved a little
# and drawn with a soft pen. As in MNIST, about a fifth of the pixels are above 0, and a few dozen
# principal components explain most of the variance.
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
