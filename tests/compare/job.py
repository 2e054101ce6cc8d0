"""Started by the comparison, with or without mpirun: command lines of mpisim, one after the other.

    python -P job.py TODO.json

TODO.json holds pairs [key, arguments]. For each of them a line [key, [exit code, output]] is added
to results.jsonl in the current folder. The package is the one that PYTHONPATH names.
"""

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path

from mpi4py import MPI

from mpisim.cli import main as command_line

STOPPED = (130, 143)  # exit codes after a signal from outside


def run(arguments: list[str]) -> tuple[int | str, str]:
    """Exit code and output of a command line, without times left and the checkout's place."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: int | str = command_line(arguments)
        except (Exception, SystemExit) as error:
            code = repr(error)
    errors = [line for line in err.getvalue().splitlines() if line.startswith("mpisim: ")]
    output = "\n".join([*out.getvalue().splitlines(), *errors])
    output = re.sub(r", about .* left|, [\d.]+ s \([\d.e+]+ rounds/s\)", "", output)
    return code, output.replace(os.environ["PYTHONPATH"], ".")


def main() -> None:
    """Run all command lines on all ranks; rank 0 notes how they ended."""
    comm = MPI.COMM_WORLD
    for key, arguments in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        ended = run(arguments)
        if ended[0] in STOPPED:
            sys.exit(ended[0])
        line = json.dumps([key, ended]) + "\n"
        if comm.rank == 0:  # in one write, since two jobs share the file
            with open("results.jsonl", "ab", buffering=0) as file:
                file.write(line.encode())
        comm.Barrier()


if __name__ == "__main__":
    main()
