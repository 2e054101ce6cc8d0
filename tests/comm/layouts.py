"""Started by test_layouts under mpirun: every method and compressor on 1 rank, and on 2, 3 or 6.

The argument is a seed, which draws a sixth of the experiments; each is run in one of six layouts.
With --all instead (`make trial`) all are run in all layouts, with each pair of method and
compressor and with more numbers of workers. Then runs that other ranks continue.

Prints one line for each difference and exits non-zero if there is one.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from time import sleep
from typing import TypeVar

from mpi4py import MPI

from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests import resumes
from tests.helpers import run_tables, table
from tests.resumes import differences

T = TypeVar("T")
METHODS = [
    {"name": "marina", "p": 0.3},
    {"name": "diana", "alpha": 0.1},
    {"name": "dcgd"},
    {"name": "ef"},
    {"name": "ef21"},
    {"name": "heavy-ball"},
    {"name": "ef21", "start": "compressed"},
]
VARIANTS = METHODS[5:]  # whose messages are those of another one
COMPRESSORS = [
    {"name": "identity"},
    {"name": "randk", "k": 5},
    {"name": "topk", "k": 5},
    {"name": "qsgd", "s": 4},
    {"name": "qsgd", "s": 3, "norm": "inf"},
    {"name": "natural"},
    {"name": "bernoulli", "p": 0.5},
    {"name": "scaled-sign"},
]
VARIANCE_REDUCED = [
    {"name": "vr-marina", "batch": 0.1, "p": 0.3},
    {"name": "vr-marina-online", "batch": 3, "big_batch": 0.3, "p": 0.3},
    {"name": "vr-diana", "batch": 5, "p": 0.3, "alpha": 0.1},
    {"name": "pp-marina", "participants": 3, "p": 0.3},
    {"name": "dasha", "start": "zero"},
    {"name": "dasha-page", "batch": 0.1, "p": 0.3},
    {"name": "dasha-mvr", "batch": 3, "big_batch": 0.3},
    {"name": "dasha-sync-mvr", "batch": 3, "big_batch": 0.3, "p": 0.3},
]
PERMK = {"name": "permk"}
TOGETHER = [  # correlated compressors
    PERMK,
    PERMK | {"groups": 4},
    {"name": "block-permutation", "blocks": 4},
    {"name": "compose", "outer": PERMK, "inner": {"name": "natural"}},
    {"name": "compose", "outer": PERMK, "inner": {"name": "qsgd", "s": 40}},
]
MORE = [
    {"name": "rotated", "inner": {"name": "natural"}},  # each once
    {"name": "block-quant", "blocks": 3, "s": 4},
    {"name": "block-quant-plus", "blocks": 3},
    {"name": "rand-tau", "tau": 9.5},
    {"name": "randseqk", "k": 7},
]
SUBSETS = [[0, 1, 2], [3, 4, 5], [0, 2, 4], [1, 3, 5], [0, 1, 5], [2, 3, 4]]
MAPPINGS = [[[1.0, 1.0]], [[1.0, -1.0]]] * 3
WORKERS = {6: 8, 20: 6, 1000: 3}  # workers: rounds
RANKS = [1, 2, 3, 6]
LAYOUTS = [  # ranks and layouts, each against one rank
    (2, "shared"),
    (3, "dedicated"),
    (6, "shared"),
    (2, "dedicated"),
    (3, "shared"),
    (6, "dedicated"),
]


def experiments(every: bool):
    """All tables but for the layout; ``every``: each pair, and with 6 and 20 workers."""
    few_workers = itertools.cycle((20, 6, 6, 6, 20, 20))
    for method, compressor in itertools.product(METHODS, COMPRESSORS):
        if not every and method in VARIANTS and compressor not in COMPRESSORS[1:3]:
            continue
        few = next(few_workers)
        for n, rounds in WORKERS.items():
            many = method is METHODS[0] or (compressor is COMPRESSORS[1] and method not in VARIANTS)
            if n == few or (n == 1000 and many) or every:
                yield table(method | {"stepsize": 0.05}, compressor, workers=n, rounds=rounds)
    for i, method in enumerate(VARIANCE_REDUCED):
        for j, compressor in enumerate((COMPRESSORS[1], COMPRESSORS[3])):
            for n in (6, 20) if every else ((6, 20)[(i + j) % 2],):
                yield table(method | {"stepsize": 0.05}, compressor, workers=n, rounds=8)
    for name, keys in (
        ("fedavg", {"local_steps": 3, "batch": 5, "participants": 4}),
        ("fedavg", {"local_steps": 2, "optimizer": "adam"}),
        ("fedprox", {"local_steps": 2, "mu": 0.1}),
        ("scaffold", {"local_steps": 3, "participants": 4}),
        ("scaffold", {"local_steps": 2, "batch": 5, "option": "I"}),
        ("scaffnew", {"p": 0.4, "batch": 5}),
        ("ef21-p", {"down": COMPRESSORS[2]}),
        ("ef21-sgdm", {"eta": 0.3, "batch": 5}),
        ("ef-bv", {}),
        ("rand-diana", {"p": 0.4}),
        ("adiana", {"mu": 0.1, "p": 0.4}),
        ("canita", {"p": 0.4}),
        ("fednl", {"hessian": COMPRESSORS[1], "problem": "logistic"}),
        ("fednl", {"hessian": {"name": "symmetric-rank-k", "k": 2}, "problem": "logistic"}),
        ("fednl-ls", {"hessian": COMPRESSORS[1], "regularisation": 0.1, "problem": "logistic"}),
        ("fednl-pp", {"hessian": COMPRESSORS[1], "participants": 7, "problem": "logistic"}),
        ("locodl", {"p": 0.4, "mu": 0.05}),
        ("clag", {"zeta": 3.0}),
        ("asynchronous-sgd", {"batch": 3}),
        ("rennala", {"collected": 4, "batch": 3}),
        ("ringmaster", {"threshold": 3, "batch": 3}),
        ("fedbuff", {"buffer": 3, "local_steps": 2, "batch": 3}),
        ("shadowheart", {"noise": 20.0}),
        ("byz-dasha-page", {"batch": 5, "p": 0.3}),
        ("marina-p", {"down": PERMK, "p": 0.3}),
        ("marina-p", {"down": COMPRESSORS[3], "p": 0.3}),
    ):
        method, keys = {"name": name, "stepsize": 0.05}, dict(keys)
        problem = {"name": keys.pop("problem", "nonconvex-loss"), "l2": 0.1}
        run = {"workers": 20, "rounds": 6, "columns": ["uniform"]}
        yield table(method | keys, COMPRESSORS[1], problem=problem, **run)
    fleet = {
        "links": "mlab:BR",
        "dropout": 0.3,
        "deadline": 60.0,
        "seconds": 1e-3,
        "simulate": True,
    }
    for name, keys in (
        ("fedavg", {"local_steps": 2, "batch": 5, "participants": 9}),
        ("pp-marina", {"p": 0.4, "participants": 9}),
        ("diana", {}),
        ("dasha", {}),
    ):
        method = {"name": name, "stepsize": 0.05} | keys
        yield table(method, COMPRESSORS[1], workers=20, rounds=6) | {"fleet": fleet}
    for name in ("naive-amsgrad", "ef-amsgrad", "cd-adam", "ef21-2way", "1bit-adam"):
        for compressor in (COMPRESSORS[2], COMPRESSORS[7]):
            method = {"name": name, "stepsize": 0.01}
            yield table(method, compressor, workers=20, rounds=9, columns=["pi"])
    for compressor in MORE:
        yield table({"name": "diana", "stepsize": 0.05}, compressor)
    for compressor in ({"name": "drive"}, {"name": "eden"}, {"name": "toplek", "k": 9}):
        yield table({"name": "ef21", "stepsize": 0.01}, compressor)
    for name, keys in (("gd", {}), ("amsgrad", {}), ("lag", {"zeta": 2.0})):
        yield table({"name": name, "stepsize": 0.01} | keys, {})
    glms = "logistic", "logistic-nonconvex-reg", "least-squares", "multinomial-logistic"
    for problem in glms:
        yield table(
            {"name": "diana", "stepsize": "theory" if problem == "logistic" else 0.01},
            COMPRESSORS[1],
            problem={"name": problem},
        )
    for name in ("marina", "diana"):  # a theory step depends on constants over all workers
        yield table(
            {"name": name, "stepsize": "theory"},
            COMPRESSORS[1],
            problem={"split": "sorted-by-norm"},
        )
    for compressor, n in itertools.product(TOGETHER, (6, 20)):
        run = {"rounds": 6, "columns": ["adaptive"]}
        yield table({"name": "marina", "p": 0.3, "stepsize": 0.05}, compressor, workers=n, **run)
    yield table({"name": "pp-marina", "participants": 3, "p": 0.3, "stepsize": 0.05}, PERMK)
    for method, compressor in (
        ("marina", PERMK),
        ("marina", COMPRESSORS[1]),
        ("marina", TOGETHER[3]),
        ("ef21", {"name": "topk", "k": 1}),  # with bounds
        ("diana", COMPRESSORS[1]),
        ("dasha", COMPRESSORS[1]),
    ):
        for n, d in itertools.product((6, 20), (9, 50)):
            quadratic = {"name": "quadratic", "workers": n, "dimension": d, "noise": 0.3}
            tables = table({"name": method, "stepsize": "theory"}, compressor, rounds=12)
            yield tables | {"problem": quadratic}
    for d, dealt in (
        (6, {"name": "permuted-subsets", "subsets": SUBSETS}),
        (2, {"name": "permuted-mappings", "analysis": MAPPINGS}),
    ):
        quadratic = {"name": "quadratic", "workers": 6, "dimension": d, "noise": 0.3}
        tables = table({"name": "marina", "p": 0.3, "stepsize": 0.05}, dealt, rounds=6)
        yield tables | {"problem": quadratic}
    many = {"name": "quadratic", "workers": 700, "noise": 0.3}  # dense messages go in three parts
    tables = table({"name": "marina", "p": 0.5, "stepsize": 0.05}, PERMK, rounds=5)
    tables["run"]["columns"] = ["adaptive"]
    yield tables | {"problem": many}
    images = {"name": "autoencoder", "data": "sample", "images": 90, "code_size": 2, "lambda": 0.1}
    for name, compressor, keys in (
        ("marina", PERMK, {"workers": 20}),
        ("ef21", COMPRESSORS[2], {"workers": 6}),
        ("ef21", {"name": "rank-k", "k": 1}, {"workers": 6}),
        ("ef21", {"name": "layerwise", "inner": {"name": "topk", "k": 0.1}}, {"workers": 6}),
        ("vr-marina", COMPRESSORS[1], {"workers": 6, "mix": "samples"}),
    ):
        method = {"name": name, "stepsize": 0.005} | ({} if name == "ef21" else {"p": 0.3})
        method |= {"batch": 3} if name == "vr-marina" else {}
        yield table(method, compressor, rounds=6) | {
            "problem": images | keys | {"homogeneity": 0.4}
        }
    yield table(
        {"name": "diana", "stepsize": "theory"},
        {"name": "smooth", "inner": {"name": "quant-plus", "beta": 20.0}},
        problem={"name": "logistic", "l2": 1e-3},
        rounds=8,
    )
    yield table(
        {"name": "pp-marina", "participants": 3, "p": 0.3, "stepsize": 0.05},
        {"name": "smooth", "rank": 9, "inner": {"name": "rand-tau-plus"}},
        workers=20,
        rounds=8,
    )
    method = {"name": "compressed-scaffnew", "p": 0.4, "stepsize": 0.05}
    yield table(method, PERMK | {"groups": 4}, workers=20, rounds=6)
    method = {"name": "tamuna", "p": 0.4, "participants": 5, "stepsize": 0.05}
    yield table(method, {"name": "pattern", "s": 3}, workers=20, rounds=6)
    for attack, server in (
        ({"name": "alie"}, {"aggregate": "median"}),
        ({"name": "ipm"}, {"aggregate": "geometric-median", "buckets": 2}),
        ({"name": "noise"}, {"aggregate": "centered-clipping"}),
        ({"name": "label-flip"}, {"aggregate": "trimmed-mean"}),
    ):
        method = {"name": "vr-marina", "batch": 5, "p": 0.3, "stepsize": 0.05}
        lies = {"attack": attack | {"share": 0.2}, "server": server}
        yield table(method, COMPRESSORS[1], workers=20, rounds=6) | lies
    for split in ({"split": "dirichlet", "alpha": 0.5}, {"split": "pathological"}):
        yield table({"name": "dcgd", "stepsize": 0.1}, COMPRESSORS[1], problem=split)
    for split in ("shuffled", "homogeneous"):
        yield table(
            {"name": "ef21", "stepsize": "theory"},
            COMPRESSORS[2],
            problem={"split": split, "remainder": "spread"},
        )
    yield table({"name": "marina", "stepsize": 0.05}, COMPRESSORS[1], dtype="float32", log_every=7)
    yield from stopped()


def some(cases: Iterable[T], seed: int | None) -> list[T]:
    """A sixth of the cases, drawn by ``seed``, in random order; all if it is None."""
    every = list(cases)
    return every if seed is None else Random(seed).sample(every, len(every) // 6)


def stopped():
    """Runs that a condition of each kind ends: all ranks must find the same last row."""
    for stop in ({"bits_up": 5 * 32 * 3}, {"oracle_calls": 200}, {"grad_norm_sq": 0.02}):
        run = {"rounds": 90, "log_every": 2, "stop": stop}
        yield table({"name": "dcgd", "stepsize": 0.1}, COMPRESSORS[1], **run)
    run = {"rounds": 90, "reference": True, "stop": {"distance_sq": 1e-3}}
    tables = table({"name": "marina", "stepsize": "theory"}, COMPRESSORS[1], **run)
    quadratic = {"name": "quadratic", "workers": 6, "dimension": 20, "noise": 0.3, "lambda": 0.1}
    yield tables | {"problem": quadratic}


def compare(groups: dict[int, MPI.Intracomm], folder: Path, seed: int | None) -> int:
    """Each experiment on several ranks against one rank: the number of differences."""
    world = MPI.COMM_WORLD
    different = count = 0
    one, log = folder / "one.h5", folder / "log.h5"
    turns = itertools.cycle([LAYOUTS] if seed is None else [[layout] for layout in LAYOUTS])
    for tables, turn in zip(some(experiments(seed is None), seed), turns, strict=False):
        count += 1
        for ranks, layout in [(1, "shared"), *turn]:
            tables["run"]["layout"] = layout
            if world.rank < ranks:
                run_tables(tables, one if ranks == 1 else log, groups[ranks], force=True)
            if world.rank == 0 and ranks > 1:
                different += said(differences(one, log), f"on {ranks} ranks, {layout}: {tables}")
            meet(world)
    if world.rank == 0:
        print(f"{count} experiments, {different} differences")
    return different


def compare_resumed(groups: dict[int, MPI.Intracomm], folder: Path, seed: int | None) -> int:
    """Runs that other ranks continue, in the other layout, against those in one."""
    world = MPI.COMM_WORLD
    different = count = 0
    whole, parts = folder / "whole.h5", folder / "parts.h5"
    turns = itertools.cycle([(2, 3, "dedicated"), (3, 1, "shared"), (1, 3, "dedicated")])
    for (name, tables), (before, after, layout) in zip(
        some(resumes.experiments(), seed), turns, strict=False
    ):
        count += 1
        first = tables["run"] | {"rounds": resumes.FIRST}
        then = tables["run"] | {"layout": layout}
        for ranks, run, log, again in (
            (1, tables["run"], whole, False),
            (before, first, parts, False),
            (after, then, parts, True),
        ):
            if world.rank < ranks:
                run_tables(tables | {"run": run}, log, groups[ranks], force=not again, resume=again)
            meet(world)
        if world.rank == 0:
            text = f"{name} on {before} ranks, then {after} {layout}"
            different += said(differences(whole, parts), text)
    if world.rank == 0:
        print(f"{count} experiments in two parts, {different} differences")
    return different


class CountingComm:
    """Passes everything on, and counts the bytes that this rank hands to Gatherv and Bcast."""

    def __init__(self, comm):
        self._comm, self.up, self.down = comm, 0, 0

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def Gatherv(self, send, receive):
        self.up += send.nbytes
        return self._comm.Gatherv(send, receive)

    def Bcast(self, data):
        self.down += data.nbytes
        return self._comm.Bcast(data)


def compare_bytes(comm: MPI.Intracomm) -> int:
    """The ledger against the bytes handed to MPI by each of 3 ranks: the number of differences."""
    different = 0
    for compressor in COMPRESSORS:
        setup = Setup(parse(table({"name": "ef21", "stepsize": 0.1}, compressor)), comm)
        setup.star.comm = counted = CountingComm(comm)
        for _ in range(9):
            setup.state.step(0.1)
        sent, bits = sum(comm.allgather(counted.up)), setup.star.ledger.totals
        if comm.rank == 0:
            up, down = (bits[f"bits_{to}"] + bits[f"framing_bits_{to}"] for to in ("up", "down"))
            alike = (up, down) == (8 * sent, 8 * counted.down * setup.star.n)
            alike = alike and bits["framing_bits_up"] <= 9 * setup.star.n * (32 + 8)
            different += said([] if alike else ["the ledger"], f"from MPI's bytes: {compressor}")
    return different


def meet(comm: MPI.Intracomm) -> None:
    """A barrier at which ranks sleep: those that wait leave the cores to those that run."""
    request = comm.Ibarrier()
    while not request.Test():
        sleep(0.005)


def said(names: list[str], text: str) -> int:
    """Print what differs; how much it is."""
    for name in names:
        print(f"{name} differs {text}", flush=True)
    return len(names)


def main() -> int:
    """Run all; the number of differences is not 0: 1."""
    world = MPI.COMM_WORLD
    groups = {r: world.Split(0 if world.rank < r else MPI.UNDEFINED, world.rank) for r in RANKS}
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
