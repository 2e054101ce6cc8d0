"""Started by test_jobs under mpirun: experiments.toml on 1 rank, and on 2, 3 or 6.

The argument is a seed, which draws one in forty of the experiments, each in one of six layouts.
With --all instead (`make trial`) all are run in all layouts. Then runs that other ranks continue.
Where there are three ranks, they wait asleep.

Prints one line for each difference and exits non-zero if there is one.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from mpi4py import MPI

from mpisim.comm.communicators import asleep, meet
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests import resumes
from tests.compare.table import product_of
from tests.helpers import run_tables, table
from tests.resumes import differences

T = TypeVar("T")
TABLE = Path(__file__).parents[1] / "experiments.toml"
RANKS = [1, 2, 3, 6]
# ranks and layouts, each against one rank
LAYOUTS = [(2, "shared"), (3, "dedicated"), (6, "shared")]
LAYOUTS += [(2, "dedicated"), (3, "shared"), (6, "dedicated")]


def experiments() -> Iterator[dict[str, Any]]:
    """The tables of experiments.toml."""
    for grid in tomllib.loads(TABLE.read_text(encoding="utf-8"))["grid"]:
        yield from product_of(grid)


def some(cases: Iterable[T], seed: int | None, one_in: int) -> list[T]:
    """One in so many of the cases, drawn by ``seed``, in random order; all if it is None."""
    every = list(cases)
    return every if seed is None else Random(seed).sample(every, len(every) // one_in)


def run_on(groups: dict[int, MPI.Intracomm], ranks: int, tables: dict, log: Path, **how) -> None:
    """Run an experiment on so many ranks, while the others sleep."""
    if MPI.COMM_WORLD.rank < ranks:
        run_tables(tables, log, groups[ranks], **how)
    meet(MPI.COMM_WORLD, lambda: None)


def compare(groups: dict[int, MPI.Intracomm], folder: Path, seed: int | None) -> int:
    """Each experiment on several ranks against one rank: the number of differences."""
    world = MPI.COMM_WORLD
    different = count = 0
    one, log = folder / "one.h5", folder / "log.h5"
    turns = itertools.cycle([LAYOUTS] if seed is None else [[layout] for layout in LAYOUTS])
    for tables, turn in zip(some(experiments(), seed, 40), turns, strict=False):
        count += 1
        most = tables["problem"].get("workers", world.size)  # ranks with workers
        possible = [(r, layout) for r, layout in turn if r - (layout == "dedicated") <= most]
        for ranks, layout in [(1, "shared"), *possible]:
            placed = tables | {"run": tables["run"] | {"layout": layout}}
            run_on(groups, ranks, placed, one if ranks == 1 else log, force=True)
            if world.rank == 0 and ranks > 1:
                different += report(differences(one, log), f"on {ranks} ranks, {layout}: {tables}")
    if world.rank == 0:
        print(f"{count} experiments, {different} differences")
    return different


def compare_resumed(groups: dict[int, MPI.Intracomm], folder: Path, seed: int | None) -> int:
    """Runs that other ranks continue, in the other layout, against those in one."""
    world = MPI.COMM_WORLD
    different = count = 0
    full, parts = folder / "full.h5", folder / "parts.h5"
    turns = itertools.cycle([(2, 3, "dedicated"), (3, 1, "shared"), (1, 3, "dedicated")])
    several = some(resumes.experiments(), seed, 20)
    for (name, tables), (before, after, layout) in zip(several, turns, strict=False):
        count += 1
        first = tables | {"run": tables["run"] | {"rounds": resumes.FIRST}}
        then = tables | {"run": tables["run"] | {"layout": layout}}
        run_on(groups, 1, tables, full, force=True)
        run_on(groups, before, first, parts, force=True)
        run_on(groups, after, then, parts, resume=True)
        if world.rank == 0:
            text = f"{name} on {before} ranks, then {after} {layout}"
            different += report(differences(full, parts), text)
    if world.rank == 0:
        print(f"{count} experiments in two parts, {different} differences")
    return different


class CountingComm(MPI.Intracomm):
    """Counts the bytes that this rank hands to Gatherv and Bcast."""

    up = down = 0

    def Gatherv(self, send, receive):
        self.up += send.nbytes
        super().Gatherv(send, receive)

    def Bcast(self, data):
        self.down += data.nbytes
        super().Bcast(data)


def compare_bytes(comm: MPI.Intracomm) -> int:
    """The ledger against the bytes handed to MPI by each of 3 ranks: the number of differences."""
    different = 0
    for compressor in (one["compressor"] for one in itertools.islice(experiments(), 8)):
        setup = Setup(parse(table({"name": "ef21", "stepsize": 0.1}, compressor)), comm)
        setup.star.comm = counted = CountingComm(comm)
        for _ in range(4):
            setup.state.step(0.1)
        sent, bits = sum(comm.allgather(counted.up)), setup.star.ledger.totals
        if comm.rank == 0:
            up, down = (bits[f"bits_{to}"] + bits[f"framing_bits_{to}"] for to in ("up", "down"))
            alike = (up, down) == (8 * sent, 8 * counted.down * setup.star.n)
            alike = alike and bits["framing_bits_up"] <= 4 * setup.star.n * (32 + 8)
            different += report([] if alike else ["the ledger"], f"from MPI's bytes: {compressor}")
    return different


def report(names: list[str], text: str) -> int:
    """Print what differs; how much it is."""
    for name in names:
        print(f"{name} differs {text}", flush=True)
    return len(names)


def main() -> int:
    """Run all; the number of differences is not 0: 1."""
    world = MPI.COMM_WORLD
    groups = {r: world.Split(0 if world.rank < r else MPI.UNDEFINED, world.rank) for r in RANKS}
    if world.rank < 3:
        groups[3] = asleep(groups[3])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(world.bcast(name))
        seed = None if "--all" in sys.argv else int(sys.argv[1])
        if world.rank == 0:
            print(f"seed {seed}", flush=True)
        different = compare(groups, folder, seed) + compare_resumed(groups, folder, seed)
        different += compare_bytes(groups[3]) if world.rank < 3 else 0
        world.Barrier()
    return int(world.bcast(different) > 0)


if __name__ == "__main__":
    sys.exit(main())
