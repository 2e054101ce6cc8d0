"""Started by test_failures under mpirun on 3 ranks: rank 1 sees other data, then has another numpy.

The exit code is 0 where every rank stopped with code 2 both times.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mpi4py import MPI

from mpisim.cli import main
from mpisim.runs import host

FOLDERS = Path(sys.argv[1])  # with the folders 0 and 1
RUN = [
    *("run", "--set", "problem={ name = 'logistic', data = 'twin' }"),
    *("--set", "method={ name = 'gd', stepsize = 0.1 }", "--set", "run.rounds=3"),
    *("--out", str(FOLDERS / "x.h5")),
]

odd = MPI.COMM_WORLD.rank == 1
os.environ["MPISIM_DATA"] = str(FOLDERS / str(int(odd)))
codes = [main(RUN)]
own = host.software()
host.software = lambda: own | ({"numpy": "1.0"} if odd else {})
codes.append(main(RUN))
sys.exit(codes != [2, 2])
