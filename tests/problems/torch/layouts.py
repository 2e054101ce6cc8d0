"""Started by tests under mpirun on 2 ranks: networks on 1 and 2 ranks, bit by bit.

The word of the command line is the device.
"""

import sys
import tempfile
from pathlib import Path

from mpi4py import MPI

from mpisim.comm.communicators import meet
from mpisim.problems.torch.network import local_rank
from tests.helpers import run_tables
from tests.problems.torch.support import network
from tests.resumes import differences

SIGN, RANDK = {"name": "scaled-sign"}, {"name": "randk", "k": 100}


def experiments(device: str):
    """With batch norm, augmentation, minibatches and full gradients."""
    adam, run = {"name": "cd-adam", "batch": 9}, {"device": device, "columns": ["pi"]}
    yield network(adam, SIGN, 4, augment=True, **run)
    yield network({"name": "vr-marina", "batch": 9, "p": 0.5}, RANDK, 4, device=device)


def main() -> int:
    """The exit code: 1 if a log differs, or a rank takes another's place on its host."""
    world = MPI.COMM_WORLD
    different = int(local_rank() != world.Split_type(MPI.COMM_TYPE_SHARED).rank)
    with tempfile.TemporaryDirectory() as folder:
        for tables in experiments(sys.argv[1]):
            logs = [Path(folder) / f"{ranks}.h5" for ranks in (1, 2)]
            if world.rank == 0:
                run_tables(tables, logs[0], force=True)
            meet(world, lambda: None)
            run_tables(tables, logs[1], world, force=True)
            if world.rank == 0:
                names = differences(*logs)
                different += len(names)
                print(names or "the same", flush=True)
    return int(world.allreduce(different) > 0)


if __name__ == "__main__":
    sys.exit(main())
