"""python -m benchmarks.peers.ours EXPERIMENT BLOCK BLOCKS, with and without mpirun: time mpisim.

Prints as JSON the wall and the CPU seconds of a round in each of BLOCKS blocks of BLOCK rounds, on
rank 0, with messages and a log on the disk.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import Watch
from benchmarks.peers.experiments import LOG_EVERY, tables
from mpisim.comm.communicators import all_ranks
from mpisim.runs.experiment import parse
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup


def main(name: str, block: int, blocks: int) -> None:
    """Run one block more, the first, which is not counted."""
    rounds = block * (blocks + 1)
    experiment = parse(tables(name, rounds=rounds, log_every=LOG_EVERY))
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(Setup(experiment, all_ranks()), Output(Path(folder) / "log.h5", quiet=True))
    if watch.times:
        ends = np.array([watch.times, watch.cpu])[:, -1 - block * blocks :: block]
        wall, cpu = (np.diff(ends) / block).tolist()
        print(json.dumps({"seconds": wall, "cpu": cpu}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
