"""The binary cache: parsed, scaled and ordered rows as CSR in HDF5, and digests of source files.

Every file appears at once and whole (temporary file in the same folder, fsync, os.replace) and is
never changed afterwards, so any number of ranks and jobs may start together: each may parse, the
last replace wins, nobody waits. Checksums on data and metadata tell a damaged file, which counts
as absent. The folder may be deleted at any time; where it cannot be written, all is done without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np

from mpisim.problems.data.content import read_content, sha256
from mpisim.problems.data.libsvm import Table

FORMAT = 1
_ARRAYS = {"data": np.float64, "indices": np.int32, "indptr": np.int64, "labels": np.float64}
_CHUNK = 1 << 16


class Damaged(Exception):
    """A cache file that is absent or cannot be trusted."""


def folder() -> Path:
    """$MPISIM_CACHE, else $XDG_CACHE_HOME/mpisim, else ~/.cache/mpisim."""
    if os.environ.get("MPISIM_CACHE"):
        return Path(os.environ["MPISIM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path(os.path.expanduser("~")) / ".cache") / "mpisim"


def digest(path: Path) -> tuple[str, bytes | None]:
    """sha256 of the uncompressed content of ``path``, and the content if it had to be read.

    Remembered under (path, size, mtime in ns), so that a large file is hashed once.
    """
    try:
        stat = path.stat()
    except OSError:
        content = read_content(path)  # the error, as one line
        return sha256(content), content
    stamp = json.dumps([str(path.resolve()), stat.st_size, stat.st_mtime_ns])
    memo = folder() / f"digest-{hashlib.sha256(stamp.encode()).hexdigest()[:32]}"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        known = memo.read_text(encoding="ascii").strip()
        if re.fullmatch("[0-9a-f]{64}", known):
            return known, None
    content = read_content(path)
    found = sha256(content)
    _write_whole(memo, lambda temporary: _write_text(temporary, found))
    return found, content


def entry(source_digest: str, options: Mapping[str, object]) -> Path:
    """The cache file for a source's content under ``options`` (what changes the stored rows)."""
    key = json.dumps([FORMAT, source_digest, sorted(options.items())])
    return folder() / f"rows-{hashlib.sha256(key.encode()).hexdigest()[:40]}.h5"


def store(path: Path, table: Table) -> bool:
    """Write a table whole; False, and nothing left behind, where that is not possible."""
    return _write_whole(path, lambda temporary: _write_table(temporary, table))


def shape(path: Path) -> tuple[int, int, int]:
    """Rows, features and nnz of a stored table; `Damaged` where it is absent or broken."""
    return _with_file(path, _shape)


def read_rows(path: Path, start: int, stop: int) -> Table:
    """Rows start to stop - 1 of a stored table, and only those; `Damaged` where it is broken."""
    return _with_file(path, lambda file: _rows(file, start, stop))


def _with_file(path: Path, read: Callable):
    try:
        # Files here are complete and never change: no lock needed, and network folders have none.
        with h5py.File(path, "r", locking=False) as file:
            return read(file)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise Damaged(f"{path}: {error}") from None


def _shape(file: h5py.File) -> tuple[int, int, int]:
    rows, features, nnz = (int(file.attrs[k]) for k in ("rows", "features", "nnz"))
    lengths = {"data": nnz, "indices": nnz, "indptr": rows + 1, "labels": rows}
    for name, dtype in _ARRAYS.items():
        if file[name].shape != (lengths[name],) or file[name].dtype != dtype:
            raise ValueError(f"{name} is not as the attributes say")
    return rows, features, nnz


def _rows(file: h5py.File, start: int, stop: int) -> Table:
    rows, features, nnz = _shape(file)
    if not 0 <= start <= stop <= rows:
        raise ValueError(f"rows {start} to {stop} of {rows}")
    indptr = file["indptr"][start : stop + 1]
    first, last = int(indptr[0]), int(indptr[-1])
    data, indices = file["data"][first:last], file["indices"][first:last]
    # Compiled loops trust these without looking.
    if first < 0 or last > nnz or (np.diff(indptr) < 0).any():
        raise ValueError("indptr does not ascend")
    if len(indices) and not (indices.min() >= 0 and indices.max() < features):
        raise ValueError("indices out of range")
    return Table(data, indices, indptr - first, file["labels"][start:stop], features)


def _write_table(path: Path, table: Table) -> None:
    # "v110" puts checksums on metadata, fletcher32 on values.
    with h5py.File(path, "w", libver="v110", locking=False) as file:
        for name, dtype in _ARRAYS.items():
            values = getattr(table, name)
            options = {"chunks": (min(_CHUNK, len(values)),), "fletcher32": True}
            file.create_dataset(name, data=values, dtype=dtype, **(options if len(values) else {}))
        file.attrs.update(rows=table.rows, features=table.features, nnz=len(table.data))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="ascii")


def _write_whole(path: Path, write: Callable[[Path], None]) -> bool:
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
        return True
    except (OSError, RuntimeError):  # h5py reports a full disk as either
        return False
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
