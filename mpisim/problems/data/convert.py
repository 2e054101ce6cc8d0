"""LibSVM files from CSV, and from LibSVM files whose indices begin with 0."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.files import make_folder, write_atomic, writing
from mpisim.problems.data import libsvm
from mpisim.problems.data.content import read_content
from mpisim.problems.data.formats import read_csv


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
        _, table = read_csv(content, str(source))
        if not 1 <= label <= table.shape[1]:
            allowed = f"an integer from 1 to {table.shape[1]}, the columns of {source}"
            raise InputError(f"--label: {label} is not allowed; it must be {allowed}")
        x, y = np.delete(table, label - 1, axis=1), table[:, label - 1]
    text = io.BytesIO()
    dump_svmlight_file(x, y, text, zero_based=False)
    written = libsvm.parse(text.getvalue(), str(out))
    with writing(out, InputError):
        make_folder(out.parent)
        write_atomic(out, text.getvalue())
    return written.rows, written.features
