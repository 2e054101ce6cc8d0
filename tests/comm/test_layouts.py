"""The same experiment gives bit-identical logs on any number of ranks, in both layouts."""

from collections.abc import Iterator, Mapping

from mpisim.compressors import COMPRESSORS
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from tests.comm.jobs import ROOT, mpirun, needs_mpirun
from tests.comm.layouts import experiments


@needs_mpirun
def test_some_methods_and_compressors_on_1_2_3_and_6_ranks(seed):
    """One in forty of the experiments, drawn by the seed; `make trial` runs them all."""
    job = mpirun(6, "-m", "mpi4py", "-m", "tests.comm.layouts", str(seed), cwd=ROOT)
    assert job.returncode == 0, job.stdout[-3000:] + job.stderr[-3000:]
    assert job.stdout.count(" 0 differences") == 2


@needs_mpirun
def test_runs_and_sweeps_on_some_of_4_ranks():
    job = mpirun(4, "-m", "mpi4py", "-m", "tests.comm.subsets", cwd=ROOT)
    assert job.returncode == 0, job.stdout[-3000:] + job.stderr[-3000:]
    assert "4 ranks checked" in job.stdout


def test_all_methods_compressors_and_problems_take_part():
    """But for `torch`, which has layouts of its own: tests/problems/torch."""
    tables = list(experiments())
    identity = {"name": "identity"}
    compressors = [one.get("compressor", identity) for one in tables]
    compressors += [one["method"].get("hessian", identity) for one in tables]
    assert {name for one in compressors for name in names(one)} == built_in(COMPRESSORS)
    assert {one["problem"]["name"] for one in tables} == built_in(PROBLEMS) - {"torch"}
    paired = {name: ESTIMATORS[pair.estimator] for name, pair in METHODS.items()}
    assert {one["method"]["name"] for one in tables if "name" in one["method"]} == built_in(paired)


def built_in(kinds: Mapping[str, type]) -> set[str]:
    """The names of the package's own classes: other tests register plugins."""
    return {name for name, kind in kinds.items() if kind.__module__.startswith("mpisim.")}


def names(compressor: dict) -> Iterator[str]:
    yield compressor["name"]
    for inner in compressor.values():
        if isinstance(inner, dict):
            yield from names(inner)
