"""Processor seconds of 1,000 rounds on 20 fleets of a million clients, as for `mpisim fleet`."""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

from benchmarks.common import result, write
from mpisim.analysis.fleet_rounds import made
from mpisim.analysis.fleet_seconds import seconds
from mpisim.analysis.link_model import Traffic
from mpisim.comm.fleet import Fleet

CLIENTS, ROUNDS, DRAWS, LIMIT = 10**6, 1000, 20, 10.0


def main(path: str) -> None:
    """A row without dropouts, and one with; a small fleet before them, for the kernels."""
    rows = []
    for name, fleet in (("", Fleet("mlab:US")), (", dropouts", Fleet("mlab:US", dropout=0.05))):
        for n, draws in ((1000, 1), (CLIENTS, DRAWS)):
            k = np.arange(1, ROUNDS + 1)
            bits = 1e5 * k
            traffic = Traffic(k, 0.0 * k, n * bits, n * bits, bits, np.array([n]), 1.0 * n * k)
            rounds = made(traffic, 0.0 * k, 0.0 * k, None)
            start = process_time()
            for seed in range(draws):
                seconds(rounds, fleet, seed)
            taken = process_time() - start
        what = f"1e6 clients, 1,000 rounds, {DRAWS} fleets{name} / {LIMIT:g} s"
        rows.append(result(what, taken, LIMIT, "s", "<= 1"))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
