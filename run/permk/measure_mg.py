"""Measures L_+ and L_± of linear regression over random splits of mg, for mg.py.

PermK paper, A.8.1: f_i(w) = 1/2 |X_i w - y_i|^2 on two workers with 693 and 692 random rows.
Three data sets are split: mg_scale; mg, if its file is there; and mg as inferred from mg_scale.
svm-scale maps the range of each feature to [-1, 1] and leaves the labels. In mg features and label
are values of one time series, so every feature gets the range of the labels back.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mpisim.comm.communicators import OneProcess
from mpisim.core.errors import InputError
from mpisim.core.files import write_json
from mpisim.problems.data import libsvm
from mpisim.problems.data.content import read_content
from mpisim.problems.data.find import available, find
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from mpisim.theory.smoothness import Constants, constants

from .mg import FILE, INFERRED, UNSCALED

FEATURES = 6


def measure(folder: Path, splits: int) -> None:
    """FOLDER/splits.json: {data: {"L_plus": [...], "L_pm": [...]}}, an entry for each split."""
    with TemporaryDirectory() as temporary:
        inferred = Path(temporary) / "mg"
        features, labels = unscaled()
        lines = (
            " ".join([repr(y), *(f"{j}:{value!r}" for j, value in enumerate(row, 1))])
            for y, row in zip(labels.tolist(), features.tolist(), strict=True)
        )
        inferred.write_text("\n".join(lines) + "\n")
        data = {"mg_scale": "mg_scale", INFERRED: str(inferred)}
        if available(UNSCALED):
            data[UNSCALED] = UNSCALED
        else:
            print(f"{UNSCALED}: left out; `mpisim data fetch {UNSCALED}` downloads it")
        values = {}
        for name, path in data.items():
            every = [of_split(path, seed) for seed in range(1, splits + 1)]
            values[name] = {"L_plus": [c.L_plus for c in every], "L_pm": [c.L_pm for c in every]}
            print(f"{name}: {splits} splits of {len(labels)} rows", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / FILE, values)


def unscaled() -> tuple[np.ndarray, np.ndarray]:
    """mg_scale, (rows, 6) and (rows,), features from [-1, 1] to the range of the labels."""
    path = find("mg_scale")
    table = libsvm.parse(read_content(path), str(path))
    low, high = table.labels.min(), table.labels.max()
    if len(table.data) != table.rows * FEATURES:
        raise InputError("mg_scale: has features that are left out; all must be there")
    scaled = table.data.reshape(table.rows, FEATURES)
    return low + (scaled + 1) / 2 * (high - low), table.labels


def of_split(data: str, seed: int) -> Constants:
    """The constants of a random split with this seed."""
    problem = {"name": "least-squares", "data": data, "reduction": "sum", "workers": 2}
    split = {"split": "shuffled", "remainder": "spread"}
    method = {"name": "gd", "stepsize": 1.0}
    tables = {"problem": problem | split, "method": method, "run": {"rounds": 0, "seed": seed}}
    setup = Setup(parse(tables), OneProcess())  # type: ignore[arg-type]
    return constants(setup.problem, setup.star)
