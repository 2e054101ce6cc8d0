"""The columns of a log, and the version of its layout; docs/reference/log.md describes both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from mpisim.comm.clock import PHASES
from mpisim.comm.ledger import COLUMNS as BITS

SCHEMA_VERSION = 1
DIGEST = "rows_sha256"  # the attribute with `journal.digest` of all rows

Column = tuple[str, type, str, str]  # name, type, units, description

ITERATE: list[Column] = [
    ("round", np.int64, "1", "k, the number of the iterate x^k; row 0 is the starting point"),
    ("loss", np.float64, "1", "f(x^k)"),
    ("grad_norm_sq", np.float64, "1", "|grad f(x^k)|^2, of the average over workers"),
]
REFERENCE: list[Column] = [
    ("suboptimality", np.float64, "1", "f(x^k) - f(x*)"),
    ("distance_sq", np.float64, "1", "|x^k - x*|^2"),
]
LEDGER: list[Column] = [
    (name, np.int64, "bit" if "bits" in name else "1", text) for name, text in BITS.items()
]
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
    (f"time_{phase}", np.float64, "s", f"seconds so far: {PHASE_TEXT[phase]}") for phase in PHASES
]
WORKERS: list[Column] = [
    ("rows", np.int64, "1", "samples of the worker"),
    ("bits_up", np.int64, "bit", "payload bits sent by the worker"),
    ("bad", np.int64, "1", "1 for a worker that attacks, else 0; with a table [attack]"),
]
LABELS: list[Column] = [  # of samples that are split by label: one for each, in ascending order
    (
        "label_0_share",
        np.float64,
        "1",
        "share of label 0 among its samples, which were split by label",
    )
]
CUMULATIVE = LEDGER + ORACLE + TIMES
LATER = {"messages_up"}  # columns that older logs of this version lack


def columns(reference: bool, more: Iterable[Column] = ()) -> list[Column]:
    """The columns of ``/rounds`` in the order of a row.

    reference : whether the minimiser is known; more : columns of metrics, which come last
    """
    return ITERATE + (REFERENCE if reference else []) + CUMULATIVE + list(more)


def worker_columns(names: Collection[str]) -> list[Column]:
    """The columns of ``/workers`` with these names, in the order of the log."""
    [(label, kind, unit, text)] = LABELS
    shares = sorted((n for n in names if n.startswith("label_")), key=lambda n: int(n[6:-6]))
    return [column for column in WORKERS if column[0] in names] + [
        (name, kind, unit, text.replace(label[6:-6], name[6:-6])) for name in shares
    ]


def older(schema: Iterable[Column]) -> list[Column]:
    """The columns without those in `LATER`."""
    return [column for column in schema if column[0] not in LATER]


REQUIRED = older(ITERATE + CUMULATIVE)


def row_type(schema: Sequence[Column]) -> np.dtype:
    """The type of a row in memory: a field for each column, by name, as HDF5 orders them."""
    return np.dtype(sorted((name, kind) for name, kind, *_ in schema))
