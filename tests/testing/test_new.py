"""`mpisim new`: plugins that pass `mpisim check` as they are written, and a batch script."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.cli.names import SETTINGS
from mpisim.core.errors import InputError
from mpisim.methods.method_table import make_method, needs_compressor
from mpisim.testing.new import create
from tests.comm.jobs import ended
from tests.helpers import sampled
from tests.resumes import KEYS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a plugin of each kind, and their tests."""
    folder = tmp_path_factory.mktemp("made")
    for kind in SETTINGS:
        assert main(["new", kind, f"my-{kind}", "--folder", str(folder)]) == 0
    return folder


def test_what_is_made_has_no_placeholders(made):
    names = [name for kind in SETTINGS for name in (f"my_{kind}.py", f"test_my_{kind}.py")]
    assert sorted(path.name for path in made.iterdir()) == sorted(names)
    for path in made.iterdir():
        assert not re.search("NAME|FILE|CLASS|LABEL", path.read_text())


CHECKED = {
    "my_compressor.py": "compressor my-compressor (k = 3)",
    "my_estimator.py": "method my-estimator",
    "my_method.py": "method my-method (local_steps = 2)",
    "my_problem.py": "problem my-problem",
    "small_fedavg.py": "method small-fedavg",
}


@pytest.mark.mpi
def test_what_is_made_passes_mpisim_check_on_several_ranks(made):
    """One of the files, drawn by the seed, and one that has nothing to check on ranks."""
    files = [*sampled(CHECKED, 1), "my_metric.py"]
    assert {f"my_{kind}.py" for kind in SETTINGS} <= {*CHECKED, "my_metric.py"}
    places = {"small_fedavg.py": Path(__file__).parent}
    paths = (str(places.get(file, made) / file) for file in files)
    job = ended(sys.executable, "-m", "mpisim", "check", *paths, cwd=made)
    lines = job.stdout.splitlines()
    for subject in (CHECKED[file] for file in files[:-1]):
        for what in ("run in two parts", "same log on 3 ranks", "begun on 1 rank and ended on 3"):
            assert any(line.startswith(f"ok      {subject}: ") and what in line for line in lines)


def test_what_is_made_passes_its_tests_and_ruff(made):
    [kind] = sampled(SETTINGS, 1)
    tests = ["pytest", "-q", "-p", "no:cacheprovider", f"test_my_{kind}.py"]
    lint = ["ruff", "check", "--isolated", "--select", "E,F,I,B,UP", "--line-length", "100", "."]
    for command in (tests, lint):
        # no mpirun, which the test above starts
        ended(sys.executable, "-m", *command, cwd=made, PATH="")


def test_a_copy_starts_as_the_method_that_it_is_like(tmp_path, monkeypatch):
    """Its class is the method's, under another name, with what it needs imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for like in ("scaffold", "cd-adam"):
        name = f"my-{like}"
        path, _ = create("method", name, tmp_path, like)
        import_module(path.stem)
        copy, original = (
            make_method({"name": n, "stepsize": 0.1} | KEYS.get(like, {})) for n in (name, like)
        )
        same = {"name": like, "estimator": original.estimator.name}
        assert copy.table() | same == original.table()
        assert needs_compressor(name) == needs_compressor(like) == (like == "cd-adam")
    with pytest.raises(InputError, match=r"^--like: unknown name 'fedavgg'; did"):
        create("method", "mine", tmp_path, "fedavgg")


STAND_IN = '#!/bin/bash\necho "${{0##*/}}" "$PWD" "$@" >> "$MESSAGE"\nexit {code}\n'
SRUN = f"srun FOLDER --kill-on-bad-exit=0 --wait=60 {sys.executable} -m mpisim"
ARRAY = {"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_COUNT": "8"}


@pytest.fixture
def submit(tmp_path):
    """submit(*words, code=0, **variables): exit code, what Slurm's commands got, standard error.

    code : of srun
    """
    script, folder = tmp_path / "a" / "night.sbatch", tmp_path / "elsewhere"
    message = tmp_path / "message"
    assert main(["new", "job", str(script)]) == 0
    folder.mkdir()

    def run(*words, code=0, **variables):
        for name, status in (("srun", code), ("scontrol", 0)):
            Path(folder, name).write_text(STAND_IN.format(code=status))
            Path(folder, name).chmod(0o755)
        slurm = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_JOB_ID": "7", "MESSAGE": str(message)}
        path = {"PATH": f"{folder}:{os.environ['PATH']}", "USER": "someone"}
        variables = path | slurm | variables
        job = ended("bash", str(script), *words, code=None, cwd="/", **variables)
        lines = message.read_text().splitlines() if message.exists() else []
        return job.returncode, [line.replace(str(folder), "FOLDER") for line in lines], job.stderr

    return run


def test_a_run_goes_on_from_its_checkpoint_in_the_folder_of_sbatch(submit):
    code, message, _ = submit("run", "e.toml", "--out", "log.h5")
    assert (code, message) == (0, [f"{SRUN} run e.toml --out log.h5 --resume"])


def test_a_job_that_slurm_stops_queues_itself_again(submit):
    code, message, _ = submit("run", "e.toml", code=143)
    assert (code, message[1:]) == (143, ["scontrol FOLDER requeue 7"])


def test_a_task_of_an_array_runs_its_share_of_a_sweep(submit):
    assert submit("sweep", "g.toml", **ARRAY)[1] == [f"{SRUN} sweep g.toml --shard 3/8"]
    assert submit("sweep", "g.toml")[1][1:] == [f"{SRUN} sweep g.toml"]


def test_without_a_command_there_is_a_line(submit):
    code, message, error = submit()
    assert (code, message) == (2, [])
    assert error.startswith("night.sbatch: needs a command of mpisim: sbatch night.sbatch run")
