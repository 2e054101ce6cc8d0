"""The columns of a log, and the version of its layout; docs/reference/log.md describes both."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.core.schema import package_table

SCHEMA_VERSION = 1
DIGEST = "rows_sha256"  # the attribute with `journal.digest` of all rows
# values of evaluated_at, where a row's f and gradient are taken, and of clients_drawn
AT_SERVER, AT_WORKERS = "the server's x^k", "the x^k that all workers have"
REPLACED, NOT_REPLACED = "with replacement", "without replacement"

Column = tuple[str, type, str, str]  # name, type, units, description
Schema = Sequence[Column]


def _columns(table: dict[str, list[str]]) -> list[Column]:
    return [(name, getattr(np, kind), units, text) for name, (kind, units, text) in table.items()]


_TABLES = package_table(__file__, "columns.toml")
OF_METRICS = {name: _columns(table) for name, table in _TABLES.pop("metrics").items()}
ITERATE, REFERENCE, ORACLE, TIMES, WORKERS, LABELS = map(_columns, _TABLES.values())
LEDGER: list[Column] = [
    (name, np.int64, "bit" if "bits" in name else "1", text) for name, text in BITS.items()
]
CUMULATIVE = LEDGER + ORACLE + TIMES
REQUIRED = ITERATE + CUMULATIVE


def columns(reference: bool) -> list[Column]:
    """The columns of ``/rounds`` in the order of a row, which those of metrics follow.

    reference : whether the minimiser is known
    """
    return ITERATE + (REFERENCE if reference else []) + CUMULATIVE


def worker_columns(names: Collection[str]) -> list[Column]:
    """The columns of ``/workers`` with these names, in the order of the log."""
    [(label, kind, unit, text)] = LABELS
    shares = sorted((n for n in names if n.startswith("label_")), key=lambda n: int(n[6:-6]))
    return [column for column in WORKERS if column[0] in names] + [
        (name, kind, unit, text.replace(label[6:-6], name[6:-6])) for name in shares
    ]


def row_type(schema: Schema) -> np.dtype:
    """The type of a row in memory: a field for each column, by name, as HDF5 orders them."""
    return np.dtype(sorted((name, kind) for name, kind, *_ in schema))
