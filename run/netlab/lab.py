"""What runs in the lab: the crossover's grid, at several speeds, and the cases of fleet.py."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mpisim.analysis.study import Grid, Job
from mpisim.comm.links import parse
from mpisim.core.errors import InputError, MpisimError
from mpisim.runs.sweep.points import Point

from .fleet import CASES, METHODS, logs_of, size

sys.path.append(str(Path(__file__).resolve().parents[2]))  # tools/ is no part of the package

HOSTS = 3
# Seeds at each speed. Short runs are repeated, since their seconds scatter more, in two passes, so
# that runs that are compared are made within a minute or two.
PASSES: list[dict[str, str]] = [
    {"10mbit": "[1]", "unlimited": "[1,2,3]", "1gbit": "[1,2,3]", "100mbit": "[1,2,3]"},
    {"1gbit": "[4,5,6]", "unlimited": "[4,5,6]"},
]


class OnNetworks(Grid):
    """A grid that is swept on several networks. Each has a folder of logs below the grid's."""

    def complete(self, job: Job) -> Sequence[Point]:
        """Sweep on one network after the other. Starts mpirun itself."""
        from tools.netlab.job import mpirun, stoppable
        from tools.netlab.lab import Lab

        if job.comm.size > 1 or job.spread.jobs:
            raise InputError("netlab: starts mpirun itself; run it without mpirun")
        folder, *_ = self.points(job.study, job.scale)
        for number, speeds in enumerate(PASSES, 1):
            for speed, seeds in speeds.items():
                print(f"links: {speed}", flush=True)
                sweep = ["sweep", str(job.study / f"{self.file}.toml")]
                sweep += ["--set", f"sweep.run.seed={seeds}"]
                sweep += ["--out", str(folder / f"{speed}-{number}")]
                sweep += ["--ranks-per-run", str(HOSTS)]
                sweep += ["--accept-changes"] if job.accept else []
                with stoppable(), Lab(HOSTS, parse(f"{speed},shared")) as lab:
                    code = mpirun(lab, [sys.executable, "-m", "mpisim", *sweep]).returncode
                if code:
                    error = MpisimError(f"the sweep at {speed} ended with exit code {code}")
                    error.exit_code = code
                    raise error
        return []

    def state(self, study: Path, scale: str, ranks: int) -> str:
        """How many runs there are."""
        try:
            return f"{len(self.read(self.folder(study))[0])} runs done"
        except InputError:
            return "never run"


def measure(folder: Path, cases: int) -> None:
    """FOLDER/01-links.h5, 01-unlimited.h5, ...: the logs of the first ``cases``."""
    from tools.netlab.check import Experiment, run
    from tools.netlab.job import stoppable
    from tools.netlab.lab import Lab

    folder.mkdir(parents=True, exist_ok=True)
    with stoppable():
        for number, case in enumerate(CASES[:cases], 1):
            print(f"{number:2} of {cases}: {case.name}", flush=True)
            links, (d, rounds) = [parse(text) for text in case.links], size(case)
            problem = f"problem={{ name = 'quadratic', dimension = {d}, workers = {len(links)} }}"
            one = Experiment(case.name, rounds, (problem, *METHODS[case.method]))
            on_links, unlimited = logs_of(folder, number)
            with Lab(len(links) + 1, links=links, losses=[case.loss] * len(links)) as lab:
                shutil.copyfile(run(lab, one, rounds)[0].path, on_links)
            with Lab(len(links) + 1) as lab:  # all rows: the model needs the bits of each round
                shutil.copyfile(run(lab, one, rounds, log_every=1)[0].path, unlimited)
