"""Started by test_problem under mpirun on 2 ranks: networks on 1 and 2 ranks, bit by bit."""

import sys
import tempfile
from pathlib import Path

from mpi4py import MPI

from mpisim.problems.torch.network import local_rank
from tests.comm.layouts import meet
from tests.helpers import run_tables
from tests.problems.torch.support import network
from tests.resumes import differences

SIGN, RANDK = {"name": "scaled-sign"}, {"name": "randk", "k": 100}


def experiments():
    """With batch norm, augmentation, minibatches and full gradients."""
    yield network({"name": "cd-adam", "batch": 9}, SIGN, rounds=4, augment=True, columns=["pi"])
    yield network({"name": "vr-marina", "batch": 9, "p": 0.5}, RANDK, rounds=4)


def main() -> int:
    """The exit code: 1 if a log differs, or a rank takes another's place on its host."""
    world = MPI.COMM_WORLD
    different = int(local_rank() != world.Split_type(MPI.COMM_TYPE_SHARED).rank)
    with tempfile.TemporaryDirectory() as folder:
        for tables in experiments():
            logs = [Path(folder) / f"{ranks}.h5" for ranks in (1, 2)]
            if world.rank == 0:
                run_tables(tables, logs[0], force=True)
            meet(world)
            run_tables(tables, logs[1], world, force=True)
            if world.rank == 0:
                names = differences(*logs)
                different += len(names)
                print(names or "the same", flush=True)
    return int(world.allreduce(different) > 0)


if __name__ == "__main__":
    sys.exit(main())
