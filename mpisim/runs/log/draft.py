"""A log before it is on the disk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import h5py
import numpy as np

from mpisim.core.atomic_file import image
from mpisim.runs.log.mark import Digest, Mark
from mpisim.runs.log.schema import SCHEMA_VERSION, Column, row_type

CHUNK_ROWS = 1024
AT_THE_END = ("final", "workers")  # groups that are filled when the run ends
OPEN: dict[str, Any] = {
    "libver": ("earliest", "v110"),
    "locking": False,
    "rdcc_nbytes": 1 << 16,  # a full chunk is not needed again
}


class Draft:
    """The content of a new log, with all data sets, and its first rows where it goes on.

    attributes : of the root; schema : columns; rows : array of `row_type`
    """

    def __init__(
        self,
        attributes: dict[str, Any],
        schema: Sequence[Column],
        rows: np.ndarray | None = None,
    ):
        known = {"schema_version": SCHEMA_VERSION, "start": now()} | attributes
        self.attributes = known | {"status": "running", "end": ""}
        self.schema = schema
        self.rows = np.empty(0, row_type(schema)) if rows is None else rows
        self.digest = Digest(schema)
        self.digest.update(self.rows)
        self.content = image(self._fill)

    def _fill(self, file: h5py.File) -> None:
        file.attrs.update(self.attributes)
        for column in self.schema:
            data = add_column(file.require_group("rounds"), column, (len(self.rows),), (None,))
            data[:] = self.rows[column[0]]
        for group in AT_THE_END:  # now, so that the root does not change during the run
            file.require_group(group)

    def mark(self, replaced: Mark | None) -> Mark:
        """The mark of its rows, in this log and in the one that it replaces, if any."""
        with h5py.File(io.BytesIO(self.content), "r") as file:
            columns = [file["rounds"][name] for name, *_ in self.schema]
            own = addresses(columns, len(self.rows))
        both = [own] if replaced is None else [*replaced.addresses, own]
        digest = self.digest.text()
        return Mark(len(self.rows), digest, CHUNK_ROWS, np.array(both), self.attributes)


def add_column(
    group: h5py.Group, column: Column, shape: tuple, maxshape: tuple | None = None
) -> h5py.Dataset:
    """An empty data set, in chunks if it may grow."""
    name, dtype, units, description = column
    chunks = (CHUNK_ROWS,) if maxshape else None
    data = group.create_dataset(name, shape, dtype, maxshape=maxshape, chunks=chunks)
    data.attrs["units"], data.attrs["description"] = units, description
    return data


def addresses(columns: Sequence[h5py.Dataset], rows: int, first: int = 0) -> np.ndarray:
    """Where the chunks of the first rows are in the file, from chunk ``first`` on.

    Shape (columns, chunks), int64. Chunks must have been flushed.
    """
    starts = range(first * CHUNK_ROWS, rows, CHUNK_ROWS)
    found = [
        [data.id.get_chunk_info_by_coord((start,)).byte_offset for start in starts]
        for data in columns
    ]
    return np.array(found, np.int64).reshape(len(columns), len(starts))


def now() -> str:
    """UTC time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
