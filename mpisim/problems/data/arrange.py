"""Labels, scale, order and split of samples, each a pure function."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.rng import Streams
from mpisim.core.schema import require
from mpisim.problems.data.libsvm import Table

Split = Literal["contiguous", "shuffled", "sorted-by-norm", "homogeneous"]
Remainder = Literal["drop", "spread"]
Scale = Literal["none", "row-max-abs", "feature-max-abs"]


def binary_labels(labels: np.ndarray, source: str) -> np.ndarray:
    """Map two distinct labels to -1 (the smaller) and +1, shape (rows,), float64.

    Raises `InputError` unless there are exactly two.
    """
    values = np.unique(labels)
    if len(values) != 2:
        shown = ", ".join(f"{v:g}" for v in values[:4]) + (", ..." if len(values) > 4 else "")
        raise InputError(
            f"{source}: {len(values)} distinct label{'s' * (len(values) != 1)} ({shown}); allowed"
            " for classification: exactly two"
        )
    return np.where(labels == values[1], 1.0, -1.0)


def scale_rows(table: Table, scale: str) -> Table:
    """Divide every entry by the largest |entry| of its row or column, unless that is 0."""
    if scale == "none":
        return table
    rows = row_numbers(table)
    groups = rows if scale == "row-max-abs" else table.indices
    largest = np.zeros(table.rows if scale == "row-max-abs" else table.features)
    np.maximum.at(largest, groups, np.abs(table.data))
    largest[largest == 0.0] = 1.0
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


def order_rows(table: Table, split: str, seed: int) -> Table:
    """The rows in the order in which ``split`` assigns them to workers."""
    if split == "shuffled":
        order = shuffle(table.rows, seed)
    elif split == "sorted-by-norm":
        order = np.argsort(row_norms(table), kind="stable")
    else:
        return table
    lengths = np.diff(table.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    # Entry k of the new row i was entry k of the old row order[i].
    entries = np.arange(indptr[-1]) + np.repeat(table.indptr[order] - indptr[:-1], lengths)
    return Table(
        table.data[entries], table.indices[entries], indptr, table.labels[order], table.features
    )


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
