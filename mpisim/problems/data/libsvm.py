"""LibSVM text: ``LABEL INDEX:VALUE INDEX:VALUE ...``, one sample a line, indices from 1 ascending.

scikit-learn parses it. If it refuses, or if its result cannot be right, a slow second scan finds
the bad line, so that every error is ``FILE:LINE: what; allowed: ...``.
"""

from __future__ import annotations

import dataclasses
import io
import math
import re

import numpy as np

from mpisim.core.errors import InputError

# 0-based indices are int32 and a bias column may come first.
LARGEST_INDEX = 2**31 - 2

_USUAL = b"0123456789+-.eE: \t\r\n"
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INDEX = re.compile(rb"[+-]?\d+")
_CONVERT = "`mpisim data convert FILE OUT"
_LINE = "LABEL INDEX:VALUE ... with finite numbers and indices from 1, ascending"


@dataclasses.dataclass(frozen=True)
class Table:
    """Samples in compressed sparse rows.

    data : values, explicit zeros included, shape (nnz,), float64
    indices : 0-based columns, ascending in each row, shape (nnz,), int32
    indptr : shape (rows + 1,), int64
    labels : shape (rows,), float64
    features : columns that the rows need: the largest 1-based index
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    features: int

    @property
    def rows(self) -> int:
        """Number of samples."""
        return len(self.labels)


def parse(content: bytes, source: str) -> Table:
    """The table in LibSVM text; blank lines and ``# comments`` are skipped.

    ``source`` is the file's name in errors. Raises `InputError`.
    """
    # Other characters: a comment, nan, rubbish, or a notation that not every parser accepts.
    if content.translate(None, _USUAL):
        scan(content, source)
    if not any(line.split(b"#")[0].strip() for line in io.BytesIO(content)):
        raise InputError(f"{source}:1: no samples in the file; allowed: {_LINE}")
    table = _load(content, source)
    if not (np.isfinite(table.data).all() and np.isfinite(table.labels).all()):
        scan(content, source)
    return table


def _load(content: bytes, source: str) -> Table:
    from sklearn.datasets import load_svmlight_file  # takes 1.4 s; not needed with a cache

    try:
        matrix, labels = load_svmlight_file(io.BytesIO(content), dtype=np.float64, zero_based=False)
    except (ValueError, OverflowError, TypeError) as error:
        scan(content, source)
        raise InputError(f"{source}: {error}; allowed: {_LINE}") from None
    features = int(matrix.indices.max()) + 1 if matrix.nnz else 0
    if features > LARGEST_INDEX:
        scan(content, source)
    indptr = matrix.indptr.astype(np.int64)
    return Table(matrix.data, matrix.indices.astype(np.int32), indptr, labels, features)


def scan(content: bytes, source: str) -> None:
    """Raise `InputError` for the first line that is not LibSVM text, if any."""
    for number, line in enumerate(io.BytesIO(content), 1):
        words = line.split(b"#", 1)[0].split()
        problem = _problem(words) if words else None
        if problem:
            raise InputError(f"{source}:{number}: {problem}; allowed: {_LINE}")


def _problem(words: list[bytes]) -> str | None:
    """What is wrong with a line, or None."""
    if b"," in words[0]:
        return f"label {_show(words[0])} has a comma; {_CONVERT}` makes LibSVM of CSV"
    if not _is_number(words[0]):
        return f"label {_show(words[0])} is not a finite number"
    last = 0
    for word in words[1:]:
        index_text, colon, value = word.partition(b":")
        if not colon:
            return f"{_show(word)} has no colon"
        if not _INDEX.fullmatch(index_text):
            return f"index {_show(index_text)} is not an integer"
        # int() refuses thousands of digits, so long strings are not converted.
        index = int(index_text) if len(index_text) < 20 else LARGEST_INDEX + 1
        if index == 0:
            return f"index '0' is not from 1; {_CONVERT} --zero-based` counts from 1"
        if not 1 <= index <= LARGEST_INDEX:
            return f"index {_show(index_text)} is not between 1 and {LARGEST_INDEX}"
        if index <= last:
            how = "occurs twice" if index == last else f"comes after {last}"
            return f"index {index} {how}"
        if not _is_number(value):
            return f"value {_show(value)} of index {index} is not a finite number"
        last = index
    return None


def _is_number(word: bytes) -> bool:
    return bool(_NUMBER.fullmatch(word)) and math.isfinite(float(word))


def _show(word: bytes) -> str:
    return repr(word[:30] + (b"..." if len(word) > 30 else b""))[1:]  # without the b
