"""Sweeps on two ranks, and errors that not all ranks have."""

import json

import h5py

from mpisim.runs.sweep import queue
from tests.comm.jobs import mpirun, needs_mpirun
from tests.helpers import columns
from tests.runs.sweep.support import run, write

SWEEP = """
folder = "logs"
compressor.k = [5, 1000]
[[sweep.methods]]
method = { name = "marina" }
[[sweep.methods]]
method = { name = "diana", stepsize = 1e9 }
problem = { name = "least-squares" }
run = { rounds = 60 }
"""

PLUGIN = """
import mpisim.comm.job
from mpi4py import MPI
from mpisim.core.errors import InputError
from mpisim.problems.base import PROBLEMS, problem

mpisim.comm.job.PATIENCE_SECONDS = 0.5

@problem("missing")
class Missing(PROBLEMS["nonconvex-loss"]):
    def load(self, *arguments):
        if MPI.COMM_WORLD.rank == 1:
            raise InputError("no data on this machine")
        super().load(*arguments)
"""


@needs_mpirun
def test_two_ranks_run_skip_and_record_alike(tmp_path):
    write(tmp_path, SWEEP)
    job = mpirun(2, "-m", "mpisim", "sweep", "grid.toml", cwd=tmp_path)
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("[1/4]") == 1
    assert "4 points: 1 done, 2 skipped, 1 diverged" in job.stdout
    points = json.loads((tmp_path / "logs" / "sweep.json").read_text())["points"]
    assert [p["exit_code"] for p in points] == [0, 2, 3, 2]
    assert not list((tmp_path / "logs").glob(f"{queue.NAME}*"))
    alone = run(tmp_path / "grid.toml", tmp_path / "alone")
    one, two = columns(alone[0].log), columns(tmp_path / points[0]["log"])
    assert points[0]["name"] == alone[0].name
    assert all(n.startswith("time_") or (one[n] == two[n]).all() for n in one)
    with h5py.File(tmp_path / points[0]["log"]) as log:
        assert log.attrs["side_by_side"] == 2 and log.attrs["ranks"] == 1
    with h5py.File(alone[0].log) as log:
        assert log.attrs["side_by_side"] == 1


@needs_mpirun
def test_an_error_on_one_rank_ends_the_job(tmp_path):
    write(tmp_path, "folder = 'logs'")
    (tmp_path / "missing.py").write_text(PLUGIN)
    arguments = ["sweep", "grid.toml", "--plugin", "missing", "--set", "problem.name=missing"]
    arguments += ["--ranks-per-run", "2"]
    job = mpirun(2, "-m", "mpisim", *arguments, cwd=tmp_path)
    assert job.returncode == 2
    assert job.stderr.count("mpisim: no data on this machine") == 1
