"""python -m tools.netlab [-n HOSTS] [--network RATE,LATENCY] COMMAND: mpirun across a network."""

from __future__ import annotations

import argparse
import sys

from mpisim.comm.links import parse
from mpisim.core.errors import InputError, MpisimError
from tools.netlab.job import mpirun, stoppable
from tools.netlab.lab import Lab

PROGRAM = "python -m tools.netlab"


def main(argv: list[str] | None = None) -> int:
    """Run a command under mpirun across a network made for it; the job's exit code."""
    args = _parser().parse_args(argv)
    try:
        if not args.command:
            raise InputError(f"netlab: no command; usage: {PROGRAM} [...] COMMAND, see --help")
        with stoppable(), Lab(args.hosts, parse(args.network)) as lab:
            return mpirun(lab, args.command).returncode
    except MpisimError as error:
        print(f"mpisim: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Run COMMAND under mpirun across hosts in network namespaces, one for each"
        " rank, whose links have the given speed. Needs root, Linux and Open MPI.",
    )
    parser.add_argument(
        "-n", dest="hosts", metavar="HOSTS", type=int, default=3, help="(default: %(default)s)"
    )
    parser.add_argument(
        "--network",
        metavar="RATE,LATENCY",
        default="unlimited",
        help="of the links: 100mbit, 10mbit/1gbit,1ms,shared (default: %(default)s);"
        " see docs/how-to/netlab.md",
    )
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER)
    return parser


if __name__ == "__main__":
    sys.exit(main())
