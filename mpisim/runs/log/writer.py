"""Writes the log of a run on rank 0: each row to its journal, and now and then all to an HDF5 file.

A log has one writer, which holds its lock from before the run loads data until it ends.

The HDF5 file is built in memory, and replaces the one before whole. So plain h5py can read it at
any moment, whatever ends the process or the machine.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import h5py
import numpy as np

from mpisim.comm.communicators import Comm, side_of
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError, OutputError
from mpisim.core.files import FileLock, Locked, create_atomic, image, leads_to, make_folder, writing
from mpisim.runs.log.journal import RECORD_ROWS, Journal, Mark, path_for
from mpisim.runs.log.schema import DIGEST, SCHEMA_VERSION, Column, Schema, row_type, worker_columns

FLUSH_SECONDS = 1.0  # within which rows are in the journal, and the first ones in the HDF5 file
BEHIND_SECONDS, BEHIND_SHARE = 10.0, 0.1  # that the HDF5 file may lag; a share of those elapsed
COST_SHARE = 0.1  # of the elapsed time, that writing the HDF5 files may take, about
Attributes = dict[str, Any]
Arrays = dict[str, np.ndarray]
# Files beside a log, by its name; none has a longer one.
BESIDE = ("{}.ckpt", "{}.ckpt.old", "{}.journal", ".{}.lock", ".{}.journal.new")


class LogWriter:
    """Writes one log; files of its name are replaced.

    attributes : of the root; schema : columns; rows : array of `row_type` that it starts with
    sha256 : of the HDF5 file, as it was written last

    Raises `InputError` if it cannot be written. The methods raise `OutputError`. After that no row
    is written any more, and `finish` raises it again: what a failed write or sync left on the disk
    is not known, and a second try may succeed without it.
    """

    def __init__(
        self, path: Path, attributes: Attributes, schema: Schema, rows: np.ndarray | None = None
    ):
        self.path, self.schema, self._type = path, schema, row_type(schema)
        self.attributes = {"schema_version": SCHEMA_VERSION, "start": now()} | attributes
        self._runs = attributes.get("ensemble", 1)  # whose files are written in the same time
        self._block: list[tuple] = []
        self._opened = self._flushed = self._logged = monotonic()
        self._file: int | None = None  # descriptor of the HDF5 file, as it was written last
        self._error: OutputError | None = None  # the first one
        start = np.empty(0, self._type) if rows is None else rows
        try:
            with self._one_line():
                make_folder(path.parent)
                self.journal = Journal(path_for(path), schema, start)
                self._write("running")
        except OutputError as error:
            raise InputError(str(error)) from None
        self._first = True  # no row of this start is in the HDF5 file

    def row(self, row: Mapping[str, Any]) -> None:
        """One row, by column; written with the next block.

        Rows are written where the next one, if it takes as long as this one, would come too late.
        """
        self._block.append(tuple(row[name] for name in self._type.names or ()))
        here = monotonic()
        pause, self._logged = here - self._logged, here
        if len(self._block) >= RECORD_ROWS or here + pause - self._flushed > FLUSH_SECONDS:
            self.flush()
            later = max(BEHIND_SECONDS, BEHIND_SHARE * (here - self._opened))
            self._write_if_due(0.0 if self._first else later, here + max(pause, FLUSH_SECONDS))

    def flush(self) -> None:
        """Write the rows so far to the journal."""
        rows, self._block = self._block, []
        with self._one_line():
            if self._error is not None:
                raise self._error
            self._require_same_files()
            if rows:
                self.journal.append(np.array(rows, self._type))
        self._flushed = monotonic()

    def mark(self) -> Mark:
        """Make the rows so far durable, and describe them."""
        self.flush()
        with self._one_line():
            self.journal.sync()
        self._write_if_due(FLUSH_SECONDS, monotonic())
        return Mark(self.journal.rows, self.journal.digest(), self.attributes)

    def finish(
        self,
        status: str,
        x: np.ndarray | None,
        workers: Arrays,
        attributes: Attributes | None = None,
    ) -> None:
        """Write the last rows, ``/final/x``, ``/workers`` and the status, and close the log.

        The journal goes when the HDF5 file is on the disk, unless the run failed: then rows may be
        needed that no checkpoint relies on. If the last rows cannot be written, those before them
        get the status "failed".

        workers : columns of `schema.WORKERS`, shape (n,), by name
        attributes : new values of some that the log has had from its start
        """
        self.attributes |= attributes or {}
        complete = False
        try:
            try:
                self.flush()
            except OutputError:
                with suppress(OSError, OutputError):
                    self._write("failed", None, workers)
                raise
            with self._one_line():
                self._write(status, x, workers)
            complete = status != "failed"
        finally:
            with self._one_line():
                self.journal.close(remove=complete)
            if self._file is not None:
                os.close(self._file)

    def _write_if_due(self, seconds: float, by: float) -> None:
        """Write the HDF5 file if by then it is older than that, and is written quickly enough."""
        if by - self._written >= max(seconds, self._runs * self._cost / COST_SHARE):
            with self._one_line():
                self._write("running")
            self._first = False

    def _write(
        self, status: str, x: np.ndarray | None = None, workers: Arrays | None = None
    ) -> None:
        """Replace the HDF5 file by one with all rows of the journal; raises `OSError`."""
        begin = monotonic()
        ended = {"status": status, "end": "" if status == "running" else now()}
        attributes = self.attributes | ended | {DIGEST: self.journal.digest()}
        content = image(lambda file: self._fill(file, attributes, x, workers or {}))
        self.sha256 = hashlib.sha256(content).hexdigest()
        written = create_atomic(self.path, [content], require=self._require_same_files)
        if self._file is not None:
            os.close(self._file)
        self._file = written
        self._require_same_files()
        self._written = monotonic()
        self._cost = self._written - begin

    def _fill(
        self, file: h5py.File, attributes: Attributes, x: np.ndarray | None, workers: Arrays
    ) -> None:
        file.attrs.update(attributes)
        rounds, final, ranks = map(file.create_group, ("rounds", "final", "workers"))
        columns = [_column(rounds, column, (self.journal.rows,)) for column in self.schema]
        end = 0
        for batch in self.journal.batches():
            start, end = end, end + len(batch)
            for data, (name, *_) in zip(columns, self.schema, strict=True):
                data[start:end] = batch[name]
        if x is not None:
            final["x"] = x
        for column in worker_columns(workers):
            _column(ranks, column, workers[column[0]].shape)[:] = workers[column[0]]

    def _require_same_files(self) -> None:
        """`OutputError` if another run, or a user, has replaced or removed a file of this log."""
        log = self._file is None or leads_to(self.path, self._file)
        if not (log and self.journal.is_here()):
            raise OutputError(f"{self.path}: is not this run's log any more: replaced or removed")

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Turns a failure to write into an `OutputError`, the first one."""
        try:
            yield
        except OutputError as error:
            self._error = self._error or error
            raise self._error from None
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or str(error) or "not enough memory"
            self._error = self._error or OutputError(f"{self.path}: cannot be written: {why}")
            raise self._error from None


