"""Each worker's rows of a prepared data set: the split, then the bias column."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.problems.data import arrange
from mpisim.problems.data.libsvm import Table
from mpisim.problems.data.prepared import Prepared


@dataclasses.dataclass(frozen=True)
class Shards(Table):
    """The rows of a block of m consecutive workers; ``features`` counts the bias.

    starts, stops : worker i of the block has rows starts[i] to stops[i] - 1, which overlap if
        homogeneous; shape (m,), int64
    name, sha256 : the data set and the sha256 of its uncompressed content
    """

    starts: np.ndarray
    stops: np.ndarray
    name: str
    sha256: str


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
    if options.bias:
        block = arrange.add_bias(block)
    return Shards(
        block.data, block.indices, block.indptr, block.labels, prepared.features,
        starts - low, stops - low, options.data, prepared.sha256,
    )  # fmt: skip
