"""Runs run/netlab-crossover.toml in the lab at several speeds, for `make netlab-crossover`."""

from __future__ import annotations

import sys
from pathlib import Path

from mpisim.data.find import find
from mpisim.errors import MpisimError
from mpisim.netlab.job import mpirun, stoppable
from mpisim.netlab.lab import Lab
from mpisim.network import parse
from mpisim.sweeps.grid import read

HOSTS = 3
GRID = Path("run/netlab-crossover.toml")
FOLDER = Path("logs/netlab-crossover")
# Seeds: short runs are repeated, as their seconds scatter more.
SPEEDS = {"unlimited": "[1,2,3,4,5]", "1gbit": "[1,2,3,4,5]", "100mbit": "[1,2,3]", "10mbit": "[1]"}


def main() -> int:
    """A sweep on each network; the first exit code that is not 0."""
    try:
        for point in read(GRID, [])[1]:
            find(point["problem"]["data"])  # said once, and before any network is made
        for speed, seeds in SPEEDS.items():
            print(f"links: {speed}", flush=True)
            sweep = ["sweep", str(GRID), "--set", f"sweep.run.seed={seeds}"]
            command = [sys.executable, "-m", "mpisim", *sweep, "--out", str(FOLDER / speed)]
            with stoppable(), Lab(HOSTS, parse(f"{speed},shared")) as lab:
                code = mpirun(lab, command).returncode
            if code:
                return code
    except MpisimError as error:
        print(f"mpisim: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
