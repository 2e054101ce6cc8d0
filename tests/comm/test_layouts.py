"""The same experiment gives bit-identical logs on any number of ranks, in both layouts."""

from tests.comm.jobs import ROOT, mpirun, needs_mpirun


@needs_mpirun
def test_every_method_and_compressor_on_1_2_3_and_6_ranks():
    job = mpirun(6, "-m", "tests.comm.layouts", cwd=ROOT)
    assert job.returncode == 0, job.stdout[-3000:] + job.stderr[-3000:]
    assert job.stdout.count(" 0 differences") == 2
