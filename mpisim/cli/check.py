"""The sub-command `mpisim check`."""

from __future__ import annotations

import argparse

from mpisim.cli.parser import arguments, require_mpi


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check what plugins register: compressors by their constants and messages, problems by"
        " their gradients, and all in small runs, in two parts and on three ranks."
    )
    arguments(parser, {"plugins MODULE|FILE.py ...": "a plugin, as for --plugin"})
    parser.set_defaults(command=check_command)


def check_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Print a line for each check; 1 if one failed."""
    require_mpi()
    from mpisim.runs.host import guarded

    def body(comm) -> int:
        from mpisim.testing import check
        from mpisim.testing.moments import DRAWS, ERROR_RATE

        outcomes = check(args.plugins, comm, lambda one: print(one, flush=True))
        failed = sum(one.failed for one in outcomes)
        skipped = sum(one.status == "not checked" for one in outcomes)
        if comm.rank == 0:
            print(f"{len(outcomes)} checks: {failed} failed, {skipped} not applicable")
            if any(one.subject.startswith("compressor ") for one in outcomes):
                rate = f"a right compressor fails in at most {ERROR_RATE:g} of all cases"
                print(f"omega, alpha, zeta: by {DRAWS} draws; {rate}")
        return int(comm.bcast(failed) > 0)

    return guarded(body)
