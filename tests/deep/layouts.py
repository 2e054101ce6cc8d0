"""Started by test_problem under mpirun on 3 ranks: networks on 1 and 3 ranks, bit by bit."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mpi4py import MPI

from tests.cluster.layouts import content
from tests.deep.support import network
from tests.helpers import run_tables

SIGN, RANDK = {"name": "scaled-sign"}, {"name": "randk", "k": 100}


def experiments():
    """With batch norm, augmentation, minibatches and full gradients."""
    yield network({"name": "cd-adam", "batch": 9}, SIGN, rounds=4, augment=True, columns=["pi"])
    yield network({"name": "vr-marina", "batch": 9, "p": 0.5}, RANDK, rounds=4)


def main() -> int:
    """The exit code: 1 if a log differs."""
    world, different = MPI.COMM_WORLD, 0
    with tempfile.TemporaryDirectory() as folder:
        for tables in experiments():
            reference: dict[str, bytes] = {}
            for ranks in (1, 3):
                group = world.Split(0 if world.rank < ranks else MPI.UNDEFINED, world.rank)
                if world.rank < ranks:
                    log = Path(folder) / "log.h5"
                    run_tables(tables, log, group, force=True)
                    if world.rank == 0:
                        found = content(log)
                        reference = reference or found
                        names = [name for name in found if found[name] != reference[name]]
                        different += len(names)
                        print(f"{ranks} ranks: {names or 'the same'}", flush=True)
                world.Barrier()
    return int(world.bcast(different) > 0)


if __name__ == "__main__":
    sys.exit(main())
