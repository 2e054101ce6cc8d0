"""Writes the HDF5 log on rank 0, so that plain h5py can read it at any moment, even after a kill.

All data sets are created at the start and appended to in blocks, each followed by a flush. During
the run no metadata changes except their lengths.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import h5py
import numpy as np

from mpisim.core.atomic_file import create_whole, leads_to, make_folder
from mpisim.core.errors import InputError, OutputError
from mpisim.runs.log.draft import CHUNK_ROWS, OPEN, Draft, add_column, addresses, now
from mpisim.runs.log.isolated import DAMAGE
from mpisim.runs.log.mark import Mark
from mpisim.runs.log.ordered_file import OrderedFile
from mpisim.runs.log.schema import WORKERS, Column, row_type

FLUSH_SECONDS = 1.0
BLOCK_ROWS = 4096
BOOKKEEPING = 1 << 16  # bytes of HDF5's own that one flush may add


class LogWriter:
    """Writes one log, from a draft of it; an existing file of that name is replaced.

    The file gets its name once it is complete, so that an old log is never half replaced. Raises
    `InputError` if it cannot be written. The methods raise `OutputError`; after that, all that is
    left is `finish`.
    """

    def __init__(self, path: Path, draft: Draft):
        self.path, self.attributes = path, draft.attributes
        self._type, self._digest = row_type(draft.schema), draft.digest
        self._last = np.empty(0, self._type)  # the last row, not in the digest yet
        self._written = len(draft.rows)
        try:
            make_folder(path.parent)
            self.raw = OrderedFile(create_whole(path, draft.content))
            self.file = h5py.File(self.raw, "r+", **OPEN)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
        self.sets = [self.file["rounds"][name] for name, *_ in draft.schema]
        self._addresses = addresses(self.sets, 0)
        self._block: list[tuple] = []
        self._flushed = monotonic()

    @classmethod
    def create(
        cls, path: Path, attributes: dict[str, Any], schema: Sequence[Column], force: bool
    ) -> LogWriter:
        """A log without rows; an existing file is an `InputError` unless ``force``."""
        if not force:
            require_new(path)
        return cls(path, Draft(attributes, schema))

    def row(self, values: tuple) -> None:
        """One row, in the order of the schema; written with the next block."""
        self._block.append(values)
        if len(self._block) >= BLOCK_ROWS or monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write and flush the rows so far.

        On a full disk the log stays as the last flush left it.
        """
        rows, self._block = self._block, []
        with self._one_line():
            if rows:
                self._append(np.array(rows, self._type))
            self._commit()
        self._flushed = monotonic()

    def mark(self, k: int) -> Mark:
        """Write the rows so far and sync them; describes those before round k."""
        self.flush()
        last = self._last[self._last["round"] < k]
        rows = self._written - len(self._last) + len(last)
        with self._one_line():
            self.raw.sync()
            known = self._addresses.shape[1]
            more = addresses(self.sets, rows, known)
            self._addresses = np.hstack([self._addresses, more])
        found = self._addresses[None, :, : -(-rows // CHUNK_ROWS)]
        return Mark(rows, self._digest.text(last), CHUNK_ROWS, found, self.attributes)

    def finish(
        self,
        status: str,
        x: np.ndarray | None,
        workers: dict[str, np.ndarray],
        attributes: dict[str, Any] | None = None,
    ) -> None:
        """Write the last rows, ``/final/x``, ``/workers`` and the status, and close the log.

        All is on the disk before the status says so. Where there is no room, the status is
        "failed".

        workers : columns of `schema.WORKERS`, shape (n,), by name
        attributes : new values of some that the log has had from its start
        """
        try:
            self.flush()
            with self._one_line():
                for name, value in (attributes or {}).items():
                    self.file.attrs.modify(name, value)
                self._add_results(x, workers)
                self._commit()
                self.raw.sync()
                self._end(status)
                self._require_own()
        except OutputError:
            with contextlib.suppress(OSError):
                self._end("failed")
            raise
        finally:
            self._close()

    def _append(self, rows: np.ndarray) -> None:
        """Append an array of rows to the columns, which stay equally long."""
        end = self._written + len(rows)
        chunks = len(self.sets) * (len(rows) // CHUNK_ROWS + 2)
        self._reserve(2 * chunks * CHUNK_ROWS * 8)
        try:
            for data, name in zip(self.sets, self._type.names or (), strict=True):
                data.resize((end,))
                data[self._written : end] = rows[name]
        except BaseException:
            for data in self.sets:
                data.resize((self._written,))
            raise
        self._written = end
        joined = np.concatenate([self._last, rows])
        self._digest.update(joined[:-1])
        self._last = joined[-1:]

    def _commit(self) -> None:
        """Write what HDF5 has, if the log is still this one."""
        self.file.flush()
        self._require_own()
        self.raw.commit()

    def _require_own(self) -> None:
        if not leads_to(self.path, self.raw.descriptor):
            raise OutputError(f"{self.path}: is not this run's log any more: replaced or removed")

    def _add_results(self, x: np.ndarray | None, workers: dict[str, np.ndarray]) -> None:
        arrays = [*workers.values(), *([] if x is None else [x])]
        self._reserve(sum(array.nbytes for array in arrays))
        if x is not None:
            self.file.create_dataset("final/x", data=x)
        for column in WORKERS:
            if (values := workers.get(column[0])) is not None:
                add_column(self.file["workers"], column, values.shape)[:] = values

    def _end(self, status: str) -> None:
        """Set the status, if there is room for it."""
        self._reserve(0)
        self.file.attrs.update({"status": status, "end": now()})

    def _reserve(self, size: int) -> None:
        """Reserve room for ``size`` more bytes and HDF5's own."""
        self.raw.reserve(self.file.id.get_filesize() + size + BOOKKEEPING)

    def _close(self) -> None:
        """Close the file and write what that changes; nothing after a failed write."""
        used = self.file.id.get_filesize()
        try:
            self.file.close()
            if self.raw.error is None:
                with self._one_line():
                    self.raw.commit()
                    self.raw.cut(used)
                    self.raw.sync()
        finally:
            self.raw.close()

    @contextlib.contextmanager
    def _one_line(self) -> Iterator[None]:
        """Turns a failure to write into one `OutputError`."""
        try:
            yield
        except DAMAGE as error:
            cause = self.raw.error or error
            if not isinstance(cause, OSError):
                raise
            why = cause.strerror or cause
            raise OutputError(f"{self.path}: cannot be written: {why}") from None


def require_new(path: Path) -> None:
    """`InputError` if there is something at ``path``."""
    if os.path.lexists(path):
        hint = "--resume continues it, --force overwrites it, --out names another file"
        raise InputError(f"{path}: exists already; {hint}")
