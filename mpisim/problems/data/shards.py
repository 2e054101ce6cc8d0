"""Each worker's rows of a prepared data set: the split, then the bias column."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.problems.data import arrange
from mpisim.problems.data.prepared import Prepared


@dataclasses.dataclass
class Shards:
    """The rows of a block of m consecutive workers, in compressed sparse rows.

    Attributes
    ----------
    data : array, shape (nnz,), float64
    indices : array, shape (nnz,), int32
        0-based columns, ascending in each row.
    indptr : array, shape (rows + 1,), int64
    labels : array, shape (rows,), float64
    starts, stops : arrays, shape (m,), int64
        Worker i of the block has rows starts[i] to stops[i] - 1. They overlap if homogeneous.
    d : int
        Columns, the bias included.
    name, sha256 : str
        The data set and the sha256 of its uncompressed content.
    total_rows : int
        N, the rows of the whole data set before the split.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    d: int
    name: str
    sha256: str
    total_rows: int


def load_shards(prepared: Prepared, first: int, count: int) -> Shards:
    """Read the rows of workers first, ..., first + count - 1, and no others.

    ``count = 0`` (a dedicated server) gives empty arrays.
    """
    options = prepared.options
    if not 0 <= first <= first + count <= options.workers:
        raise ValueError(f"workers {first} to {first + count} of {options.workers}")
    starts, stops = (ends[first : first + count] for ends in prepared.ranges())
    low, high = (int(starts[0]), int(stops[-1])) if count else (0, 0)
    block = prepared.read(low, high)
    data, indices, indptr = block.data, block.indices, block.indptr
    if options.bias:
        data, indices, indptr = arrange.add_bias(data, indices, indptr)
    return Shards(
        data=data,
        indices=indices,
        indptr=indptr,
        labels=block.labels,
        starts=starts - low,
        stops=stops - low,
        d=prepared.features,
        name=options.data,
        sha256=prepared.sha256,
        total_rows=prepared.rows,
    )