def _column(group: h5py.Group, column: Column, shape: tuple[int, ...]) -> h5py.Dataset:
    """A data set for the values of a column."""
    name, dtype, units, description = column
    data = group.create_dataset(name, shape, dtype)
    data.attrs["units"], data.attrs["description"] = units, description
    return data


def require_new(path: Path) -> None:
    """`InputError` if there is something at ``path``."""
    if os.path.lexists(path):
        hint = "--resume continues it, --force overwrites it, --out names another file"
        raise InputError(f"{path}: exists already; {hint}")


def now() -> str:
    """UTC time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def locked(comm: Comm, log: Path | None) -> Iterator[None]:
    """Hold the lock of a log, on rank 0, while a run writes it. Collective.

    Every rank raises the same `InputError` if another process holds it, or if there can be no log
    of this name.
    """
    with ExitStack() as stack:
        if log is not None:
            on_first(side_of(comm), lambda: stack.enter_context(lock_of(log)))
        yield


@contextmanager
def lock_of(log: Path) -> Iterator[None]:
    """`locked` in this process alone."""
    require_text(log)
    _require_file(log)
    lock = log.with_name(f".{log.name}.lock")
    with ExitStack() as stack:
        try:
            with writing(log, InputError):
                make_folder(log.parent)
                stack.enter_context(FileLock(lock))
        except Locked as holder:
            who = ", ".join(filter(None, (str(holder), f"with the lock {lock}")))
            raise InputError(f"{log}: another run is writing it ({who})") from None
        yield


def require_text(path: Path) -> None:
    """`InputError` for a path that is not UTF-8, or that no file can have."""
    with suppress(UnicodeEncodeError):
        if "\0" not in str(path) and str(path).encode():
            return
    raise InputError(f"{str(path)!a}: is not a path in UTF-8")


def _require_file(log: Path) -> None:
    """`InputError` unless log and checkpoints are regular files or do not exist."""
    if log.name in ("", ".."):
        raise InputError(f"{log}: is a folder; a log is a regular file")
    names = log.name, *(name.format(log.name) for name in BESIDE)
    for path in map(log.with_name, names):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"{log}: cannot be written: {error.strerror}") from None
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
            raise InputError(f"{path}: is {what}; a log and its checkpoints are regular files")
