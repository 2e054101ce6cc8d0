"""python -m benchmarks.against REV: are rounds here as fast as those of another revision?

Both checkouts run the same experiments in turns, in many short blocks. A block is a long run less a
short one, so that start, rehearsal and rows cancel. The interval of a ratio assumes nothing about
the noise but that it does not know which checkout runs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, perf_counter, process_time

import numpy as np
from scipy import stats

HERE = Path(__file__).parents[1]
QUADRATIC = {"name": "quadratic", "workers": 1000, "dimension": 100, "noise": 0.1}
LOGISTIC = {"name": "logistic", "data": "sample", "workers": 5}
EXPERIMENTS = {
    "MARINA + RandK, sample, n = 5": (LOGISTIC, {"name": "marina"}, {"name": "randk", "k": 5}),
    "DIANA + QSGD, sample, n = 5": (LOGISTIC, {"name": "diana"}, {"name": "qsgd", "s": 4}),
    "DASHA + RandK, sample, n = 5": (LOGISTIC, {"name": "dasha"}, {"name": "randk", "k": 5}),
    "EF21 + TopK, quadratic, n = 1,000": (QUADRATIC, {"name": "ef21"}, {"name": "topk", "k": 1}),
    "MARINA + PermK, quadratic, n = 1,000": (QUADRATIC, {"name": "marina"}, {"name": "permk"}),
}
BLOCK = 0.25  # seconds of rounds in a block, approximately
CONFIDENCE = 0.95


def main() -> int:
    """Compare, and print a line for each experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("revision", metavar="REV", help="a commit, or a checkout's folder")
    parser.add_argument("files", metavar="EXPERIMENT", nargs="*", help="TOML files of experiments")
    parser.add_argument("--minutes", type=float, default=5.0, help="all in all (default: 5)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        other = Path(arguments.revision)
        if not (other / "mpisim").is_dir():
            other = checkout(arguments.revision, Path(folder))
        jobs = {name: name for name in arguments.files} or {
            name: experiment_file(Path(folder), i) for i, name in enumerate(EXPERIMENTS)
        }
        sides = [stack.enter_context(Side(root)) for root in (HERE, other)]
        compare(sides, jobs, 60 * arguments.minutes / len(jobs), arguments.revision)
    return 0


def compare(sides: list[Side], jobs: dict[str, str], seconds: float, revision: str) -> None:
    """Print the ratio of this checkout's seconds to the other's, with its interval."""
    print(f"seconds of a round here / at {revision}; {CONFIDENCE:.0%} intervals of the median")
    print(f"{'':40} {'here':>9} {'CPU':>22} {'wall':>22}  blocks", flush=True)
    for name, file in jobs.items():
        end = monotonic() + seconds
        for side in sides:
            side.choose_rounds(file)
        rounds = max(side.rounds for side in sides)
        blocks: list[tuple[np.ndarray, np.ndarray]] = []
        while monotonic() < end or len(blocks) < 8:
            order = random.sample(range(2), 2)
            times = {i: sides[i].block(file, rounds) for i in order}
            blocks.append((times[0], times[1]))
        ratios = np.log([here / other for here, other in blocks])
        cpu, wall = (describe(*interval(column)) for column in ratios.T)
        here = np.median([here[0] for here, _ in blocks]) / rounds * 1e6
        print(f"{name[:40]:40} {here:6.1f} us {cpu:>22} {wall:>22}  {len(blocks)}", flush=True)


def interval(logs: np.ndarray) -> tuple[float, float, float]:
    """exp of the median of ``logs`` (blocks,), and of an interval that has it at `CONFIDENCE`.

    Its ends are order statistics, by the binomial distribution of how many lie below the median.
    """
    logs = np.sort(logs[np.isfinite(logs)])
    low = int(stats.binom.ppf((1 - CONFIDENCE) / 2, logs.size, 0.5))
    low = max(0, low - 1)  # ppf is the first count that is not too rare
    ends = logs[low], logs[logs.size - 1 - low]
    return math.exp(np.median(logs)), math.exp(ends[0]), math.exp(ends[1])


def describe(ratio: float, low: float, high: float) -> str:
    """'1.03 [1.01, 1.05]'."""
    return f"{ratio:.3f} [{low:.3f}, {high:.3f}]"


class Side:
    """A process that runs experiments of one checkout."""

    def __init__(self, root: Path):
        environment = os.environ | {"PYTHONPATH": str(root)}
        command = [sys.executable, __file__, "--serve"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=environment, cwd=root, text=True, stdin=pipe, stdout=pipe
        )
        self.root, self.rounds = root, 0

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        with self.process:  # closes its pipes, waits
            pass

    def measure(self, file: str, rounds: int) -> np.ndarray:
        """CPU and wall seconds of a run of so many rounds, shape (2,)."""
        assert self.process.stdout is not None
        print(json.dumps([file, rounds]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{file}: does not run in {self.root}")
        return np.array(json.loads(answer))

    def block(self, file: str, rounds: int) -> np.ndarray:
        """CPU and wall seconds of ``rounds`` rounds, shape (2,)."""
        return self.measure(file, rounds + 10) - self.measure(file, 10)

    def choose_rounds(self, file: str) -> None:
        """Rounds that take about `BLOCK` seconds, after what is loaded and compiled once."""
        self.measure(file, 20)
        self.rounds = 10
        while (cpu := self.block(file, self.rounds)[0]) < BLOCK / 2:
            self.rounds = math.ceil(self.rounds * min(8.0, BLOCK / max(cpu, 1e-3)))


def checkout(revision: str, folder: Path) -> Path:
    """The files of a revision of this repository, in a folder of their own."""
    command = ["git", "-C", str(HERE), "archive", revision]
    archive = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder / "checkout", filter="data")
    return folder / "checkout"


def experiment_file(folder: Path, i: int) -> str:
    """A TOML file of the i-th of `EXPERIMENTS`."""
    import tomli_w

    problem, method, compressor = list(EXPERIMENTS.values())[i]
    step = {"stepsize": 1e-3} | ({"p": 0.1} if method["name"] == "marina" else {})
    tables = {"problem": problem, "method": method | step, "compressor": compressor}
    path = folder / f"{i}.toml"
    path.write_text(tomli_w.dumps(tables | {"run": {"rounds": 10}}))
    return str(path)


def serve(requests: Sequence[str]) -> None:
    """Run what is asked for, with rows at the start and the end alone; answer its seconds."""
    import mpisim

    for request in requests:
        file, rounds = json.loads(request)
        settings = [f"run.rounds={rounds}", f"run.log_every={rounds}"]
        experiment = mpisim.Experiment.load(file, settings)
        start = process_time(), perf_counter()
        mpisim.run(experiment)
        print(json.dumps([process_time() - start[0], perf_counter() - start[1]]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        sys.path.pop(0)  # the folder of this file; mpisim comes from PYTHONPATH
        serve(sys.stdin)  # type: ignore[arg-type]
    else:
        sys.exit(main())
