"""Small logs made by hand, to the schema that docs describe."""

import itertools
from pathlib import Path

import h5py
import numpy as np
import pytest

TEMPLATE = """\
title = "{title}"
[problem]
name = "nonconvex-loss"
data = "mushrooms"
workers = 5
[method]
name = "{method}"
stepsize = {stepsize}
[compressor]
{compressor}
[run]
rounds = {rounds}
seed = {seed}
layout = "shared"
"""
PHASES = ("compute", "compress", "encode", "communicate", "decode", "server", "optimizer", "other")


def write_log(
    path: Path,
    method="marina",
    compressor='name = "randk"\nk = 10',
    seed=1,
    rounds=50,
    rate=0.1,
    stepsize='"theory"',
    title="",
    columns=None,
    attrs=None,
    drop=(),
) -> Path:
    """Write it; ``columns`` replaces or adds columns."""
    k = np.arange(rounds + 1)
    values = {
        "round": k,
        "loss": 1.0 / (1 + k),
        "grad_norm_sq": np.exp(-rate * k),
        "bits_up": 5 * 320 * k + 5 * 4000,
        "bits_down": 5 * 4000 * k,
        "bits_up_max": 320 * k,
        "framing_bits_up": 5 * 8 * k,
        "framing_bits_down": 5 * 8 * k,
        "paper_bits_up": 5 * 320 * k,
        "messages_up": 5 * k + 5,
        "oracle_calls": 8120 * (k + 1),
        **{f"time_{p}": (i + 1) * 1e-3 * k for i, p in enumerate(PHASES)},
    } | (columns or {})
    keys = {"title": title, "method": method, "compressor": compressor, "seed": seed}
    config = TEMPLATE.format(rounds=rounds, stepsize=stepsize, **keys)
    root = {
        "title": title,
        "command": "mpisim run e.toml",
        "config": config,
        "method": method,
        "seed": seed,
        "ranks": 2,
        "workers": 5,
        "dimension": 113,
        "status": "done",
        "stepsize": 0.125,
        "stepsize_source": "MARINA, Theorem 2.1",
        "start": "2020-01-01T00:00:00+00:00",
        "end": "2020-01-01T00:01:05+00:00",
    } | (attrs or {})
    with h5py.File(path, "w") as file:
        file.attrs.update(root)
        for name, data in values.items():
            if name not in drop:
                column = file.create_dataset(f"rounds/{name}", data=data)
                column.attrs["units"] = "bit" if "bits" in name else "s" if "time" in name else "1"
                column.attrs["description"] = f"what {name} is"
        file["final/x"] = np.zeros(113)
        file["workers/rows"] = np.full(5, 200)
    return path


@pytest.fixture
def make_log(tmp_path):
    """A function that writes a log, as `write_log` does, and returns its path."""
    numbers = itertools.count(1)
    return lambda *given, **keys: write_log(tmp_path / f"log{next(numbers)}.h5", *given, **keys)
