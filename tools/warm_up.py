"""Compiles mpisim's kernels once, so that the ranks of a first job do not all compile them at once.

Usage: .venv/bin/python tools/warm_up.py

Runs a few rounds of every problem, method and compressor, on a generated sample, in as many
processes as there are cores, up to four, without a network. Compiled kernels lie in __pycache__
beside their sources. What is not compiled here is compiled when it is first used, so a run that
fails here is only reported.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import mpisim
from mpisim.compressors.base import COMPRESSORS
from mpisim.core.machine import usable_cores
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS, needs_compressor
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems.data.sample import write_sample
from mpisim.runs.experiment import PROBLEMS

Table = dict[str, Any]
RANDK: Table = {"name": "randk", "k": 1}
DEALING = {
    "compressed-scaffnew": {"name": "permk", "groups": 2},
    "tamuna": {"name": "pattern", "s": 2},
}
# A value for every key without a default, by its type. Wrappers are left out.
VALUES = {"int": 1, "int | float": 1, "float": 0.5, "Compressor": RANDK}
KEYS: dict[str, Table] = {"fednl-ls": {"regularisation": 0.1}}  # that it cannot do without
SAMPLE = {"data": "sample"}
PROCESSES = 4  # at most; more would compile the same kernels at the same time
SHOWN = 15  # experiments from one line of progress to the next
DATA: dict[str, Table] = {
    "quadratic": {},
    "autoencoder": {"data": "sample", "images": 40, "code_size": 2},
}


def required(*kinds: type) -> dict[str, str]:
    """The keys of these classes that have no default, and their types."""
    return {
        f.name.rstrip("_"): getattr(f.type, "__name__", str(f.type))
        for kind in kinds
        for f in dataclasses.fields(kind)  # type: ignore[arg-type]
        if f.init and f.default is f.default_factory is dataclasses.MISSING
    }


def table(name: str, *kinds: type) -> Table:
    """A table for what is called ``name``."""
    return {"name": name} | {key: VALUES[kind] for key, kind in required(*kinds).items()}


def experiments() -> Iterator[tuple[Table, Table, Table]]:
    """Problem, method and compressor of runs that together use every kernel of a usual run."""
    gd, logistic = {"name": "gd", "stepsize": 1e-4}, {"name": "logistic"} | SAMPLE
    for name in PROBLEMS:
        if name != "torch":
            yield {"name": name} | DATA.get(name, SAMPLE), gd, {}
    # "theory" uses the kernels of smoothness constants; one worker has arrays of another layout
    for workers in (1, 2):
        problem = {"name": "nonconvex-loss", "workers": workers} | SAMPLE
        yield problem, {"name": "marina", "stepsize": "theory"}, RANDK
    for name, pair in METHODS.items():
        method = table(name, ESTIMATORS[pair.estimator], OPTIMIZERS[pair.optimizer])
        method |= KEYS.get(name, {})
        compressor = DEALING.get(name, RANDK)
        yield logistic, method, compressor if needs_compressor(name) else {}
    for name, kind in COMPRESSORS.items():
        if name == "symmetric-rank-k":  # it compresses Hessians alone
            yield logistic, {"name": "fednl", "hessian": table(name, kind)}, {}
        elif set(required(kind).values()) <= VALUES.keys() - {"Compressor"}:
            yield logistic, {"name": "ef21"}, table(name, kind)


def run(tables: Table) -> str:
    """Run an experiment, and return what went wrong, if anything."""
    try:
        mpisim.run(mpisim.Experiment.from_dict(tables))
    except Exception as error:
        names = [table["name"] for key, table in tables.items() if key != "run" and table]
        return f"warm_up.py: {', '.join(names)}: {error}"
    return ""


def main() -> int:
    """Run all of them; always 0."""
    several = []
    for problem, method, compressor in experiments():
        tables = {"problem": {"workers": 2} | problem, "method": {"stepsize": 0.01} | method}
        several.append(tables | {"compressor": compressor, "run": {"rounds": 20}})
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder) / "sample")
        count, data = min(PROCESSES, len(usable_cores())), {"MPISIM_DATA": folder}
        with ProcessPoolExecutor(count, None, os.environ.update, (data,)) as processes:
            for i, mistake in enumerate(processes.map(run, several)):
                if i % SHOWN == 0:
                    print(f"      {i} of {len(several)} experiments", flush=True)
                if mistake:
                    print(mistake, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
