"""Reads logs: their attributes, columns and experiments."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import parse_toml
from mpisim.runs.log import untrusted
from mpisim.runs.log.journal import digest
from mpisim.runs.log.schema import DIGEST, SCHEMA_VERSION

# Sums of time_*, and of bits_up and bits_down; what `Log.uniform` says.
DERIVED = ("seconds", "bits_total", "mean_grad_norm_sq")
# Keys that every resolved experiment has.
NAMES = ("problem.name", "method.name", "compressor.name")
KEYS = (*NAMES, "method.stepsize", "run.rounds", "run.seed")


@dataclasses.dataclass
class Log:
    """The content of one log.

    attrs : root attributes, as plain Python values
    columns : ``/rounds``, one row for each logged round, shape (rows,) each
    workers : ``/workers``, shape (workers,) each; empty until the run ends
    units : of the columns
    config : the resolved experiment; empty where the log has none
    """

    path: Path
    attrs: dict[str, Any]
    columns: dict[str, np.ndarray]
    workers: dict[str, np.ndarray]
    units: dict[str, str]
    config: dict[str, Any]

    @property
    def rows(self) -> int:
        """Number of rows, the same in every column."""
        return len(next(iter(self.columns.values())))

    @property
    def n(self) -> int:
        """Number of workers."""
        return max(int(self.attrs.get("workers", 1)), 1)

    def table(self, clocks: bool = True) -> np.ndarray:
        """All columns, shape (rows,), with a field for each one; of `row_type` for its schema."""
        names = sorted(n for n in self.columns if clocks or not n.startswith("time_"))
        table = np.empty(self.rows, [(name, self.columns[name].dtype) for name in names])
        for name in names:
            table[name] = self.columns[name]
        return table

    @property
    def as_written(self) -> bool:
        """Whether the rows have the digest in the attribute `DIGEST`, where there is one."""
        return DIGEST not in self.attrs or str(self.attrs[DIGEST]) == digest(self.table())

    @property
    def digest(self) -> str:
        """Of all rows, except for the clocks: the same wherever the experiment runs."""
        return digest(self.table(clocks=False))

    @property
    def duration(self) -> float:
        """Seconds from set-up to the end of the log, and the method's seconds of earlier starts.

        Those of a start that never ended are not known, and count as 0.
        """
        parts = (float(self.attrs.get(f"seconds_{name}", 0)) for name in ("elapsed", "before"))
        return sum(seconds for seconds in parts if isfinite(seconds))

    def column(self, name: str) -> np.ndarray:
        """A column of the log or of `DERIVED`, shape (rows,), float64.

        Raises `InputError` with a list of the columns where there is none of this name.
        """
        if name == "bits_total":
            return self.column("bits_up") + self.column("bits_down")
        if name == "mean_grad_norm_sq" and name not in self.columns:
            return self.uniform("grad_norm_sq")
        if name == "seconds":
            times = [values for key, values in self.columns.items() if key.startswith("time_")]
            if times:
                return np.sum(times, axis=0)
        elif name in self.columns:
            return self.columns[name].astype(float)
        here = ", ".join([*self.columns, *DERIVED])
        raise InputError(f"{self.path}: no column {name!r}; columns here: {here}")

    def has(self, name: str) -> bool:
        """Whether there is a `column` of this name, with a row."""
        with suppress(InputError):
            return bool(self.column(name).size)
        return False

    def uniform(self, name: str) -> np.ndarray:
        """The expectation of a column at the iterate x^ that theorems return, shape (rows,).

        After k rounds x^ is one of x^0, ..., x^{k-1}, each equally likely (MARINA, Algorithm 1,
        line 12): row k has the mean of the rows before it. Row 0 has its own value. Raises
        `InputError` where rounds have no row, and ``run.columns`` did not ask for it.
        """
        values, rounds = self.column(name), self.column("round")
        if not np.array_equal(rounds, np.arange(self.rows)):
            needed = f"run.log_every = 1, not {int(np.diff(rounds).max(initial=0))}"
            if rounds[0] > 0:
                needed = f"the rows from round 0 on, not from {int(rounds[0])}"
            needed += ', or run.columns = ["uniform"]'
            raise InputError(f"{self.path}: no mean_{name}: it needs {needed}")
        return np.append(values[:1], np.cumsum(values[:-1]) / rounds[1:])


def read(path: Path, changed: bool = False) -> Log:
    """The log at ``path``, finished or not.

    Raises `InputError` for a file that is missing, is not HDF5, is cut short, is not a log, needs
    other files, has a newer layout, or makes HDF5 crash; and, unless ``changed``, for one whose
    rows have changed since they were written. A file that a run replaces meanwhile is read again
    if the old one cannot be.
    """
    return untrusted.run_isolated(path, lambda: _open(path, changed=changed))


def read_each(paths: Sequence[Path]) -> list[Log | InputError]:
    """The logs at ``paths``, or the error of one that cannot be read or lacks its experiment.

    Faster than `read` for each.
    """
    return untrusted.run_each(paths, lambda path: _open(path, experiment=True))


def read_all(paths: Sequence[Path]) -> list[Log]:
    """`read_each`; raises the first error."""
    logs = []
    for log in read_each(paths):
        if isinstance(log, InputError):
            raise log
        logs.append(log)
    return logs


def attributes_of(
    paths: Sequence[Path], names: Collection[str], compared: Collection[str] = ()
) -> list[dict[str, Any] | InputError | None]:
    """The root attributes of each log among ``names``, or its error; None where there is no file.

    compared : statuses of logs whose rows are compared with the attribute `DIGEST`, if it is there
        and among ``names``
    """

    def attributes(path: Path) -> dict[str, Any]:
        with damaged(path), untrusted.opened(path) as file:
            here = {name: _plain(file.attrs[name]) for name in names if name in file.attrs}
            require_readable(path, here.get("schema_version"))
            if here.get("status") in compared:
                _require_as_written(Log(path, here, _columns(path, file, "rounds"), *[{}] * 3))
        return here

    there = [path for path in paths if os.path.lexists(path)]
    of_path = dict(zip(there, untrusted.run_each(there, attributes), strict=True))
    return [of_path.get(path) for path in paths]


def last_iterate(path: Path) -> np.ndarray | None:
    """``/final/x`` of the log at ``path``, shape (d,); None if it has none."""

    def iterate() -> np.ndarray | None:
        with untrusted.opened(path) as file:
            x = untrusted.members_of(file, "final").get("x")
            if not isinstance(x, h5py.Dataset):
                return None
            untrusted.require_readable_size(path, [x])
            return x[()]

    return untrusted.run_isolated(path, iterate)


def _open(path: Path, experiment: bool = False, changed: bool = False) -> Log:
    path = Path(path)
    while True:
        before = _which(path)
        try:
            with damaged(path), untrusted.opened(path) as file:
                log = _read(path, file)
            if not changed:
                _require_as_written(log)
            if experiment and not log.config:
                raise InputError(f"{path}: the log is damaged: it has no attribute config")
            return log
        except InputError:  # also where a run has replaced the log: network file systems notice
            if _which(path) == before:
                raise


def _require_as_written(log: Log) -> None:
    if not log.as_written:
        raise InputError(f"{log.path}: its rows have changed since they were written ({DIGEST})")


def _which(path: Path) -> tuple[int, int] | None:
    """The file that has a name now."""
    with suppress(OSError):
        stat = path.stat()
        return stat.st_dev, stat.st_ino
    return None


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Turns errors caused by the content of a log into one `InputError`."""
    try:
        yield
    except untrusted.DAMAGE as error:
        raise InputError(f"{path}: {_why(Path(path), error)}") from None


