"""The logged rows of runs in one table, for other tools."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence

import numpy as np

from mpisim.analysis import formatting
from mpisim.core.errors import InputError, library
from mpisim.runs.log.reader import DERIVED, Log

Rows = dict[str, np.ndarray]
NAMES = ("method", "compressor")


def all_rows(logs: Sequence[Log]) -> Rows:
    """{column: values}, a row for each logged round of each log, in the order of the logs.

    ``log`` (its path), ``method``, ``compressor`` and ``seed`` come first, then the columns of the
    logs, then those that follow from them: ``seconds``, ``bits_total``, ``mean_grad_norm_sq``.
    Where a log lacks a column that another one has, its values are NaN.
    """
    tables = [_rows(log) for log in logs]
    names = dict.fromkeys(name for one in tables for name in one)
    ordered = [name for name in names if name not in DERIVED]
    ordered += [name for name in DERIVED if name in names]
    return {
        name: np.concatenate(
            [
                one.get(name, np.full(log.rows, np.nan))
                for log, one in zip(logs, tables, strict=True)
            ]
        )
        for name in ordered
    }


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
    seed = log.attrs.get("seed")
    texts = {"log": str(log.path)} | {name: str(log.attrs.get(name) or "") for name in NAMES}
    rows: Rows = {name: np.full(log.rows, text, object) for name, text in texts.items()}
    rows["seed"] = np.full(log.rows, seed if isinstance(seed, int) else np.nan)
    rows |= log.columns
    for name in DERIVED:
        try:
            rows[name] = log.column(name)
        except InputError:  # it follows from columns that this log does not have
            continue
    return rows
