"""Writes the HDF5 log on rank 0, so that plain h5py can read it at any moment, even after a kill.

All data sets are created at the start and appended to in blocks, each followed by a flush. During
the run no metadata changes except their lengths.
"""

from __future__ import annotations

import contextlib
import io
import os
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import h5py
import numpy as np

from mpisim.core.atomic_file import image, reserve, write_whole
from mpisim.core.errors import InputError, OutputError
from mpisim.runs.log.isolated import DAMAGE, run_isolated
from mpisim.runs.log.ordered_file import OrderedFile
from mpisim.runs.log.schema import SCHEMA_VERSION, WORKERS, Column

FLUSH_SECONDS = 1.0
BLOCK_ROWS = 4096
CHUNK_ROWS = 1024
BOOKKEEPING = 1 << 16  # bytes of HDF5's own that one flush may add
AT_THE_END = ("final", "workers")  # groups that are filled when the run ends
OPEN: dict[str, Any] = {
    "libver": ("earliest", "v110"),
    "locking": False,
    "rdcc_nbytes": 1 << 16,  # a full chunk is not needed again
}


class LogWriter:
    """Writes one log. Made by `create` or `reopen`; ``schema`` comes from `schema.columns`."""

    def __init__(self, path: Path, schema: list[Column], written: int):
        self.path, self.raw = path, OrderedFile(path)
        self.file = h5py.File(self.raw, "r+", **OPEN)
        self.sets = [self.file["rounds"][name] for name, *_ in schema]
        self._block: list[tuple] = []
        self._written = written
        self._flushed = monotonic()

    @classmethod
    def create(
        cls, path: Path, attributes: dict[str, Any], schema: list[Column], force: bool
    ) -> LogWriter:
        """A new log; an existing file is an `InputError` unless ``force``.

        The file gets its name once it is complete, so that an old log is never half replaced.
        """
        if path.exists() and not force:
            hint = "--force overwrites it, --out names another file"
            raise InputError(f"{path}: exists already; {hint}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, image(lambda file: cls._fill(file, attributes, schema)))
            return cls(path, schema, 0)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error}") from None

    @staticmethod
    def _fill(file: h5py.File, attributes: dict[str, Any], schema: list[Column]) -> None:
        state = {"schema_version": SCHEMA_VERSION, "status": "running", "start": now(), "end": ""}
        file.attrs.update(state | attributes)
        for column in schema:
            _add_column(file.require_group("rounds"), column, (0,), (None,))
        for group in AT_THE_END:  # now, so that the root does not change during the run
            file.require_group(group)

    @classmethod
    def reopen(
        cls,
        path: Path,
        schema: list[Column],
        first_round: int,
        every: int = 1,
        attributes: dict[str, Any] | None = None,
    ) -> LogWriter:
        """An existing log, cut back to the rows before ``first_round``, to be continued there.

        every : rounds from one row to the next; attributes : of the run that continues
        """
        try:
            state = (attributes or {}) | {"status": "running", "end": ""}
            rows, content = run_isolated(
                path, lambda: cls._cut_back(path, schema, first_round, every, state)
            )
            write_whole(path, content)
            return cls(path, schema, rows)
        except DAMAGE as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path}: cannot be resumed: {reason}; --force starts anew") from None

    @staticmethod
    def _cut_back(
        path: Path, schema: list[Column], first_round: int, every: int, state: dict[str, Any]
    ) -> tuple[int, bytes]:
        """The number of rows before a round, and the log with only these, marked as running."""
        content = io.BytesIO(path.read_bytes())
        with h5py.File(content, "r+", **OPEN) as file:
            rows = rows_before(file["rounds/round"][:], first_round, every)
            for name, *_ in schema:
                data = file["rounds"][name]
                if data.size < rows:
                    raise OSError(f"column {name} is too short")
                data.resize((rows,))
            for group in AT_THE_END:
                for name in list(file.require_group(group)):
                    del file[group][name]
            file.attrs.update(state)
        return rows, content.getvalue()

    def row(self, values: tuple) -> None:
        """One row, in the order of the schema; written with the next block."""
        self._block.append(values)
        if len(self._block) >= BLOCK_ROWS or monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write and flush the rows so far.

        Raises `OutputError` on a full disk; the log then stays as the last flush left it.
        """
        rows, self._block = self._block, []
        if rows:
            end = self._written + len(rows)
            chunks = len(self.sets) * (len(rows) // CHUNK_ROWS + 2)
            self._reserve(2 * chunks * CHUNK_ROWS * 8)
            try:
                for data, values in zip(self.sets, zip(*rows, strict=True), strict=True):
                    data.resize((end,))
                    data[self._written : end] = values
            except BaseException:  # keep the columns equally long
                for data in self.sets:
                    data.resize((self._written,))
                raise
            self._written = end
        self.file.flush()
        self._flushed = monotonic()

    def finish(self, status: str, x: np.ndarray | None, workers: dict[str, np.ndarray]) -> None:
        """Write the last rows, ``/final/x``, ``/workers`` and the status, and close the log.

        workers : columns of `schema.WORKERS`, shape (n,), by name

        Raises `OutputError` where there is no room; the status is then "failed".
        """
        try:
            self.flush()
            arrays = [*workers.values(), *([] if x is None else [x])]
            self._reserve(sum(array.nbytes for array in arrays))
            if x is not None:
                self.file.create_dataset("final/x", data=x)
            for column in WORKERS:
                if (values := workers.get(column[0])) is not None:
                    _add_column(self.file["workers"], column, values.shape)[:] = values
            self._end(status)
        except OutputError:
            with contextlib.suppress(OutputError):
                self._end("failed")
            raise
        finally:
            self.file.flush()
            used = self.file.id.get_filesize()
            self.file.close()
            self.raw.close()
            with contextlib.suppress(OSError):
                os.truncate(self.path, used)

    def _end(self, status: str) -> None:
        """Write the status, if there is room for it."""
        self._reserve(0)
        self.file.attrs.update({"status": status, "end": now()})

    def _reserve(self, size: int) -> None:
        """Reserve room for ``size`` more bytes and HDF5's own, or raise `OutputError`."""
        try:
            reserve(self.path, self.file.id.get_filesize() + size + BOOKKEEPING)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}") from None


def _add_column(
    group: h5py.Group, column: Column, shape: tuple, maxshape: tuple | None = None
) -> h5py.Dataset:
    name, dtype, units, description = column
    chunks = (CHUNK_ROWS,) if maxshape else None
    data = group.create_dataset(name, shape, dtype, maxshape=maxshape, chunks=chunks)
    data.attrs["units"], data.attrs["description"] = units, description
    return data


def rows_before(rounds: np.ndarray, first_round: int, every: int) -> int:
    """The number of rows before ``first_round``; `OSError` if ``rounds`` lacks one of them."""
    expected = np.arange(0, first_round, every)
    if not np.array_equal(rounds[: expected.size], expected):
        raise OSError(f"it lacks rows before round {first_round}, where the checkpoint resumes")
    return expected.size


def now() -> str:
    """UTC time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
