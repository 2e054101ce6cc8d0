"""Real mpirun jobs for tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HANG_SECONDS = 600.0  # guards against what hangs; no test asserts that something is quick
ROOT = Path(__file__).resolve().parents[2]

needs_mpirun = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="mpirun is not on the PATH"
)


def environment() -> dict[str, str]:
    """This process's environment, with what Open MPI needs for root and oversubscription."""
    extra = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    return os.environ | extra


def ended(
    *command: str,
    code: int | None = 0,
    cwd: Path | str = ROOT,
    timeout: float | None = HANG_SECONDS,
    **variables: str,
) -> subprocess.CompletedProcess:
    """Run a command with these variables; output as text. Its exit code must be ``code``."""
    options = {"cwd": cwd, "env": environment() | variables, "timeout": timeout}
    job = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert code in (None, job.returncode), job.stdout + job.stderr
    return job


def python(code: str, *words: str, **variables: str) -> str:
    """What this code prints in a process of its own."""
    return ended(sys.executable, "-c", code, *words, **variables).stdout


def mpirun(ranks: int, *arguments: str, **options) -> subprocess.CompletedProcess:
    """`ended` for ``python ARGUMENTS`` on ``ranks`` ranks."""
    return ended("mpirun", "-n", str(ranks), sys.executable, *arguments, **options)


def start(ranks: int, *arguments: str, **options) -> subprocess.Popen:
    """Start it and return at once, in a process group of its own; one rank without mpirun."""
    launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    options = {"env": environment(), "start_new_session": True} | options
    return subprocess.Popen([*launcher, sys.executable, *arguments], **options)
