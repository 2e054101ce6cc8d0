"""Rows of samples as LibSVM text, CSV, arrays of NumPy (.npz), parquet, and arrays in memory.

`to_libsvm` writes LibSVM text from CSV, and from LibSVM text whose indices begin with 0.
"""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.core.errors import InputError, library
from mpisim.core.files import write_file
from mpisim.core.schema import require
from mpisim.problems.data import libsvm
from mpisim.problems.data.content import DAMAGED, read_content, require_content, sha256
from mpisim.problems.data.libsvm import Table

Column = str | int  # its name, or its number from 1
GAPS = {"", "?", "na", "n/a", "#n/a", "<na>", "null", "none"}  # cells without a number
NO_NUMBER = re.compile("string|binary|date|time|duration")  # types of a column of parquet
PACKED = re.compile(r"\.(gz|bz2|xz)$")
PARTS = "data", "indices", "indptr", "shape"  # of sparse rows, as SciPy's save_npz names them


def parse(content: bytes, source: str, label: Column | None = None) -> Table:
    """The table in a file's uncompressed content; `InputError` if it is not one.

    .npz and parquet are known by their first bytes, CSV by the name ``source``; the rest is LibSVM.

    label : the column of the labels in CSV and parquet; the first one unless given
    """
    parquet = content[:4] == content[-4:] == b"PAR1"
    if parquet or PACKED.sub("", source.lower()).endswith(".csv"):
        names, values = (_of_parquet if parquet else read_csv)(content, source)
        place = _place(label, names, values.shape[1], source)
        return table_of(np.delete(values, place, axis=1), values[:, place], source)
    allowed = f"absent: {source} is neither CSV nor parquet"
    require(label is None, "problem.label", label, allowed)
    npz = content.startswith(b"PK\x03\x04")
    return _of_npz(content, source) if npz else libsvm.parse(content, source)


def table_of(x: Any, y: Any, source: str) -> Table:
    """The table of features x (N, d), dense or sparse as in SciPy, and labels y (N,)."""
    from scipy.sparse import csr_array

    try:
        rows = csr_array(x, dtype=np.float64)
        labels = np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {error}; allowed: x (N, d) and y (N,), numbers") from None
    good = rows.ndim == 2 and min(rows.shape) and rows.shape[1] <= libsvm.LARGEST_INDEX
    if not good or labels.shape != rows.shape[:1]:
        allowed = f"x (N, d) and y (N,), N at least 1, d from 1 to {libsvm.LARGEST_INDEX}"
        raise InputError(f"{source}: x {rows.shape} and y {labels.shape}; allowed: {allowed}")
    rows.sum_duplicates()
    if not (np.isfinite(rows.data).all() and np.isfinite(labels).all()):
        raise InputError(f"{source}: a number is missing or not finite; allowed: finite numbers")
    indptr = rows.indptr.astype(np.int64)
    return Table(rows.data, rows.indices.astype(np.int32), indptr, labels, rows.shape[1])


def save_arrays(x: Any, y: Any) -> str:
    """Write arrays as .npz to datasets/ in the current folder; the path, which has their digest.

    The same arrays give the same bytes. `InputError` for other shapes, and if it cannot be written.
    """
    table = table_of(x, y, "arrays")
    shape = np.array([table.rows, table.features])
    arrays = {"data": table.data, "indices": table.indices, "indptr": table.indptr, "shape": shape}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, array in (arrays | {"y": table.labels}).items():
            # with a date of its own: that of today would change the digest
            with file.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    content = out.getvalue()
    path = Path("datasets", f"arrays-{sha256(content)[:16]}.npz")
    if not os.path.exists(path):
        write_file(path, content, InputError, shared=True)
    return str(path)


