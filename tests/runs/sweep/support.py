"""Small sweeps, run in this process."""

from pathlib import Path

import pytest
from mpi4py import MPI

from mpisim.runs.sweep import executor, grid, runner
from mpisim.runs.sweep.points import Point

BASE = """
[problem]
name = "nonconvex-loss"
data = "sample"
workers = 3
[method]
name = "marina"
stepsize = "theory"
[compressor]
name = "randk"
k = 10
[run]
rounds = 12
"""


def write(folder: Path, sweep: str = "", base: str = BASE) -> Path:
    """An experiment file with a [sweep] table."""
    file = folder / "grid.toml"
    file.write_text(f"{base}\n[sweep]\n{sweep}\n")
    return file


def run(file: Path, folder: Path, *settings: str) -> list[Point]:
    """Sweep the file's grid into ``folder``."""
    _, tables = grid.read(file, list(settings))
    return executor.sweep(folder, tables, MPI.COMM_SELF)


def count_runs(patch: pytest.MonkeyPatch) -> list[Path]:
    """A list that grows by the log of each run, from now on."""
    ran: list[Path] = []
    alone, together = runner.run_rounds, runner.run_together

    def counted(setups, outputs, signals):
        several = isinstance(outputs, list)
        ran.extend(output.log for output in (outputs if several else [outputs]))
        return (together if several else alone)(setups, outputs, signals)

    patch.setattr(runner, "run_rounds", counted)
    patch.setattr(runner, "run_together", counted)
    return ran
