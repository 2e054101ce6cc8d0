"""Started by test_jobs on 3 ranks: command lines, one after the other, in one job.

Arguments: a folder, and a JSON list of (name, arguments). Rank 1 sees other data in the command
"other data", has another numpy in "other numpy", and another command line in "other flags". Rank 0
writes "== name codes" to stderr behind each command, with the exit codes of all ranks.
"""

import json
import os
import sys

from mpi4py import MPI

from mpisim.cli import main
from mpisim.runs import host

WORLD = MPI.COMM_WORLD
FOLDER, COMMANDS = sys.argv[1], json.loads(sys.argv[2])
software = host.software()

for name, arguments in COMMANDS:
    other = WORLD.rank == 1
    os.environ["MPISIM_DATA"] = f"{FOLDER}/{int(other and name == 'other data')}"
    versions = software | ({"numpy": "1.0"} if other and name == "other numpy" else {})
    host.software = lambda versions=versions: versions
    more = ["--set", "run.rounds=7"] if other and name == "other flags" else []
    sys.argv[1:] = [*arguments, *more]
    codes = WORLD.gather(main(sys.argv[1:]))
    if WORLD.rank == 0:
        print("==", name, *codes, file=sys.stderr, flush=True)
