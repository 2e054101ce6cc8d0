"""From the name of a data set to each worker's rows.

The steps, in this order: labels; scale; order; split, dropping from the end of that order; bias
column. The first three are done once and cached; then every rank reads its own workers' rows.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.problems.data import arrange, cache, libsvm, registry
from mpisim.problems.data.content import read_content, sha256
from mpisim.problems.data.find import find
from mpisim.problems.data.labels import binary_labels
from mpisim.problems.data.libsvm import Table

LABELS = ("binary", "real")


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """What decides every worker's rows.

    Attributes
    ----------
    data : str
        A path to a LibSVM file, or a name (see `mpisim.problems.data.find`).
    workers : int
        n, in all ranks together.
    split : str
        contiguous, shuffled, sorted-by-norm, or homogeneous (every worker has all rows).
    remainder : str
        drop or spread: the N mod n rows left over.
    bias : bool
        A constant feature 1 in column 0.
    scale : str
        none, row-max-abs or feature-max-abs.
    seed : int
        Of the shuffle.
    labels : str
        binary (to -1 and +1) or real (as they are).
    features : int or None
        Columns, where that is more than the file's largest index; without the bias.
    """

    data: str
    workers: int
    split: str = "contiguous"
    remainder: str = "drop"
    bias: bool = False
    scale: str = "none"
    seed: int = 0
    labels: str = "binary"
    features: int | None = None


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A data set that is ready to be read by rows.

    Attributes
    ----------
    name : str
        As the options call it.
    source : Path
        The file.
    sha256 : str
        Of its uncompressed content.
    rows, features, nnz : int
        Of the whole set before the split; ``features`` counts the bias column, ``nnz`` does not.
    registered : str or None
        The registered set with this very content, if there is one.
    cache : Path or None
        The cache file, or None where the cache folder cannot be written: then ``table`` holds
        the rows.
    """

    name: str
    source: Path
    sha256: str
    rows: int
    features: int
    nnz: int
    registered: str | None
    cache: Path | None
    table: Table | None


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
        Worker i of the block has the rows starts[i] to stops[i] - 1. They overlap if homogeneous.
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


def prepare(options: DataOptions) -> Prepared:
    """Find, parse (or find in the cache), scale and order a data set; `InputError` on bad input."""
    _check(options)
    source = find(options.data)
    digest, content = cache.digest(source)
    entry = cache.entry(digest, _cached(options))
    table, kept = None, True
    try:
        rows, largest, nnz = cache.shape(entry)
    except cache.Damaged:
        table = _arrange(read_content(source) if content is None else content, source, options)
        rows, largest, nnz = table.rows, table.features, len(table.data)
        kept = cache.store(entry, table)
    known = registry.by_digest(digest)
    features = _features(options, largest, registry.lookup(options.data) or known, source)
    arrange.row_ranges(rows, options.workers, options.split, options.remainder)  # enough rows?
    return Prepared(
        name=options.data,
        source=source,
        sha256=digest,
        rows=rows,
        features=features + options.bias,
        nnz=nnz,
        registered=known.name if known else None,
        cache=entry if kept else None,
        table=None if kept else table,
    )


def load_shards(prepared: Prepared, options: DataOptions, first: int, count: int) -> Shards:
    """The rows of workers first, ..., first + count - 1, and only those.

    ``prepared`` is what `prepare` gave for the same options. ``count = 0`` (a dedicated server)
    gives empty arrays. A cache file damaged meanwhile is made anew.
    """
    if not 0 <= first <= first + count <= options.workers:
        raise ValueError(f"workers {first} to {first + count} of {options.workers}")
    starts, stops = arrange.row_ranges(
        prepared.rows, options.workers, options.split, options.remainder
    )
    starts, stops = starts[first : first + count], stops[first : first + count]
    low, high = (int(starts[0]), int(stops[-1])) if count else (0, 0)
    block = _block(prepared, options, low, high)
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
        name=prepared.name,
        sha256=prepared.sha256,
        total_rows=prepared.rows,
    )


def _block(prepared: Prepared, options: DataOptions, low: int, high: int) -> Table:
    """Rows low to high - 1 in the cached order."""
    table = prepared.table
    if prepared.cache is not None:
        try:
            return cache.read_rows(prepared.cache, low, high)
        except cache.Damaged:
            content = read_content(prepared.source)
            if sha256(content) != prepared.sha256:
                raise InputError(
                    f"{prepared.source}: changed while it was in use; allowed: the content with"
                    f" sha256 {prepared.sha256}"
                ) from None
            table = _arrange(content, prepared.source, options)
            cache.store(prepared.cache, table)
    assert table is not None
    entries = slice(table.indptr[low], table.indptr[high])
    return Table(
        data=table.data[entries].copy(),
        indices=table.indices[entries].copy(),
        indptr=table.indptr[low : high + 1] - table.indptr[low],
        labels=table.labels[low:high].copy(),
        features=table.features,
    )


def _arrange(content: bytes, source: Path, options: DataOptions) -> Table:
    table = libsvm.parse(content, str(source))
    if options.labels == "binary":
        table = dataclasses.replace(table, labels=binary_labels(table.labels, str(source)))
    table = arrange.scale_rows(table, options.scale)
    return arrange.order_rows(table, options.split, options.seed)


def _cached(options: DataOptions) -> dict[str, object]:
    """What changes the cached rows: not the number of workers, nor the bias."""
    order = options.split if options.split in ("shuffled", "sorted-by-norm") else "file"
    # The beginning of the shuffle tells it better than the seed: other versions of NumPy, or of
    # the streams, may shuffle otherwise.
    mark = arrange.shuffle(64, options.seed).tolist() if order == "shuffled" else None
    key = {"seed": options.seed if mark else None, "mark": mark}
    return {"labels": options.labels, "scale": options.scale, "order": order} | key


def _features(
    options: DataOptions, largest: int, dataset: registry.Dataset | None, source: Path
) -> int:
    """Columns without the bias: as asked for, else as registered; never below the file's."""
    if options.features is not None:
        require(
            options.features >= largest,
            "problem.features",
            options.features,
            f"at least {largest}, the largest index in {source}",
        )
        return options.features
    return max(largest, dataset.features if dataset else 0, 1)


def _check(options: DataOptions) -> None:
    for key, allowed in (
        ("split", arrange.SPLITS),
        ("remainder", arrange.REMAINDERS),
        ("scale", arrange.SCALES),
        ("labels", LABELS),
    ):
        value = getattr(options, key)
        require(value in allowed, f"problem.{key}", value, " or ".join(allowed))
    require(options.workers >= 1, "problem.workers", options.workers, "at least 1")
