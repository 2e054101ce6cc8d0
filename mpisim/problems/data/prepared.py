"""A whole data set: found, parsed, scaled, put in order, and cached.

The steps, in this order: labels; scale; order. `load_shards` then takes each worker's rows from it:
the split, then the bias column.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.problems.data import arrange, by_label, cache, formats
from mpisim.problems.data.by_label import BY_LABEL, DRAWN, ClientIds, SplitKeys
from mpisim.problems.data.content import read_content, sha256
from mpisim.problems.data.find import Dataset, by_digest, find, registered
from mpisim.problems.data.libsvm import Table

Labels = Literal["binary", "real", "classes"]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """What decides every worker's rows.

    data : a path to a file (see `formats`), or a name (see `mpisim.problems.data.find`)
    workers : n, over all ranks
    split : "homogeneous" gives every worker all rows
    remainder : what becomes of the N mod n rows left over
    bias : add a constant feature 1 in column 0
    seed : of the shuffle
    labels : "binary" maps them to -1 and +1, "classes" to 0, 1, ... of those of the training set,
        when workers' rows are loaded; "real" leaves them as they are
    any_content : take what is found under a registered name, even if it is another content
    split_keys : of the splits that make workers unlike
    label : the column of the labels, see `formats.parse`
    """

    data: str
    workers: int
    split: arrange.Split = "contiguous"
    remainder: arrange.Remainder = "drop"
    bias: bool = False
    scale: arrange.Scale = "none"
    seed: int = 0
    labels: Labels = "binary"
    any_content: bool | None = None
    split_keys: SplitKeys = by_label.NO_KEYS
    label: formats.Column | None = None


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A data set that is ready to be read by rows.

    source : the file
    sha256 : of its uncompressed content
    rows, features, nnz : of the whole set before the split; ``features`` counts the bias column,
        ``nnz`` does not
    cache : the cache file; None if it cannot be written, or the source has just been changed
    table : the rows, if there is no cache file
    classes : the labels of the training set, ascending, where they are classes
    clients : of a natural split
    """

    options: DataOptions
    source: Path
    sha256: str
    rows: int
    features: int
    nnz: int
    cache: Path | None
    table: Table | None
    classes: np.ndarray | None = None
    clients: ClientIds | None = None

    def read(self, start: int, stop: int) -> Table:
        """Rows start to stop - 1, in order; `InputError` if the file has changed meanwhile.

        A cache file that was damaged meanwhile is written again.
        """
        table = self.table
        if self.cache is not None:
            try:
                return cache.read_rows(self.cache, start, stop)
            except cache.Damaged:
                table = self._parse_again()
                cache.store(self.cache, table, self.sha256)
        assert table is not None
        entries = slice(table.indptr[start], table.indptr[stop])
        return dataclasses.replace(
            table,
            data=table.data[entries].copy(),
            indices=table.indices[entries].copy(),
            indptr=table.indptr[start : stop + 1] - table.indptr[start],
            labels=table.labels[start:stop].copy(),
        )

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """See `arrange.row_ranges`."""
        options = self.options
        if self.clients is not None:
            return self.clients.ranges(options.workers)
        return arrange.row_ranges(self.rows, options.workers, options.split, options.remainder)

    def _parse_again(self) -> Table:
        content = read_content(self.source)
        if sha256(content) != self.sha256:
            raise InputError(
                f"{self.source}: changed while it was in use; allowed: the content with"
                f" sha256 {self.sha256}"
            )
        return _arrange(content, self.source, self.options, self.clients)


_sums: dict[Path, str] = {}  # by the cache file of an unchanged source


def sha256_of(data: str, any_content: bool = False) -> str:
    """The sha256 of the content of ``problem.data``; `InputError` where there is none.

    Of a registered set it is that of the registry, where it has one.
    """
    listed = registered(data)
    if listed is not None and not any_content and (text := listed.files[0].sha256):
        return text
    source = find(data)
    entry = cache.entry(source, {})
    if entry is None:
        return sha256(read_content(source))
    if entry not in _sums:
        _sums[entry] = sha256(read_content(source))
    return _sums[entry]


def prepare(options: DataOptions) -> Prepared:
    """Find, parse, scale and order a data set, or find it in the cache; `InputError` on bad input.

    The cache has rows without the bias, for any number of workers.
    """
    source = find(options.data)
    listed = registered(options.data)
    natural = options.split == "natural"
    ids_file = str(options.split_keys.client_ids)
    clients = by_label.read_client_ids(ids_file) if natural else None
    entry, table = cache.entry(source, _cached(options, clients)), None
    try:
        rows, largest, nnz, digest = cache.shape(entry) if entry else (0, 0, 0, "")
    except cache.Damaged:
        digest = ""
    if not digest:
        content = read_content(source)
        digest, table = sha256(content), _arrange(content, source, options, clients)
        rows, largest, nnz = table.rows, table.features, len(table.data)
        unchanged = entry == cache.entry(source, _cached(options, clients))
        if entry and unchanged and cache.store(entry, table, digest):
            table = None
    if listed is not None and not options.any_content:
        _require_registered(listed, source, digest, rows, largest)
    dataset = listed or by_digest(digest)
    prepared = Prepared(
        options=options,
        source=source,
        sha256=digest,
        rows=rows,
        features=max(largest, dataset.features if dataset else 0, 1) + options.bias,
        nnz=nnz,
        cache=entry if table is None else None,
        table=table,
        clients=clients,
    )
    prepared.ranges()  # raises if there are fewer rows than workers
    if options.labels == "classes":
        classes = np.unique(prepared.read(0, rows).labels)
        return dataclasses.replace(prepared, classes=classes)
    return prepared


