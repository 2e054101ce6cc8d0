"""Compiles mpisim's kernels once, so that the ranks of a first job do not all compile them at once.

Usage: .venv/bin/python tools/warm_up.py

Runs a few rounds of every problem, method and compressor, in this one process, on a generated
sample. Needs no network. Compiled kernels lie in __pycache__ beside their sources; what is not
compiled here is compiled when it is first used, so a failure is only told.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import tempfile
from pathlib import Path

from mpisim.cli import main as command_line
from mpisim.compressors.base import COMPRESSORS
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.names import METHODS, UNCOMPRESSED
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems.data.sample import write_sample
from mpisim.runs.experiment import PROBLEMS

# Something for every key that has no default, by its type.
VALUES = {"int": 1, "int | float": 1, "float": 0.5}

# Problems on something else than the sample.
IMAGES = ["problem.data=sample", "problem.images=40", "problem.code_size=2"]
DATA = {
    "problem.name=quadratic": [],
    "problem.name=autoencoder": [*IMAGES, "method.stepsize=1e-4"],
}


def required(cls: type) -> dict[str, str]:
    """Keys of a named class that have no default, and their types."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    return {
        f.name.rstrip("_"): getattr(f.type, "__name__", str(f.type))
        for f in fields
        if f.init and f.default is f.default_factory is dataclasses.MISSING
    }


def compressor_settings(name: str) -> list[str]:
    """``--set`` values that make a compressor."""
    keys = required(COMPRESSORS[name])
    return [f"compressor.name={name}", *(f"compressor.{k}={VALUES[t]}" for k, t in keys.items())]


def method_settings(name: str) -> list[str]:
    """``--set`` values that make a method."""
    keys = required(ESTIMATORS[METHODS[name][0]]) | required(OPTIMIZERS[METHODS[name][1]])
    return [f"method.name={name}", *(f"method.{k}={VALUES[t]}" for k, t in keys.items())]


def experiments() -> list[list[str]]:
    """Settings that together use every kernel of a usual run."""
    runs = [
        ["method.name=gd", f"problem.name={problem}"] for problem in PROBLEMS if problem != "torch"
    ]
    # "theory" uses the kernels of smoothness constants; one worker has arrays of another layout
    theory = ["method.name=marina", "method.stepsize=theory", "problem.name=nonconvex-loss"]
    for workers in (1, 2):
        runs.append([*theory, f"problem.workers={workers}", *compressor_settings("randk")])
    for method in METHODS:
        compressor = [] if method in UNCOMPRESSED else compressor_settings("randk")
        runs.append([*method_settings(method), "problem.name=logistic", *compressor])
    for name in COMPRESSORS:
        if not set(required(COMPRESSORS[name]).values()) <= VALUES.keys():
            continue  # a wrapper, which needs a table
        for method in ("dcgd", "ef21"):
            settings = compressor_settings(name)
            runs.append([f"method.name={method}", "problem.name=logistic", *settings])
    return runs


def main() -> int:
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        data = Path(folder) / "sample"
        write_sample(data)
        common = ["problem.workers=2", "method.stepsize=0.01", "run.rounds=20"]
        for number, settings in enumerate(experiments()):
            problem = next(word for word in settings if word.startswith("problem.name="))
            words = [*common, *DATA.get(problem, [f"problem.data={data}"]), *settings]
            flags = [word for setting in words for word in ("--set", setting)]
            code = command_line(["run", *flags, "--out", str(Path(folder) / f"{number}.h5")])
            failed += code != 0
    if failed:
        print(f"warm_up.py: {failed} runs failed; their kernels compile later", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
