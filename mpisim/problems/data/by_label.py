"""Splits that make workers unlike: by label, or by the clients whom the rows belong to.

"dirichlet" is that of Hsu, Qi and Brown, 2019; "pathological" that of FedAvg's paper.
"""

from __future__ import annotations

import codecs
import dataclasses
from math import inf
from pathlib import Path

import numpy as np
from numba import njit

from mpisim.core.errors import InputError
from mpisim.core.rng import Streams
from mpisim.core.schema import require
from mpisim.problems.data.arrange import shuffle
from mpisim.problems.data.content import read_content, sha256

BY_LABEL = "dirichlet", "pathological", "partly-shuffled"
DRAWN = "shuffled", *BY_LABEL  # the splits that the seed decides
UNLIKE = *BY_LABEL, "natural"  # the splits with which the log has each worker's shares of labels
PIECES = 2  # in FedAvg's paper


@dataclasses.dataclass(frozen=True)
class SplitKeys:
    """The keys of ``[problem]`` that only one split has.

    alpha : of "dirichlet", and pieces : of "pathological"
    similarity : of "partly-shuffled", the share of a worker's rows that are drawn from all rows
    client_ids : of "natural", a file with a line for each row of the data set: whose it is
    """

    alpha: float | None = None
    pieces: int | None = None
    similarity: float | None = None
    client_ids: str | None = None

    def require(self, split: str, remainder: str, classes: bool) -> None:
        """`InputError` unless the keys fit the split, and the split fits the labels."""
        uses_all = split in ("homogeneous", "natural")
        allowed = f'"drop", as split = "{split}" leaves no row over'
        require(remainder == "drop" or not uses_all, "problem.remainder", remainder, allowed)
        allowed = "a split that is not by label: labels are real numbers"
        require(classes or split not in BY_LABEL, "problem.split", split, allowed)
        alpha, pieces, s, client_ids = self.alpha, self.pieces, self.similarity, self.client_ids
        rules = [
            ("alpha", "dirichlet", alpha is not None and 0 < alpha < inf, "a finite number > 0"),
            ("pieces", "pathological", pieces is None or pieces >= 1, "an integer >= 1"),
            ("similarity", "partly-shuffled", s is not None and 0 <= s <= 1, "from 0 to 1"),
            ("client_ids", "natural", client_ids is not None, "a file"),
        ]
        for key, its_split, allows, what in rules:
            value, path = getattr(self, key), f"problem.{key}"
            if split == its_split:
                require(allows, path, value, f'{what} with split = "{split}"')
            else:
                require(value is None, path, value, f'absent without split = "{its_split}"')


NO_KEYS = SplitKeys()


@dataclasses.dataclass(frozen=True)
class ClientIds:
    """Whose the rows of a data set are.

    client : array, shape (N,), int64
        From 0, in the order in which clients first come.
    sha256 : of the uncompressed content of the file ``source``
    """

    source: str
    client: np.ndarray
    sha256: str

    def order(self, rows: int) -> np.ndarray:
        """The rows, client after client; `InputError` unless there are as many ids as ``rows``."""
        if len(self.client) != rows:
            raise InputError(
                f"{self.source}: {len(self.client)} lines; allowed: {rows}, an id for each row of"
                " the data set"
            )
        return np.argsort(self.client, kind="stable")

    def ranges(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """As `arrange.row_ranges`; `InputError` unless there are n clients."""
        sizes = np.bincount(self.client)
        allowed = f"{len(sizes)}, the clients in {self.source}"
        require(n == len(sizes), "problem.workers", n, allowed)
        stops = np.cumsum(sizes)
        return stops - sizes, stops


def read_client_ids(path: str) -> ClientIds:
    """The ids in a text file (plain, gz, bz2 or xz), one a line; or `InputError`."""
    content = read_content(Path(path).expanduser(), f"problem.client_ids: {path}")
    numbers: dict[bytes, int] = {}
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines()
    client = [numbers.setdefault(line.strip(), len(numbers)) for line in lines]
    return ClientIds(path, np.array(client, np.int64), sha256(content))


def label_order(
    labels: np.ndarray, split: str, sizes: np.ndarray, keys: SplitKeys, seed: int
) -> np.ndarray:
    """The rows in the order in which workers take them, then those left over, shape (N,), int64.

    labels : (N,); split : one of `DRAWN`; sizes : samples of each worker, (n,)
    """
    shuffled = shuffle(len(labels), seed)
    if split == "shuffled":
        return shuffled
    values, label = np.unique(labels, return_inverse=True)
    if split == "partly-shuffled":
        return _partly_shuffled(shuffled, label, sizes, float(keys.similarity or 0))
    by_label = shuffled[np.argsort(label[shuffled], kind="stable")]
    if split == "pathological":
        return _pieces(by_label, sizes, keys.pieces or PIECES, seed)
    counts = np.bincount(label, minlength=len(values))
    draws = Streams(seed).raw("data/dirichlet", 0, 0, len(sizes), int(sizes.max()))
    uniforms = (draws >> np.uint64(11)) * 2.0**-53
    turns = Streams(seed).generator("data/turns").permutation(len(sizes))
    weights = float(keys.alpha or 0) * counts / len(labels)
    drawn = _urns(uniforms, sizes, turns, counts.copy(), weights)
    rows, starts = np.empty(len(drawn), np.int64), np.cumsum(counts) - counts
    taken = np.bincount(drawn, minlength=len(values))
    for c, start in enumerate(starts):
        rows[drawn == c] = by_label[start : start + taken[c]]
    rest = [by_label[s + t : s + k] for s, t, k in zip(starts, taken, counts, strict=True)]
    return np.concatenate([rows, *rest])


def _partly_shuffled(
    shuffled: np.ndarray, label: np.ndarray, sizes: np.ndarray, similarity: float
) -> np.ndarray:
    """Each worker takes a share ``similarity`` of its rows at random, the rest by label."""
    random = np.floor(similarity * sizes + 0.5).astype(np.int64)
    pool, others = np.split(shuffled, [random.sum()])
    others = others[np.argsort(label[others], kind="stable")]
    parts = zip(
        np.split(pool, np.cumsum(random)), np.split(others, np.cumsum(sizes - random)), strict=True
    )
    return np.concatenate([rows for pair in parts for rows in pair])


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
