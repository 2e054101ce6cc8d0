"""What `make permk-mg` measures: L_+ and L_± of linear regression over random splits of mg.

PermK paper, A.8.1. f_i(w) = 1/2 |X_i w - y_i|^2 on two workers, 693 and 692 random rows each.
Measured are the splits of mg_scale; of mg itself where its file is; and of mg as it can be told
from mg_scale: svm-scale maps the range of each feature to [-1, 1], features and label of mg are
values of one time series, and labels are not scaled, so every feature gets the labels' range back.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from mpi4py import MPI

from mpisim.analysis.papers.permk_mg import FILE, INFERRED, UNSCALED
from mpisim.comm.clock import Clock
from mpisim.comm.star import Star
from mpisim.core.errors import InputError
from mpisim.core.rng import Streams
from mpisim.core.round import Round
from mpisim.problems.data import arrange, libsvm
from mpisim.problems.data.content import read_content
from mpisim.problems.data.find import find
from mpisim.problems.data.libsvm import Table
from mpisim.problems.data.shards import Shards
from mpisim.problems.least_squares import LeastSquares
from mpisim.runs.sweep.points import write_json
from mpisim.theory.smoothness import Constants, constants
from mpisim.wire.base import Precision

WORKERS = 2
DOUBLE = np.dtype(np.float64)


def measure(folder: Path, splits: int) -> None:
    """FOLDER/splits.json: {data: {"L_plus": [...], "L_pm": [...]}}, an entry for each split."""
    scaled = load("mg_scale")
    tables = {"mg_scale": scaled, INFERRED: unscaled(scaled)}
    try:
        tables[UNSCALED] = load(UNSCALED)
    except InputError:
        print(f"{UNSCALED}: left out, it is not here; `mpisim data fetch {UNSCALED}` downloads it")
    streams = Streams(0)
    precision, round = Precision(DOUBLE, DOUBLE), Round(0)
    star = Star(MPI.COMM_SELF, WORKERS, "shared", streams, precision, Clock(), round)
    found = {}
    for name, table in tables.items():
        every = [of_split(table, seed, star) for seed in range(1, splits + 1)]
        found[name] = {"L_plus": [c.L_plus for c in every], "L_pm": [c.L_pm for c in every]}
        print(f"{name}: {splits} splits of {table.rows} rows", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, found)


def load(name: str) -> Table:
    """The rows of a data set; `InputError` where it is not here."""
    path = find(name)
    return libsvm.parse(read_content(path), str(path))


def unscaled(table: Table) -> Table:
    """Every feature from [-1, 1] to the range of the labels."""
    low, high = table.labels.min(), table.labels.max()
    if len(table.data) != table.rows * table.features:
        raise InputError("mg_scale: has features that are left out; all must be there")
    return dataclasses.replace(table, data=low + (table.data + 1) / 2 * (high - low))


def of_split(table: Table, seed: int, star: Star) -> Constants:
    """The constants with ``split = "shuffled"``, ``remainder = "spread"`` and this seed."""
    rows = arrange.order_rows(table, "shuffled", seed)
    starts, stops = arrange.row_ranges(rows.rows, WORKERS, "shuffled", "spread")
    shards = Shards(**vars(rows), starts=starts, stops=stops, name="mg", sha256="")
    problem = LeastSquares(data="mg", workers=WORKERS, reduction="sum")
    problem.seed = seed
    problem.attach(shards, WORKERS, 0, DOUBLE, dense=True)
    return constants(problem, star)
