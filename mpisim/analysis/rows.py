"""The logged rows of runs in one table, for other tools."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis import formatting, log_files
from mpisim.analysis.run_groups import groups_of
from mpisim.analysis.settings import cell, settings, settings_of
from mpisim.core.errors import InputError, library
from mpisim.runs.log.reader import DERIVED, Log

Rows = dict[str, np.ndarray]
HELD = ("method.name", "compressor.name", "run.seed")  # settings with a column of their own


def all_rows(logs: Sequence[Log], root: Path | None = None, every: bool = False) -> Rows:
    """{column: values}, a row for each logged round of each log, in the order of the logs.

    What is the same in all rows of a log comes first: see `about`. Then come the columns of the
    logs, ``bits_per_worker``, and those that follow from them: ``seconds``, ``bits_total``,
    ``mean_grad_norm_sq``. Where a log lacks a column that another one has, its values are NaN.
    """
    tables = [_rows(log) for log in logs]
    names = dict.fromkeys(name for one in tables for name in one)
    ordered = [name for name in names if name not in DERIVED]
    ordered += [name for name in DERIVED if name in names]
    lengths = [log.rows for log in logs]
    repeated = {name: np.repeat(v, lengths) for name, v in about(logs, root, every).items()}
    pairs = [(one, np.full(rows, np.nan)) for one, rows in zip(tables, lengths, strict=True)]
    return repeated | {n: np.concatenate([one.get(n, nan) for one, nan in pairs]) for n in ordered}


def about(logs: Sequence[Log], root: Path | None = None, every: bool = False) -> Rows:
    """{column: values}, a value for each log, shape (logs,).

    ``log`` is its path in the folder ``root`` (that of all logs unless given). Then come
    ``method.name``, ``compressor.name``, ``seed``, ``label`` (as in legends), ``n``, ``status``,
    ``stepsize`` (gamma), and the settings that vary, by TABLE.KEY; with ``every`` all settings.
    """
    paths = [log.path for log in logs]
    root = root or log_files.root(paths, paths)
    labels = {log.path: group.name for group in groups_of(logs) for log in group.logs}
    rows: Rows = {"log": _array([os.path.relpath(log.path, root) for log in logs])}
    for name in ("method", "compressor"):
        rows[f"{name}.name"] = _array([str(log.attrs.get(name) or "") for log in logs])
    seeds = [log.attrs.get("seed") for log in logs]
    rows["seed"] = _array([seed if isinstance(seed, int) else None for seed in seeds])
    rows["label"] = _array([labels[log.path] for log in logs])
    rows["n"] = _array([log.n for log in logs])
    rows["status"] = _array([str(log.attrs.get("status", "unknown")) for log in logs])
    rows["stepsize"] = _array([log.attrs.get("stepsize") for log in logs])
    kinds = settings(log.config for log in logs)
    flat = [settings_of(log.config) for log in logs]
    names = (*kinds.varied, *(kinds.fixed if every else ()))
    for name in (name for name in names if name not in HELD):
        rows[name] = _array([cell(one[name]) if name in one else None for one in flat])
    return rows


def _array(values: Sequence[Any]) -> np.ndarray:
    """Numbers, with NaN for None where one is missing; else texts, with "" for None."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else value for value in values], object)
    if any(value is None for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return np.array(values)


def to_csv(rows: Rows) -> bytes:
    """The rows as CSV, numbers with all digits."""
    columns = [values.tolist() for values in rows.values()]
    return (formatting.table(list(rows), zip(*columns, strict=True), "csv") + "\n").encode()


def to_parquet(rows: Rows) -> bytes:
    """The rows as Parquet, by pyarrow, else polars; `InputError` where there is neither."""
    columns = {name: v.tolist() if v.dtype == object else v for name, v in rows.items()}
    out = io.BytesIO()
    if importlib.util.find_spec("polars") and not importlib.util.find_spec("pyarrow"):
        library("polars", "parquet", "--parquet").DataFrame(columns).write_parquet(out)
        return out.getvalue()
    arrow = library("pyarrow", "parquet", "--parquet")
    library("pyarrow.parquet", "parquet", "--parquet").write_table(arrow.table(columns), out)
    return out.getvalue()


def _rows(log: Log) -> Rows:
    rows = dict(log.columns)
    if "bits_up" in rows:
        rows["bits_per_worker"] = rows["bits_up"] / log.n
    for name in DERIVED:
        try:
            rows[name] = log.column(name)
        except InputError:  # it follows from columns that this log does not have
            continue
    return rows