def prepare_test(training: Prepared, data: str) -> Prepared:
    """The test set ``data``, in its order, with the labels, scale and bias of a training set.

    Both have as many features as the one with more of them. Two classes become 0 and 1.
    """
    options = dataclasses.replace(training.options, workers=1, split="contiguous")
    raw, classes = dataclasses.replace(options, scale="none"), training.classes
    if options.labels == "binary":  # as the file has them: those of the training set count
        options, raw = (dataclasses.replace(one, labels="classes") for one in (options, raw))
        classes = prepare(raw).classes
    if options.scale == "feature-max-abs":
        trained, tests = prepare(raw), prepare(dataclasses.replace(raw, data=data))
        tables = tests.read(0, tests.rows), trained.read(0, trained.rows)
        table = arrange.scale_rows(tables[0], options.scale, tables[1])
        tests = dataclasses.replace(tests, cache=None, table=table)
    else:
        tests = prepare(dataclasses.replace(options, data=data))
    others = tests.classes
    if classes is not None and others is not None and not np.isin(others, classes).all():
        new = arrange.shown(np.setdiff1d(others, classes))
        raise InputError(f"{tests.source}: labels {new} are not among those of {training.source}")
    return dataclasses.replace(tests, classes=classes)


def _require_registered(
    dataset: Dataset, source: Path, digest: str, rows: int, largest: int
) -> None:
    """`InputError` if the file found under a registered name has another content."""
    [file] = dataset.files
    if file.sha256 is None:
        what = f"{rows} rows, largest index {largest}"
        wanted = f"{file.rows} rows and {dataset.features} features"
        right = rows == file.rows and largest <= dataset.features
    else:
        what, wanted, right = f"sha256 {digest}", file.sha256, digest == file.sha256
    if not right:
        raise InputError(
            f"{source}: is not the registered {dataset.name} ({what} instead of {wanted}); allowed:"
            f" `mpisim data fetch {dataset.name}`, another name, or problem.any_content = true"
        )


def _arrange(
    content: bytes, source: Path, options: DataOptions, clients: ClientIds | None
) -> Table:
    table = formats.parse(content, str(source), options.label)
    if options.labels == "binary":
        table = dataclasses.replace(table, labels=arrange.binary_labels(table.labels, str(source)))
    table = arrange.scale_rows(table, options.scale)
    if clients is not None:
        order = clients.order(table.rows)
    elif options.split == "sorted-by-norm":
        order = np.argsort(arrange.row_norms(table), kind="stable")
    elif options.split in DRAWN:
        split, keys, seed = options.split, options.split_keys, options.seed
        starts, stops = arrange.row_ranges(table.rows, options.workers, split, options.remainder)
        order = by_label.label_order(table.labels, split, stops - starts, keys, seed)
    else:
        return table
    return arrange.reordered(table, order)


def _cached(options: DataOptions, clients: ClientIds | None) -> dict[str, object]:
    """The options that change the cached rows."""
    order = options.split if options.split in ("sorted-by-norm", *DRAWN) else "file"
    # Another version of NumPy, or of the streams, may make another permutation from the same seed.
    # So the key also has the beginning of a permutation.
    mark = arrange.shuffle(64, options.seed).tolist() if order in DRAWN else None
    key: dict[str, object] = {"seed": options.seed if mark else None, "mark": mark}
    if order in BY_LABEL:
        key |= {"workers": options.workers, "remainder": options.remainder}
        key |= dataclasses.asdict(options.split_keys)
    key |= {"clients": clients.sha256} if clients is not None else {}
    key |= {"label": options.label} if options.label is not None else {}
    return {"labels": options.labels, "scale": options.scale, "order": order} | key


@dataclasses.dataclass(frozen=True)
class Shards(Table):
    """The rows of a block of m consecutive workers; ``features`` counts the bias.

    starts, stops : worker i of the block has rows starts[i] to stops[i] - 1, which overlap if
        homogeneous; shape (m,), int64
    name, sha256 : the data set and the sha256 of its uncompressed content
    classes : the labels that 0, 1, ... stand for, where they are classes
    """

    starts: np.ndarray
    stops: np.ndarray
    name: str
    sha256: str
    classes: np.ndarray | None = None


def load_shards(prepared: Prepared, first: int, count: int) -> Shards:
    """Read the rows of workers first, ..., first + count - 1, and no others.

    ``count = 0`` (a dedicated server) gives empty arrays.
    """
    options = prepared.options
    if not 0 <= first <= first + count <= options.workers:
        raise ValueError(f"workers {first} to {first + count} of {options.workers}")
    starts, stops = (ends[first : first + count] for ends in prepared.ranges())
    return load_rows(prepared, starts, stops)


def load_part(prepared: Prepared, n: int, first: int, count: int) -> Shards:
    """All rows in n parts, in order and as even as possible; the parts from ``first`` on."""
    ends = prepared.rows * np.arange(first, first + count + 1) // n
    return load_rows(prepared, ends[:-1], ends[1:])


def load_rows(prepared: Prepared, starts: np.ndarray, stops: np.ndarray) -> Shards:
    """Rows starts[i] to stops[i] - 1 for each worker i of a block, and those between them."""
    low, high = (int(starts[0]), int(stops[-1])) if len(starts) else (0, 0)
    block = prepared.read(low, high)
    if prepared.options.bias:
        block = arrange.add_bias(block)
    labels, classes = block.labels, prepared.classes
    return Shards(
        block.data, block.indices, block.indptr,
        labels if classes is None else np.searchsorted(classes, labels), prepared.features,
        starts - low, stops - low, prepared.options.data, prepared.sha256, classes,
    )  # fmt: skip
