"""Runs on fewer ranks than the job has, while the others sleep."""

from tests.comm.jobs import ROOT, mpirun, needs_mpirun


@needs_mpirun
def test_runs_and_sweeps_on_some_of_4_ranks():
    job = mpirun(4, "-m", "tests.comm.subsets", cwd=ROOT)
    assert job.returncode == 0, job.stdout[-3000:] + job.stderr[-3000:]
    assert "4 ranks checked" in job.stdout
