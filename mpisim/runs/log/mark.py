"""What a checkpoint knows of its log: which rows it relies on, and where they are in the file.

HDF5 changes its indices in place while a log grows. After a power cut some of these changes are on
the disk and some are not, so that nobody can open the file. The rows themselves never move, and
those before a checkpoint were synced with it. So a checkpoint notes where they are, and resuming
reads them without HDF5.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.core.errors import InputError
from mpisim.runs.log.schema import Column, row_type


@dataclasses.dataclass(frozen=True)
class Mark:
    """The first rows of a log.

    rows : their number
    digest : of these rows, by `Digest`
    chunk_rows : rows in a chunk of a column
    addresses : array, shape (files, columns, chunks)
        First byte of each chunk, in each of the files that may have the log's name: while a log is
        replaced by a copy, there are two.
    attributes : of the root
    """

    rows: int
    digest: str
    chunk_rows: int
    addresses: np.ndarray
    attributes: dict[str, Any]

    def to_state(self) -> dict[str, Any]:
        """For a checkpoint."""
        attributes = json.dumps(self.attributes, default=lambda value: value.tolist())
        return vars(self) | {"attributes": attributes}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Mark:
        """The inverse of `to_state`; raises `InputError` for what cannot be a mark."""
        try:
            mark = cls(
                int(state["rows"]),
                state["digest"].decode(),
                int(state["chunk_rows"]),
                np.asarray(state["addresses"], np.int64),
                dict(json.loads(state["attributes"])),
            )
            chunks = -(-mark.rows // mark.chunk_rows)
            sound = mark.rows >= 0 and mark.chunk_rows > 0 and (mark.addresses >= 0).all()
            if not sound or mark.addresses.ndim != 3 or mark.addresses.shape[2] != chunks:
                raise ValueError("impossible numbers")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"its mark of the log is damaged: {error}") from None
        return mark

    def read(self, path: Path, schema: Sequence[Column]) -> tuple[np.ndarray, Mark]:
        """The rows, as an array of `row_type`, and their mark in the log at ``path`` alone.

        `InputError` if they are not there as they were.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        try:
            for addresses in self.addresses:
                rows = self._read(descriptor, addresses, schema)
                if rows is not None:
                    return rows, dataclasses.replace(self, addresses=addresses[None])
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        finally:
            os.close(descriptor)
        raise InputError(f"{path} is not the log it was written with, or has changed since")

    def _read(
        self, descriptor: int, addresses: np.ndarray, schema: Sequence[Column]
    ) -> np.ndarray | None:
        kind = row_type(schema)
        room = os.fstat(descriptor).st_size
        if len(addresses) != len(schema) or self.rows * kind.itemsize > room:
            return None
        rows = np.empty(self.rows, kind)
        for (name, dtype, *_), starts in zip(schema, addresses.tolist(), strict=True):
            size = self.chunk_rows * np.dtype(dtype).itemsize
            content = b"".join(os.pread(descriptor, size, start) for start in starts)
            if len(content) != size * len(starts):
                return None
            rows[name] = np.frombuffer(content, dtype)[: self.rows]
        digest = Digest(schema)
        digest.update(rows)
        return rows if digest.text() == self.digest else None


class Digest:
    """A digest of rows that grows with them, the same in whatever portions they come."""

    def __init__(self, schema: Sequence[Column]):
        self._hash = hashlib.sha256(repr(row_type(schema).descr).encode())

    def update(self, rows: np.ndarray) -> None:
        """Add rows of `row_type`."""
        self._hash.update(rows.tobytes())

    def text(self, last: np.ndarray | None = None) -> str:
        """The digest so far, or what it would be with the rows ``last``."""
        found = self._hash.copy()
        if last is not None:
            found.update(last.tobytes())
        return found.hexdigest()