def _read(path: Path, file: h5py.File) -> Log:
    attrs = {name: _plain(value) for name, value in file.attrs.items()}
    require_readable(path, attrs.get("schema_version"))
    data, workers = _columns(path, file, "rounds"), _columns(path, file, "workers")
    if not data:
        raise InputError(f"{path}: not an mpisim log: it holds no group /rounds with columns")
    # mpisim 1.0, killed between two columns, left them with different lengths.
    rows = min(len(values) for values in data.values())
    units = {name: str(_plain(values.attrs.get("units", ""))) for name, values in data.items()}
    columns = {name: values[:rows] for name, values in data.items()}
    sums = {name: values[:] for name, values in workers.items()}
    return Log(path, attrs, columns, sums, units, _config(path, attrs.get("config", "")))


def require_readable(path: Path, version: object) -> None:
    """Raise `InputError` for a log whose layout is that of a newer mpisim."""
    if isinstance(version, int) and version > SCHEMA_VERSION:
        schemas = f"its schema is {version}, this one reads up to {SCHEMA_VERSION}"
        raise InputError(f"{path}: written by a newer mpisim: {schemas}; upgrade mpisim")


def _columns(path: Path, file: h5py.File, group: str) -> dict[str, h5py.Dataset]:
    """The columns in /GROUP, none of them larger than the file; empty if there is no such group."""
    columns = untrusted.members_of(file, group)
    for name, values in columns.items():
        numbers = isinstance(values, h5py.Dataset) and values.dtype.kind in "if"
        if not numbers or values.ndim != 1:
            raise InputError(f"{path}: the log is damaged: {name} is not a row of numbers")
    untrusted.require_readable_size(path, columns.values())
    return columns


def _config(path: Path, text: str) -> dict[str, Any]:
    """The experiment; empty where the log has none."""
    try:
        config = parse_toml(text, f"{path}: attribute config")
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: attribute config is not TOML: {error}") from None
    for table, _, key in (name.partition(".") for name in KEYS if config):
        if not isinstance(config.get(table), dict) or key not in config[table]:
            raise InputError(f"{path}: the log is damaged: config has no {table}.{key}")
    return config


def _plain(value: Any) -> Any:
    """An attribute as a plain Python value, text as text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str):  # h5py turns bytes that are not text into lone surrogates
        return value.encode(errors="replace").decode()
    return value.item() if isinstance(value, np.generic) else value


def _why(path: Path, error: BaseException) -> str:
    """Python's or HDF5's message in plain words."""
    if isinstance(error, FileNotFoundError):
        return "no such log"
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a log; `mpisim show` lists the runs of a folder"
    if isinstance(error, PermissionError):  # HDF5's message has several lines
        return f"cannot be read: {os.strerror(error.errno or 0)}"
    message = untrusted.in_words(error)
    if "signature not found" in message:
        empty = path.stat().st_size == 0
        return "not a log: the file is empty" if empty else "not a log: not an HDF5 file"
    if "truncated" in message:
        return "the file is cut short; copy it again"
    return f"the log is damaged: {message}"