def read_csv(content: bytes, source: str) -> tuple[list[str], np.ndarray]:
    """Names of the columns, none if the first line is a sample, and the numbers, (N, columns).

    A first line 0, 1, 2, ... is of names: pandas writes it of a frame without any.
    """
    try:
        read = csv.reader(content.decode("utf-8-sig").splitlines())
        lines = [(number, line) for number, line in enumerate(read, 1) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{source}: {error}; allowed: CSV in UTF-8") from None
    names: list[str] = []
    rows: list[list[float]] = []
    if lines and _are_names(lines[0][1], f"{source}:{lines[0][0]}"):
        names = [cell.strip() for cell in lines[0][1]]
    for number, line in lines[bool(names) :]:
        try:
            rows.append([float(cell) for cell in line])
        except ValueError as error:
            raise InputError(f"{source}:{number}: {error}; allowed: numbers") from None
        if len(line) != (width := len(lines[0][1])):
            wanted = f"{width}, as in the first line"
            raise InputError(f"{source}:{number}: {len(line)} cells; allowed: {wanted}")
    if not rows:
        raise InputError(f"{source}: no row of numbers; allowed: CSV with a label and features")
    return names, np.array(rows)


def _are_names(line: list[str], where: str) -> bool:
    """Whether a first line is of names; `InputError` if it may be a sample, too."""
    if line == [str(i) for i in range(len(line))]:
        if len(line) == 2:
            raise InputError(f"{where}: 0,1 may be names or a sample; allowed: names with letters")
        return True
    words = [cell for cell in line if not _is_number(cell)]
    if words and (not line[0].strip() or all(cell.strip().lower() in GAPS for cell in words)):
        allowed = "numbers, or a first line of names (pandas: to_csv(index=False))"
        raise InputError(f"{where}: a cell is missing; allowed: {allowed}")
    return bool(words)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _of_parquet(content: bytes, source: str) -> tuple[list[str], np.ndarray]:
    parquet = library("pyarrow.parquet", "parquet", source)
    try:
        table = parquet.read_table(io.BytesIO(content))
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
        table = table.drop_columns([name for name in table.column_names if name in index])
        for field in table.schema:
            if NO_NUMBER.search(str(field.type)):
                raise TypeError(f"column {field.name} is {field.type}")
        columns = [column.to_numpy().astype(np.float64) for column in table.columns]
        return table.column_names, np.column_stack(columns)
    except (OSError, TypeError, ValueError) as error:
        line = str(error).splitlines()[0]
        raise InputError(f"{source}: {line}; allowed: parquet with columns of numbers") from None


def _of_npz(content: bytes, source: str) -> Table:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            size = sum(part.file_size for part in file.infolist())
        require_content(size, len(content), source)
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name.lower(): file[name] for name in file.files}
    except (*DAMAGED, MemoryError, RuntimeError, zipfile.BadZipFile) as error:
        why = str(error) or "truncated or damaged"
        raise InputError(f"{source}: {why}; allowed: an .npz file of numbers") from None
    sparse = set(PARTS) <= set(arrays)
    if "y" not in arrays or not (sparse or "x" in arrays):
        allowed = f"y, and x (N, d) or {', '.join(PARTS)} of sparse rows"
        raise InputError(f"{source}: has arrays {', '.join(arrays)}; allowed: {allowed}")
    return table_of(_csr(arrays, source) if sparse else arrays["x"], arrays["y"], source)


def _csr(arrays: dict[str, np.ndarray], source: str) -> Any:
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (arrays[name] for name in PARTS)
    try:
        rows = csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        rows.check_format()
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {error}; allowed: the parts of CSR rows") from None
    return rows


def _place(
    label: Column | None, names: list[str], columns: int, source: str, key: str = "problem.label"
) -> int:
    """The column of the labels, from 0; ``key``: who names it."""
    if isinstance(label, str):
        allowed = f"a column of {source}: {', '.join(names) or 'its first line has no names'}"
        require(label in names, key, label, allowed)
        return names.index(label)
    place = 1 if label is None else label
    allowed = f"an integer from 1 to {columns}, the columns of {source}"
    require(1 <= place <= columns, key, label, allowed)
    return place - 1


def to_libsvm(
    source: Path, out: Path, label: int | None = None, zero_based: bool = False
) -> tuple[int, int]:
    """Write ``out`` from ``source``, bit for bit; its rows and features.

    label : the column of the labels in CSV, from 1; the first one unless given
    zero_based : the source is LibSVM with indices from 0, not CSV

    A first line of names is taken as in `read_csv`. `InputError` for what cannot be read, and for a
    place that cannot be written.
    """
    from sklearn.datasets import load_svmlight_file  # takes a second

    content = read_content(source)
    if zero_based:
        require(label is None, "--label", label, "absent with --zero-based")
        try:
            x, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
        except (ValueError, OverflowError) as error:
            raise InputError(f"{source}: {error}; allowed: LABEL INDEX:VALUE ...") from None
    else:
        _, table = read_csv(content, str(source))
        place = _place(label, [], table.shape[1], str(source), "--label")
        x, y = np.delete(table, place, axis=1), table[:, place]
    rows = table_of(x, y, str(source))  # raises if it is not what LibSVM text can hold
    write_file(out, _libsvm_text(rows).encode(), InputError)
    return rows.rows, rows.features


def _libsvm_text(table: Table) -> str:
    """The table as text that `libsvm.parse` reads back, with every bit and all features."""
    parts = table.labels.tolist(), table.data.tolist()
    labels, data = ([repr(v).removesuffix(".0") for v in part] for part in parts)
    entries = [f" {j}:{v}" for j, v in zip((table.indices + 1).tolist(), data, strict=True)]
    ranges = pairwise(table.indptr.tolist())
    rows = [y + "".join(entries[i:k]) for y, (i, k) in zip(labels, ranges, strict=True)]
    if table.features - 1 not in table.indices:
        rows[0] += f" {table.features}:0"
    return "\n".join(rows) + "\n"
