"""Runs the experiment of a log again and finds the first round and column that differ."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpisim.analysis.verify.checks import worker_difference
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import Log, last_iterate, read
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.signals import COMPLETE, StopSignals

if TYPE_CHECKING:
    from mpi4py import MPI


def tables_of(log: Log) -> dict[str, Any]:
    """The experiment of a log, up to its last row, without the plugins that it names.

    For a run that did not end, parameters are those that it had resolved, as some depend on
    ``run.rounds``.
    """
    tables = {name: dict(t) if isinstance(t, dict) else t for name, t in log.config.items()}
    tables.pop("plugin", None)
    tables["problem"].setdefault("workers", log.n)
    tables["run"]["checkpoint_seconds"] = 1e9
    if log.attrs.get("status") not in COMPLETE:
        tables["run"]["rounds"] = int(log.columns["round"][-1])
        for key in tables["method"]:
            tables["method"][key] = log.attrs.get(f"method_{key}", tables["method"][key])
    return tables


def rerun(tables: dict[str, Any], log: Log | None, comm: MPI.Intracomm) -> tuple[str, list[str]]:
    """The status of a second run, and the differences. Collective; ``log`` is rank 0's."""
    with ExitStack() as stack, StopSignals("start it again") as signals:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if comm.rank == 0 else ""
        again = Path(comm.bcast(folder)) / "rerun.h5"
        result = run_rounds(Setup(parse(tables), comm), Output(again), signals)
        if log is None or result.status not in COMPLETE:
            return result.status, []
        return result.status, compare(log, read(again))


def compare(log: Log, again: Log) -> list[str]:
    """What differs in the first row that does, in the bits of a worker and in x; no clocks."""
    found = []
    rows = min(log.rows, again.rows)
    names = [n for n in log.columns if n in again.columns and not n.startswith("time_")]
    first = {name: _first(log.columns[name][:rows], again.columns[name][:rows]) for name in names}
    row = min(first.values())
    if row < rows:
        round = log.columns["round"][row]
        for name in (name for name in names if first[name] == row):
            one, two = log.columns[name][row].item(), again.columns[name][row].item()
            found.append(f"round {round}, {name}: the log has {one!r}, the rerun {two!r}")
    elif log.rows != again.rows:
        found.append(f"the log has {log.rows} rows, the rerun {again.rows}")
    found += worker_difference(log, again.workers["bits_up"], "the rerun")
    one, two = last_iterate(log.path), last_iterate(again.path)
    same = one is None or two is None or np.array_equal(one, two, equal_nan=True)
    if not found and not same:
        found.append("final/x differs, and no column does")
    software = ("package_version", "python", "numpy", "scipy", "numba", "platform")
    versions = ((name, log.attrs.get(name), again.attrs.get(name)) for name in software)
    changed = [f"{name} was {old}, is {new}" for name, old, new in versions if old != new]
    return found + changed if found else []


def _first(one: np.ndarray, two: np.ndarray) -> int:
    """The first place where they differ; their length if they do not."""
    equal = (one == two) | ((one != one) & (two != two))
    return int(np.argmin(np.append(equal, False)))
