"""python -m benchmarks.network: seconds of a round of CD-Adam on a network, by phase.

By default ResNet-18 on generated images of CIFAR-10's shape, 8 workers, batches of 128. The phases
are those of the log's clocks. An accelerator works in the background, so before each change of
phase the clock waits for it here: a phase has the seconds of its own work. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from mpi4py import MPI

from benchmarks.common import Watch
from mpisim.comm.clock import PHASES, Clock
from mpisim.core.errors import InputError
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup

PASSES, ARITHMETIC = "gradient passes", "workers' arithmetic"
SHOWN = {"communicate": "exchange", "optimizer": "step"}
KEYS = (
    "model",
    "width",
    "pool",
    "workers",
    "samples",
    "chunk",
    "device",
    "mixed",
    "tf32",
    "augment",
)


class WaitingClock(Clock):
    """A clock that waits for the device before it charges a phase."""

    def to(self, phase: int) -> None:
        wait()
        super().to(phase)


def wait() -> None:
    """Return when the accelerator, if there is one, has done all work."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def tables(args: argparse.Namespace) -> dict:
    """The experiment."""
    problem = {"name": "torch", "data": "generated"} | {key: getattr(args, key) for key in KEYS}
    compressor = {"name": args.compressor} | ({"k": args.k} if args.compressor == "topk" else {})
    return {
        "problem": problem,
        "method": {"name": args.method, "batch": args.batch, "stepsize": 1e-4},
        "compressor": compressor,
        "run": {"rounds": args.rounds, "dtype": "float32", "log_every": args.rounds},
    }


def measured(args: argparse.Namespace) -> tuple[dict[str, float], float, str]:
    """Median seconds of a round by phase, those of a row of the log, and what was measured."""
    setup = Setup(parse(tables(args)), MPI.COMM_WORLD)
    setup.clock.__class__ = WaitingClock
    problem, passes = setup.problem, []
    compute = problem.batch_gradients

    def timed(x: np.ndarray, batch: np.ndarray, **some: np.ndarray | None) -> np.ndarray:
        wait()
        start = perf_counter()
        gradients = compute(x, batch, **some)
        wait()
        passes.append(perf_counter() - start)
        return gradients

    problem.batch_gradients = timed  # type: ignore[method-assign]
    watch = Watch(setup)
    phases = {name: watch.phase_seconds(i) for i, name in enumerate(PHASES)}
    passed = float(np.median(passes[-args.rounds + 1 :]))
    spent = {PASSES: passed, ARITHMETIC: phases.pop("compute") - passed}
    spent |= {SHOWN.get(name, name): seconds for name, seconds in phases.items()}
    x, start = problem.initial_point(), perf_counter()
    problem.losses_and_gradients(x)
    problem.test(x)  # type: ignore[attr-defined]
    wait()
    row = perf_counter() - start
    what = f"{args.model}, d = {problem.d:,}, {problem.n} workers, batch {args.batch}"
    device = device_name(problem.flat_model.device)  # type: ignore[attr-defined]
    return spent, row, f"{what}, {setup.star.ranks} ranks, {device}"


def device_name(device) -> str:
    """What the device is; of an accelerator, also the most memory that PyTorch took of it."""
    import torch

    if device.type != "cuda":
        return f"CPU, PyTorch {torch.__version__}"
    most = torch.cuda.max_memory_reserved(device) / 2**30
    name = torch.cuda.get_device_name(device)
    return f"{name}, {most:.1f} GiB of it, PyTorch {torch.__version__}"


def show(phases: dict[str, float], row: float, what: str) -> None:
    """Print the table."""
    total = sum(phases.values())
    lines = phases | {"a round": total, "outside gradient passes": total - phases[PASSES]}
    print(f"{what}\n")
    for name, seconds in (lines | {"a row of the log": row}).items():
        print(f"{name:26} {1e3 * seconds:10.2f} ms")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.network", description=__doc__)
    for name, value in (
        ("model", "resnet18"),
        ("width", 1.0),
        ("pool", 1),
        ("workers", 8),
        ("samples", 0),
        ("chunk", 128),
        ("batch", 128),
        ("rounds", 20),
        ("device", "auto"),
        ("method", "cd-adam"),
        ("compressor", "scaled-sign"),
        ("k", 0.016),
    ):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    for name in ("mixed", "tf32", "augment"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(words)


def main() -> int:
    """Measure, and print on rank 0."""
    try:
        spent = measured(arguments())
    except InputError as error:
        print(f"benchmarks.network: {error}", file=sys.stderr)
        return 2
    if MPI.COMM_WORLD.rank == 0:
        show(*spent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
