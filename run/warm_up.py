"""Compiles mpisim's kernels once, so that the ranks of a first job do not all compile them at once.

Usage: .venv/bin/python run/warm_up.py

Runs a few rounds of every problem, method and compressor, in this one process, on a generated
sample.
Needs no network. Compiled kernels lie in __pycache__ beside their sources; what is not compiled
here is compiled when it is first used, so a failure is only told.
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
from mpisim.config import PROBLEMS
from mpisim.data.sample import write_sample
from mpisim.methods import METHODS, UNCOMPRESSED

PARAMETERS = {int: 2, float: 0.5, "int": 2, "float": 0.5}


def compressor_settings(name: str) -> list[str]:
    """``--set`` values for a compressor, with something for each key that has no default."""
    keys = [
        f"compressor.{field.name}={PARAMETERS[field.type]}"
        for field in dataclasses.fields(COMPRESSORS[name])  # type: ignore[arg-type]
        if field.default is dataclasses.MISSING and field.type in PARAMETERS
    ]
    return [f"compressor.name={name}", *keys]


def can_be_named(name: str) -> bool:
    """Whether numbers alone make a compressor; a wrapper needs a table."""
    fields = dataclasses.fields(COMPRESSORS[name])  # type: ignore[arg-type]
    return all(f.default is not dataclasses.MISSING or f.type in PARAMETERS for f in fields)


def experiments() -> list[list[str]]:
    """Settings that together use every kernel of a usual run."""
    runs = [["method.name=gd", f"problem.name={problem}"] for problem in PROBLEMS]
    # "theory" uses the kernels of smoothness constants; one worker has arrays of another layout
    theory = ["method.name=marina", "method.stepsize=theory", "problem.name=nonconvex-loss"]
    for workers in (1, 2):
        runs.append([*theory, f"problem.workers={workers}", *compressor_settings("randk")])
    for method in METHODS:
        compressor = [] if method in UNCOMPRESSED else compressor_settings("randk")
        runs.append([f"method.name={method}", "problem.name=logistic", *compressor])
    for name in COMPRESSORS:
        if not can_be_named(name):
            continue
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
        common = [f"problem.data={data}", "problem.workers=2", "method.stepsize=0.01"]
        for number, settings in enumerate(experiments()):
            words = [*common, "run.rounds=20", *settings]
            flags = [word for setting in words for word in ("--set", setting)]
            code = command_line(["run", *flags, "--out", str(Path(folder) / f"{number}.h5")])
            failed += code != 0
    if failed:
        print(f"warm_up.py: {failed} runs failed; their kernels compile later", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
