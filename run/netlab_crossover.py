"""Runs run/netlab-crossover.toml in the lab at several speeds, for `make netlab-crossover`."""

from __future__ import annotations

import sys
from pathlib import Path

from mpisim.analysis.link_model import parse
from mpisim.core.errors import MpisimError
from mpisim.problems.data.find import find
from mpisim.runs.sweep.grid import read
from tools.netlab.job import mpirun, stoppable
from tools.netlab.lab import Lab

HOSTS = 3
GRID = Path("run/netlab-crossover.toml")
FOLDER = Path("logs/netlab-crossover")
# Seeds: short runs are repeated, as their seconds scatter more, and in two passes, so that what is
# compared was measured within a minute or two.
PASSES: list[dict[str, str]] = [
    {"10mbit": "[1]", "unlimited": "[1,2,3]", "1gbit": "[1,2,3]", "100mbit": "[1,2,3]"},
    {"1gbit": "[4,5,6]", "unlimited": "[4,5,6]"},
]


def main() -> int:
    """A sweep on each network; the first exit code that is not 0."""
    try:
        for point in read(GRID, [])[1]:
            find(point["problem"]["data"])  # said once, and before any network is made
        for number, speeds in enumerate(PASSES, 1):
            for speed, seeds in speeds.items():
                print(f"links: {speed}", flush=True)
                if code := _sweep(speed, seeds, FOLDER / f"{speed}-{number}"):
                    return code
    except MpisimError as error:
        print(f"mpisim: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def _sweep(speed: str, seeds: str, folder: Path) -> int:
    """The grid's runs with these seeds on a network made for them; the job's exit code."""
    sweep = ["sweep", str(GRID), "--set", f"sweep.run.seed={seeds}", "--out", str(folder)]
    with stoppable(), Lab(HOSTS, parse(f"{speed},shared")) as lab:
        return mpirun(lab, [sys.executable, "-m", "mpisim", *sweep]).returncode


if __name__ == "__main__":
    sys.exit(main())
