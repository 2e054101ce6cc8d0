"""Splits by label: workers whose samples have unlike shares of the labels, each of as many samples.

"dirichlet" is that of Hsu, Qi and Brown, 2019; "pathological" that of FedAvg's paper.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numba import njit

from mpisim.core.rng import Streams
from mpisim.core.schema import require

BY_LABEL = "dirichlet", "pathological"
PIECES = 2  # in FedAvg's paper


def require_split(split: str, alpha: float | None, pieces: int | None, classes: bool) -> None:
    """`InputError` unless the keys ``alpha`` and ``pieces`` fit the split, and it the labels."""
    allowed = "a split that is not by label: labels are real numbers"
    require(classes or split not in BY_LABEL, "problem.split", split, allowed)
    if split == "dirichlet":
        allowed = 'a finite number > 0 with split = "dirichlet"'
        require(alpha is not None and 0 < alpha < inf, "problem.alpha", alpha, allowed)
    else:
        require(alpha is None, "problem.alpha", alpha, 'absent without split = "dirichlet"')
    allowed = 'absent without split = "pathological"'
    require(pieces is None or split == "pathological", "problem.pieces", pieces, allowed)
    require(pieces is None or pieces >= 1, "problem.pieces", pieces, "an integer >= 1")


def label_order(
    labels: np.ndarray,
    split: str,
    sizes: np.ndarray,
    alpha: float | None,
    pieces: int | None,
    seed: int,
) -> np.ndarray:
    """The rows in the order in which workers take them, then those left over, shape (N,), int64.

    labels : (N,); sizes : samples of each worker, (n,)
    """
    values, label = np.unique(labels, return_inverse=True)
    shuffled = Streams(seed).generator("data/shuffle").permutation(len(labels))
    by_label = shuffled[np.argsort(label[shuffled], kind="stable")]
    if split == "pathological":
        return _pieces(by_label, sizes, pieces or PIECES, seed)
    counts = np.bincount(label, minlength=len(values))
    draws = Streams(seed).raw("data/dirichlet", 0, 0, len(sizes), int(sizes.max()))
    uniforms = (draws >> np.uint64(11)) * 2.0**-53
    turns = Streams(seed).generator("data/turns").permutation(len(sizes))
    weights = float(alpha or 0) * counts / len(labels)
    drawn = _urns(uniforms, sizes, turns, counts.copy(), weights)
    rows, starts = np.empty(len(drawn), np.int64), np.cumsum(counts) - counts
    taken = np.bincount(drawn, minlength=len(values))
    for c, start in enumerate(starts):
        rows[drawn == c] = by_label[start : start + taken[c]]
    rest = [by_label[s + t : s + k] for s, t, k in zip(starts, taken, counts, strict=True)]
    return np.concatenate([rows, *rest])


def _pieces(by_label: np.ndarray, sizes: np.ndarray, pieces: int, seed: int) -> np.ndarray:
    """Each worker takes so many ``pieces`` of the sorted rows at random, then what it lacks."""
    n, size = len(sizes), int(sizes.min()) // pieces
    allowed = f"at most {sizes.min()}, the samples of a worker"
    require(size > 0, "problem.pieces", pieces, allowed)
    cut = n * pieces * size
    deal = Streams(seed).generator("data/pieces").permutation(n * pieces).reshape(n, pieces)
    dealt = by_label[:cut].reshape(-1, size)[deal].reshape(n, -1)
    lacking = sizes - dealt.shape[1]
    ends = cut + np.cumsum(lacking)
    more = (by_label[end - k : end] for end, k in zip(ends, lacking, strict=True))
    rows = [part for pair in zip(dealt, more, strict=True) for part in pair]
    return np.concatenate([*rows, by_label[ends[-1] :]])


@njit(cache=True)
def _urns(uniforms, sizes, turns, left, weights):
    """The label of each sample, worker after worker; ``left``: rows of each label, is used up.

    Labels of a worker whose shares are drawn from Dir(weights) come from a Polya urn: label c with
    a probability proportional to weights[c] plus the number of c drawn so far. Workers draw one
    after the other, as ``turns`` says; only labels of which rows are left are in the urns.
    """
    n, kinds = sizes.size, weights.size
    starts = np.cumsum(sizes) - sizes
    counts = np.zeros((n, kinds))
    out = np.empty(sizes.sum(), np.int64)
    for i in turns:
        for t in range(sizes[i]):
            total = 0.0
            for c in range(kinds):
                if left[c] > 0:
                    total += weights[c] + counts[i, c]
            mark, drawn = uniforms[i, t] * total, -1
            for c in range(kinds):
                if left[c] > 0 and (drawn < 0 or mark >= 0):
                    mark -= weights[c] + counts[i, c]
                    drawn = c
            out[starts[i] + t] = drawn
            counts[i, drawn] += 1
            left[drawn] -= 1
    return out
