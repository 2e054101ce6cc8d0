"""The public face: what `import mpisim` offers, and what it costs."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import mpisim
from tests.comm.jobs import mpirun, needs_mpirun
from tests.helpers import columns, table

ROOT = Path(__file__).parents[1]
TABLES = table({"name": "diana", "stepsize": 0.1}, {"name": "qsgd", "s": 4}, workers=4)


def experiment(**changes) -> mpisim.Experiment:
    return mpisim.Experiment.from_dict(TABLES | changes)


def python(code: str, **options) -> str:
    job = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, **options
    )
    assert job.returncode == 0, job.stderr
    return job.stdout


def test_the_import_loads_nothing_heavy():
    heavy = "{'numpy', 'numba', 'h5py', 'scipy', 'mpi4py', 'matplotlib', 'sklearn'}"
    assert python(f"import sys, mpisim; print(sorted({heavy} & set(sys.modules)))") == "[]\n"


def test_every_name_is_there_and_has_a_docstring():
    for name in mpisim.__all__:
        assert getattr(mpisim, name).__doc__, name
    assert set(mpisim.__all__) <= set(dir(mpisim)) and mpisim.__version__


def test_no_module_inside_imports_the_root():
    inside = [p for p in (ROOT / "mpisim").rglob("*.py")]
    for path in inside:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert "mpisim" not in names, path


def test_a_run_returns_what_its_log_holds(tmp_path):
    result = mpisim.run(experiment(), log=tmp_path / "log.h5")
    assert result.status == "done" and result.log == tmp_path / "log.h5"
    assert result.attributes["stepsize"] == 0.1 and result.attributes["workers"] == 4
    logged = columns(result.log)
    assert result.rows.keys() == logged.keys()
    for name, values in result.rows.items():
        assert np.array_equal(values, logged[name]) and values.dtype == logged[name].dtype, name


def test_a_run_without_a_log_is_the_same_and_quiet(tmp_path, capfd):
    logged = mpisim.run(experiment(), log=tmp_path / "log.h5")
    kept = mpisim.run(experiment())
    assert capfd.readouterr() == ("", "")
    assert kept.log is None and np.array_equal(kept.x, logged.x)
    assert np.array_equal(kept.rows["bits_up"], logged.rows["bits_up"])
    mpisim.run(experiment(), quiet=False)
    assert "done: round 20 of 20" in capfd.readouterr().err


@needs_mpirun
@pytest.mark.mpi
def test_a_script_under_mpirun_has_the_same_result_on_every_rank(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import mpisim\nfrom mpi4py import MPI\n"
        f"result = mpisim.run(mpisim.Experiment.from_dict({TABLES!r}))\n"
        "values = result.x.sum().hex(), int(result.rows['bits_up'][-1]), result.status\n"
        "print(MPI.COMM_WORLD.gather(values)) if MPI.COMM_WORLD.rank == 0 else "
        "MPI.COMM_WORLD.gather(values)\n"
    )
    job = mpirun(3, str(script), cwd=ROOT)
    assert job.returncode == 0, job.stderr
    alone = mpisim.run(experiment())
    values = alone.x.sum().hex(), int(alone.rows["bits_up"][-1]), "done"
    assert ast.literal_eval(job.stdout.strip()) == [values] * 3


@needs_mpirun
@pytest.mark.mpi
def test_a_rank_that_fails_alone_ends_the_job(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import mpisim\nfrom mpi4py import MPI\n"
        "from mpisim.methods.estimators.diana import Diana\n"
        "original = Diana.estimate\n"
        "def estimate(self, x):\n"
        "    if self.star.round == 5 and MPI.COMM_WORLD.rank == 1:\n"
        "        raise ValueError('one bad rank')\n"
        "    return original(self, x)\n"
        "Diana.estimate = estimate\n"
        f"mpisim.run(mpisim.Experiment.from_dict({TABLES!r}))\n"
    )
    job = mpirun(3, str(script), cwd=ROOT)
    assert job.returncode != 0 and "one bad rank" in job.stderr


def test_guarantees_are_what_the_command_prints(capfd):
    from mpisim.cli import main

    text = mpisim.guarantees(experiment())
    settings = [f"{t}.{k}={v}" for t, keys in TABLES.items() for k, v in keys.items()]
    assert main(["theory", *(word for s in settings for word in ("--set", s))]) == 0
    assert capfd.readouterr().out.strip() == text.strip()


def test_a_method_of_ones_own():
    @mpisim.method("half-dcgd", label="DCGD, halved", optimizer="gd", share=0.25)
    class HalfDcgd(mpisim.Estimator):
        share: float = 0.5

        def start(self, x):
            return self.estimate(x)

        def estimate(self, x):
            return self.share * self.star.average(self.compress(self.oracle.gradients(x)))

        def theory_step(self, setting):
            return mpisim.Step(1 / setting.c.L, "half of what gradient descent takes")

    from mpisim.analysis import labels

    own = {"name": "half-dcgd", "stepsize": "theory"}
    result = mpisim.run(experiment(method=own, compressor={"name": "identity"}))
    assert result.attributes["method_share"] == 0.25
    assert result.attributes["stepsize_source"] == "half of what gradient descent takes"
    assert labels.method("half-dcgd") == "DCGD, halved"
    plain = {"name": "gd", "stepsize": result.attributes["stepsize"] / 4}
    other = mpisim.run(experiment(method=plain, compressor={}))
    assert np.allclose(result.x, other.x, rtol=1e-5)
