"""The HDF5 log: written by rank 0, readable with plain h5py at any moment, also after a kill.

All data sets are made at the start and appended to in blocks, each followed by a flush: no
metadata changes while the run goes on, but for the lengths.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import h5py
import numpy as np

from mpisim.comm.clock import PHASES
from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.core.atomic_file import image, reserve, write_whole
from mpisim.core.errors import InputError, OutputError
from mpisim.runs.log.isolated import DAMAGE, apart
from mpisim.runs.log.ordered_file import OrderedFile
from mpisim.runs.log.schema import Column
from mpisim.runs.metrics import Metric

SCHEMA_VERSION = 1
FLUSH_SECONDS = 1.0
BLOCK_ROWS = 4096
CHUNK_ROWS = 1024
BOOKKEEPING = 1 << 16  # bytes of HDF5's own that one flush may add
AT_THE_END = ("final", "workers")  # groups that are filled when the run ends
OPEN: dict[str, Any] = {"libver": ("earliest", "v110"), "locking": False}
OPEN["rdcc_nbytes"] = 1 << 16  # chunks that are full are not needed again

FIRST: list[Column] = [
    ("round", np.int64, "1", "k, the number of the iterate x^k; row 0 is the starting point"),
    ("loss", np.float64, "1", "f(x^k)"),
    ("grad_norm_sq", np.float64, "1", "|grad f(x^k)|^2, of the average over workers"),
]
REFERENCE: list[Column] = [
    ("suboptimality", np.float64, "1", "f(x^k) - f(x*)"),
    ("distance_sq", np.float64, "1", "|x^k - x*|^2"),
]
LEDGER: list[Column] = [(name, np.int64, "bit", text) for name, text in BITS.items()]
ORACLE: list[Column] = [
    ("oracle_calls", np.int64, "1", "gradients of single samples so far, summed over workers"),
]
PHASE_TEXT = {
    "compute": "gradients and the workers' vector arithmetic, slowest rank",
    "compress": "compressing, slowest rank",
    "encode": "encoding messages to bytes, slowest rank",
    "communicate": "bytes crossing MPI, up and down, without waiting for the slowest rank",
    "decode": "decoding messages, rank 0",
    "server": "averaging and the server's own arithmetic, rank 0",
    "optimizer": "the step from x^k to x^{k+1}, rank 0",
    "other": "the rest of a round, rank 0",
}
TIMES: list[Column] = [
    (f"time_{p}", np.float64, "s", f"seconds so far: {PHASE_TEXT[p]}") for p in PHASES
]


def columns(reference: bool, more: Iterable[Metric] = ()) -> list[Column]:
    """The columns of ``/rounds`` in the order in which `LogWriter.row` takes them."""
    own = [column for metric in more for column in metric.columns]
    return FIRST + (REFERENCE if reference else []) + LEDGER + ORACLE + TIMES + own


class LogWriter:
    """Writes one log. Made by `create` or `reopen`; ``schema`` comes from `columns`."""

    def __init__(
        self, path: Path, raw: OrderedFile, file: h5py.File, schema: list[Column], written: int
    ):
        self.path, self.raw, self.file = path, raw, file
        self.sets = [file["rounds"][name] for name, *_ in schema]
        self._block: list[tuple] = []
        self._written = written
        self._flushed = monotonic()

    @classmethod
    def create(
        cls, path: Path, attributes: dict[str, Any], schema: list[Column], force: bool
    ) -> LogWriter:
        """A new log; an existing file is an `InputError` unless ``force``.

        It takes its name only when it is complete, so an old one is never half replaced.
        """
        if path.exists() and not force:
            raise InputError(
                f"{path}: exists already; --force overwrites it, --out names another file"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, image(lambda file: cls._fill(file, attributes, schema)))
            raw = OrderedFile(path)
            return cls(path, raw, h5py.File(raw, "r+", **OPEN), schema, 0)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error}") from None

    @classmethod
    def _fill(cls, file: h5py.File, attributes: dict[str, Any], schema: list[Column]) -> None:
        state = {"schema_version": SCHEMA_VERSION, "status": "running", "start": now(), "end": ""}
        file.attrs.update(state | attributes)
        for column in schema:
            cls._column(file.require_group("rounds"), column, (0,), (None,))
        for group in AT_THE_END:  # so that the root never changes while the run goes on
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
        """An existing log, cut back to the rows before ``first_round``, to be gone on with.

        every : how many rounds lie between rows; attributes : those of the run that goes on
        """
        try:
            state = (attributes or {}) | {"status": "running", "end": ""}
            rows, content = apart(
                path, lambda: cls._cut_back(path, schema, first_round, every, state)
            )
            write_whole(path, content)
            raw = OrderedFile(path)
            file = h5py.File(raw, "r+", **OPEN)
        except DAMAGE as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"{path}: cannot be gone on with: {reason}; --force starts anew"
            ) from None
        return cls(path, raw, file, schema, rows)

    @staticmethod
    def _cut_back(
        path: Path, schema: list[Column], first_round: int, every: int, state: dict[str, Any]
    ) -> tuple[int, bytes]:
        """How many rows are before a round, and the log with these alone, not ended."""
        content = io.BytesIO(path.read_bytes())
        with h5py.File(content, "r+", **OPEN) as file:
            rows = rows_before(file["rounds/round"][:], first_round, every)
            for name, *_ in schema:
                if file["rounds"][name].size < rows:
                    raise OSError(f"column {name} is too short")
                file["rounds"][name].resize((rows,))
            for group in AT_THE_END:
                for name in list(file.require_group(group)):
                    del file[group][name]
            file.attrs.update(state)
        return rows, content.getvalue()

    @staticmethod
    def _column(
        group: h5py.Group, column: Column, shape: tuple, maxshape: tuple | None
    ) -> h5py.Dataset:
        name, dtype, units, description = column
        chunks = (CHUNK_ROWS,) if maxshape else None
        data = group.create_dataset(name, shape, dtype, maxshape=maxshape, chunks=chunks)
        data.attrs["units"], data.attrs["description"] = units, description
        return data

    def row(self, values: tuple) -> None:
        """One row, in the order of the schema; written with the next block."""
        self._block.append(values)
        if len(self._block) >= BLOCK_ROWS or monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write and flush the rows so far; `OutputError` on a full disk, where the log stays as
        it was after the last flush."""
        rows, self._block = self._block, []
        if rows:
            end = self._written + len(rows)
            chunks = len(self.sets) * (len(rows) // CHUNK_ROWS + 2)
            self._reserve(2 * chunks * CHUNK_ROWS * 8)
            try:
                for data, values in zip(self.sets, zip(*rows, strict=True), strict=True):
                    data.resize((end,))
                    data[self._written : end] = values
            except BaseException:  # columns are equally long, whatever happens
                for data in self.sets:
                    data.resize((self._written,))
                raise
            self._written = end
        self.file.flush()
        self._flushed = monotonic()

    def finish(
        self, status: str, x: np.ndarray | None, workers: dict[str, tuple[np.ndarray, str, str]]
    ) -> None:
        """The last rows, ``/final/x``, the status, and the ``workers`` columns; closes the log.

        workers : {name: (values (n,), units, description)}

        `OutputError` where there is no room for all of it; the log then has failed.
        """
        try:
            self.flush()
            size = sum(values.nbytes for values, *_ in workers.values())
            self._reserve(size + (0 if x is None else x.nbytes))
            if x is not None:
                self.file.create_dataset("final/x", data=x)
            for name, (values, units, text) in workers.items():
                column = (name, values.dtype.type, units, text)
                group = self.file.require_group("workers")
                self._column(group, column, values.shape, None)[:] = values
            self._end(status)
        except OutputError:
            with contextlib.suppress(OutputError):
                self._end("failed")
            raise
        finally:
            self._close()

    def _end(self, status: str) -> None:
        """Note the status, if there is room for it."""
        self._reserve(0)
        self.file.attrs.update({"status": status, "end": now()})

    def _close(self) -> None:
        self.file.flush()
        used = self.file.id.get_filesize()
        self.file.close()
        self.raw.close()
        with contextlib.suppress(OSError):
            os.truncate(self.path, used)

    def _reserve(self, size: int) -> None:
        """Room for ``size`` more bytes and some bookkeeping, or `OutputError`."""
        try:
            reserve(self.path, self.file.id.get_filesize() + size + BOOKKEEPING)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}") from None


def rows_before(rounds: np.ndarray, first_round: int, every: int) -> int:
    """How many rows lie before ``first_round``; `OSError` unless ``rounds`` has all of them."""
    expected = np.arange(0, first_round, every)
    if not np.array_equal(rounds[: expected.size], expected):
        raise OSError(f"it lacks rows before round {first_round}, where the checkpoint goes on")
    return expected.size


def now() -> str:
    """UTC time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
