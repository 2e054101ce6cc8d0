"""LibSVM files from CSV, and from LibSVM files whose indices begin with 0."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.files import make_folder, write_atomic
from mpisim.problems.data import libsvm
from mpisim.problems.data.content import read_content


def to_libsvm(source: Path, out: Path, label: int = 1, zero_based: bool = False) -> tuple[int, int]:
    """Write ``out`` from ``source``; its rows and features.

    label : the column of the labels in CSV, from 1
    zero_based : the source is LibSVM with indices from 0, not CSV

    A first line of CSV that is not of numbers is taken for names. `InputError` for what cannot be
    read, and for a place that cannot be written.
    """
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file  # takes a second

    content = read_content(source)
    if zero_based:
        try:
            x, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
        except ValueError as error:
            raise InputError(f"{source}: {error}; allowed: LABEL INDEX:VALUE ...") from None
    else:
        table = _numbers(content, source)
        if not 1 <= label <= table.shape[1]:
            allowed = f"an integer from 1 to {table.shape[1]}, the columns of {source}"
            raise InputError(f"--label: {label} is not allowed; it must be {allowed}")
        x, y = np.delete(table, label - 1, axis=1), table[:, label - 1]
    text = io.BytesIO()
    dump_svmlight_file(x, y, text, zero_based=False)
    written = libsvm.parse(text.getvalue(), str(out))
    try:
        make_folder(out.parent)
        write_atomic(out, text.getvalue())
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    return written.rows, written.features


def _numbers(content: bytes, source: Path) -> np.ndarray:
    """The numbers of CSV, shape (rows, columns)."""
    try:
        lines = [line for line in csv.reader(content.decode().splitlines()) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{source}: {error}; allowed: CSV in UTF-8") from None
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append([float(cell) for cell in line])
        except ValueError as error:
            if number > 1:
                raise InputError(f"{source}:{number}: {error}; allowed: numbers") from None
        if rows and len(line) != len(rows[0]):
            wanted = f"{len(rows[0])}, as in the lines before"
            raise InputError(f"{source}:{number}: {len(line)} cells; allowed: {wanted}")
    if not rows:
        raise InputError(f"{source}: no row of numbers; allowed: CSV with a label and features")
    return np.array(rows)
