"""Labels, scale, order and split of samples, each a pure function.

`row_ranges` splits rows; `split_images` splits images with a homogeneity p-hat (PermK paper,
Appendix A.5).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.core.schema import require
from mpisim.problems.data.libsvm import Table

Split = Literal[
    "contiguous", "shuffled", "sorted-by-norm", "homogeneous", "dirichlet", "pathological",
    "partly-shuffled", "natural",
]  # fmt: skip
Remainder = Literal["drop", "spread"]
Scale = Literal["none", "row-max-abs", "feature-max-abs"]
Mix = Literal["workers", "samples"]
COMMON = 0  # the part D_0


def binary_labels(labels: np.ndarray, source: str) -> np.ndarray:
    """Map two distinct labels to -1 (the smaller) and +1, shape (rows,), float64.

    Raises `InputError` unless there are exactly two.
    """
    values = np.unique(labels)
    if len(values) != 2:
        label = "label" + "s" * (len(values) != 1)
        line = f"{source}: {len(values)} distinct {label} ({shown(values)});"
        hint = "; problem.label names the column of the labels" if ".csv" in source.lower() else ""
        raise InputError(f"{line} allowed for classification: exactly two{hint}")
    return np.where(labels == values[1], 1.0, -1.0)


def shown(labels: np.ndarray) -> str:
    """The first four, as text."""
    return ", ".join(f"{label:g}" for label in labels[:4]) + ", ..." * (len(labels) > 4)


def scale_rows(table: Table, scale: str, training: Table | None = None) -> Table:
    """Divide every entry by the largest |entry| of its row or column, unless that is 0.

    training : whose columns count, where ``table`` is a test set
    """
    if scale == "none":
        return table
    by_row = scale == "row-max-abs"
    by = table if by_row or training is None else training
    largest = np.zeros(table.rows if by_row else max(table.features, by.features))
    np.maximum.at(largest, row_numbers(by) if by_row else by.indices, np.abs(by.data))
    largest[largest == 0.0] = 1.0
    groups = row_numbers(table) if by_row else table.indices
    return dataclasses.replace(table, data=table.data / largest[groups])


def row_norms(table: Table) -> np.ndarray:
    """Euclidean norm of each row, shape (rows,).

    bincount adds entry by entry, so the last bits, and the order that they decide, are the same
    on every machine.
    """
    return np.sqrt(np.bincount(row_numbers(table), table.data**2, minlength=table.rows))


def row_numbers(table: Table) -> np.ndarray:
    """The row of every stored entry, shape (nnz,)."""
    return np.repeat(np.arange(table.rows), np.diff(table.indptr))


def reordered(table: Table, order: np.ndarray) -> Table:
    """The rows with the numbers ``order``, in this order."""
    entries, indptr = stretches(table.indptr[order], np.diff(table.indptr)[order])
    return Table(
        table.data[entries], table.indices[entries], indptr, table.labels[order], table.features
    )


def stretches(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """starts[i], ..., starts[i] + sizes[i] - 1 for all i, and the bounds of each i; int64."""
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], sizes), bounds


def shuffle(rows: int, seed: int) -> np.ndarray:
    """The order of ``split = "shuffled"``, shape (rows,)."""
    return Streams(seed).generator("data/shuffle").permutation(rows)


def row_ranges(
    rows: int, workers: int, split: str, remainder: str
) -> tuple[np.ndarray, np.ndarray]:
    """The first row of every worker and the one after its last, each shape (workers,), int64.

    Contiguous blocks of floor(N / n) rows. The N mod n rows left over are dropped from the end
    ("drop"), or the first N mod n workers get one more each ("spread"). With "homogeneous" every
    worker has all rows, so f_i = f. `InputError` if there are fewer rows than workers.
    """
    if split == "homogeneous":
        return np.zeros(workers, np.int64), np.full(workers, rows, np.int64)
    allowed = f"at most {rows}, the rows of the data set"
    require(workers <= rows, "problem.workers", workers, allowed)
    size, left = divmod(rows, workers)
    sizes = np.full(workers, size, np.int64)
    if remainder == "spread":
        sizes[:left] += 1
    stops = np.cumsum(sizes)
    return stops - sizes, stops


def add_bias(table: Table) -> Table:
    """The same rows after a constant feature 1 in column 0."""
    starts = table.indptr[:-1]
    return dataclasses.replace(
        table,
        data=np.insert(table.data, starts, 1.0),
        indices=np.insert(table.indices + 1, starts, 0),
        indptr=table.indptr + np.arange(table.rows + 1),
        features=table.features + 1,
    )


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
        places, bounds = stretches(self.bounds[workers], self.sizes[workers])
        return self.images[places], bounds


def split_images(count: int, used: int, n: int, p: float, mix: Mix, seed: int) -> ImageSplit:
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
    places, bounds = stretches(starts[parts], sizes[parts])
    worker = np.repeat(np.arange(n), sizes[parts])
    within = places - starts[parts][worker]
    if mix == "samples":
        replaced = (draw.uniforms(int(sizes[0])) < p)[worker, within]
        places[replaced] = within[replaced]
    same_size = sizes[parts] == sizes[COMMON]
    same = np.bincount(worker, places == within, n)
    return ImageSplit(order[places], bounds, same_size & (same == sizes[parts]))
