"""The binary cache: parsed, scaled and ordered rows as CSR in HDF5.

Every file appears at once and whole (`mpisim.core.files`) and never changes afterwards. So
any number of ranks and jobs may start together without waiting: each may parse, and the last file
written wins. Checksums on data and metadata reveal a damaged file, which counts as missing. The
folder may be deleted at any time; if it cannot be written, mpisim does without it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import h5py
import numpy as np

from mpisim.core.files import image, try_write
from mpisim.core.home import cache_folder
from mpisim.problems.data.content import sha256
from mpisim.problems.data.libsvm import Table

FORMAT = 4
_ARRAYS = {"data": np.float64, "indices": np.int32, "indptr": np.int64, "labels": np.float64}
_CHUNK = 1 << 16
SETTLED_SECONDS = 2.0  # the coarsest time stamps of file systems


class Damaged(Exception):
    """A cache file is missing or cannot be trusted."""


def entry(path: Path, options: Mapping[str, object]) -> Path | None:
    """The cache file for the rows of ``path``; ``options`` are those that change them.

    It counts only for the very file it was made of, unchanged since. None for a file that has just
    been changed, as another change might leave the same times, or one that cannot be looked at.
    """
    try:
        stat = path.stat()
    except OSError:
        return None
    if time.time() - stat.st_ctime <= SETTLED_SECONDS:
        return None
    what = [stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    key = json.dumps([FORMAT, str(path.resolve()), *what, sorted(options.items())])
    return cache_folder() / f"rows-{sha256(key.encode(errors='surrogateescape'))[:40]}.h5"


def store(path: Path, table: Table, source: str) -> bool:
    """Write a table, made of a content with the sha256 ``source``, whole; False if impossible."""
    return try_write(path, image(lambda file: _fill(file, table, source), oldest="v110"))


def shape(path: Path) -> tuple[int, int, int, str]:
    """Rows, features and nnz of a stored table, and the sha256 of its source; or `Damaged`."""
    with _opened(path) as file:
        return *_shape(file), str(file.attrs["source"])


def read_rows(path: Path, start: int, stop: int) -> Table:
    """Rows start to stop - 1 of a stored table, and no others; `Damaged` if it is broken."""
    with _opened(path) as file:
        rows, features, nnz = _shape(file)
        if not 0 <= start <= stop <= rows:
            raise ValueError(f"rows {start} to {stop} of {rows}")
        indptr = file["indptr"][start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        data, indices = file["data"][first:last], file["indices"][first:last]
        # Compiled loops do not check these.
        if first < 0 or last > nnz or (np.diff(indptr) < 0).any():
            raise ValueError("indptr does not ascend")
        if len(indices) and not (indices.min() >= 0 and indices.max() < features):
            raise ValueError("indices out of range")
        return Table(data, indices, indptr - first, file["labels"][start:stop], features)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    try:
        # Cache files never change, so they need no lock, which network folders may not have.
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise Damaged(f"{path}: {error}") from None


def _shape(file: h5py.File) -> tuple[int, int, int]:
    rows, features, nnz = (int(file.attrs[k]) for k in ("rows", "features", "nnz"))
    lengths = {"data": nnz, "indices": nnz, "indptr": rows + 1, "labels": rows}
    for name, dtype in _ARRAYS.items():
        if file[name].shape != (lengths[name],) or file[name].dtype != dtype:
            raise ValueError(f"{name} does not agree with the attributes")
    return rows, features, nnz


def _fill(file: h5py.File, table: Table, source: str) -> None:
    for name, dtype in _ARRAYS.items():
        values = getattr(table, name)
        options = {"chunks": (min(_CHUNK, len(values)),), "fletcher32": True}
        file.create_dataset(name, data=values, dtype=dtype, **(options if len(values) else {}))
    attributes = {"rows": table.rows, "features": table.features, "nnz": len(table.data)}
    file.attrs.update(attributes, source=source)
