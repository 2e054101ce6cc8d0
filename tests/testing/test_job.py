"""`mpisim new job`: the batch script, with stand-ins for Slurm's commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpisim.cli import main

STAND_IN = '#!/bin/bash\necho "${{0##*/}}" "$PWD" "$@" >> "$MESSAGE"\nexit {code}\n'
SRUN = f"srun FOLDER --kill-on-bad-exit=0 --wait=60 {sys.executable} -m mpisim"
ARRAY = {"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_COUNT": "8"}


@pytest.fixture
def submit(tmp_path):
    """submit(*words, code=0, **variables): exit code, what Slurm's commands got, standard error.

    code : of srun
    """
    script, folder = tmp_path / "a" / "job.sbatch", tmp_path / "elsewhere"
    message = tmp_path / "message"
    assert main(["new", "job", str(script)]) == 0
    folder.mkdir()

    def run(*words, code=0, **variables):
        for name, status in (("srun", code), ("scontrol", 0)):
            Path(folder, name).write_text(STAND_IN.format(code=status))
            Path(folder, name).chmod(0o755)
        slurm = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_JOB_ID": "7", "MESSAGE": str(message)}
        path = {"PATH": f"{folder}:{os.environ['PATH']}", "USER": "someone"}
        job = subprocess.run(
            ["bash", str(script), *words],
            env=os.environ | path | slurm | variables,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
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
    assert (code, message) == (2, []) and error.startswith("job.sbatch: needs a command of mpisim")
