"""The runs of `mpisim check` on several ranks: its own job of mpirun, or the ranks it runs on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from mpisim.analysis.plugin.outcome import NotChecked
from mpisim.core.imports import PACKAGE

RANKS = 3
SECONDS = 300.0  # that the job may take
# More ranks than cores, and root in a container, as tools/env.openmpi says; others ignore them.
OPEN_MPI = {
    "PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def start(folder: Path) -> str:
    """Run the job in ``folder`` under mpirun; what went wrong, in a line.

    Raises `NotChecked` where there is no mpirun.
    """
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise NotChecked("there is no mpirun on PATH")
    command = [mpirun, "-n", str(RANKS), sys.executable, "-m", __name__, str(folder)]
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))
    job = subprocess.Popen(
        command,
        env=OPEN_MPI | os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = job.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        return f"runs on {RANKS} ranks have not ended after {SECONDS:g} s: do all ranks exchange?"
    return "" if job.returncode == 0 else _reason(said) or f"mpirun ended with {job.returncode}"


def _reason(said: str) -> str:
    """The line of mpisim in what a job printed, with the last line of a traceback below it."""
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    ours = [i for i, line in enumerate(lines) if line.startswith("mpisim: ")]
    if not ours:
        return lines[-1] if lines else ""
    below = lines[ours[-1] + 1 :]
    error = next((line for line in below if not line.startswith((" ", "Traceback"))), "")
    return lines[ours[-1]].removeprefix("mpisim: ") + (f": {error}" if error else "")


def main(folder: Path) -> int:
    """What each rank of the job does."""
    import json

    from mpisim.analysis.plugin import registered
    from mpisim.analysis.plugin.runs import JOB, run_job
    from mpisim.runs.host import guarded

    def body(comm) -> int:
        registered.load(json.loads((folder / JOB).read_text())["plugins"])
        run_job(folder, comm)
        return 0

    return guarded(body)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
