"""Run the same experiments with two checkouts of mpisim and compare their logs bit for bit.

    .venv/bin/python -m tests.compare OLD NEW [--logs FOLDER] [--only PATTERN]

OLD and NEW are checkouts. The experiments are those of experiments.toml, on one rank and on three,
in both layouts. Only the command line of mpisim is used, so modules may move between the two. Logs
go to FOLDER/old and FOLDER/new-PATH-OF-NEW; a side that has run already with the same source does
not run again.

Compared are exit codes, what is printed, and all that a log holds (columns, their units and
descriptions, the last iterate, attributes) but for the clocks (`time_*`) and the attributes in
VARIES. Prints one line for each difference, then counts; the exit code is 1 if something differs,
be it only the wording of a message. A column in ADDED may be there on the new side only.
"""

import argparse
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tomli_w

from tests.comm.jobs import environment
from tests.compare.table import STAGES, Experiments, Step, digest, experiments

HERE = Path(__file__).resolve().parent
# Attributes that tell of the machine, the moment and the software, not of the experiment.
VARIES = {"start", "end", "command", "host", "hosts", "network", "platform", "cores", "python"}
VARIES |= {"mpi_library", "package_version", "mpi4py", "numpy", "scipy", "h5py", "numba"}
VARIES |= {"llvmlite"}
VARIES |= {"source", "code", "git_commit", "git_dirty", "blas", "blas_core", "cpu", "cpu_features"}
VARIES |= {"numpy_simd", "oversubscribed", "rows_sha256"}  # of the clocks, too
ADDED = {"rounds/messages_up"}  # columns that the old side may lack


class Side:
    """A checkout and the folder of its logs."""

    def __init__(self, checkout: Path, folder: Path):
        self.checkout, self.folder = checkout.resolve(), folder.resolve()
        self.journal = self.folder / "results.jsonl"
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = environment() | {"PATH": path, "PYTHONPATH": str(self.checkout)}
        self.environment |= {"MPISIM_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "1"}

    def source(self) -> str:
        """The sha256 of the package's modules and their places."""
        total = hashlib.sha256()
        for path in sorted((self.checkout / "mpisim").rglob("*.py")):
            total.update(f"{path.relative_to(self.checkout)}\0".encode() + path.read_bytes())
        return total.hexdigest()

    def results(self) -> dict[str, list]:
        """Exit code and output of each command line that has run."""
        text = self.journal.read_text(encoding="utf-8") if self.journal.exists() else ""
        return dict(json.loads(line) for line in text.splitlines())

    def run(self, wanted: Experiments) -> None:
        """Run all of them, stage by stage, unless they have run with this source."""
        stamp, source = self.folder / "source", f"{self.source()} {digest([*wanted])}"
        if stamp.exists() and stamp.read_text() == source:
            return
        if self.folder.exists() and not self.journal.exists():
            sys.exit(f"{self.folder}: holds something else than logs of this tool")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.journal.touch()
        print(f"{self.checkout}: {len(wanted)} experiments to run", flush=True)
        steps = [*itertools.chain(*wanted.values())]
        for s in steps:
            for file in (word for word in s.argv if word.endswith(".toml")):
                (self.folder / file).write_text(tomli_w.dumps(s.tables), encoding="utf-8")
        for stage, ranks in enumerate(STAGES):
            now = [s for s in steps if s.stage == stage]
            shares = [now] if ranks > 1 else [now[::2], now[1::2]]  # in one job; else in two
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(self.run_job, range(2), shares, itertools.repeat(ranks)))
        if not source.startswith(self.source()):
            sys.exit(f"{self.checkout}: the package was changed meanwhile; start again")
        stamp.write_text(source)

    def run_job(self, number: int, steps: list[Step], ranks: int) -> None:
        """Run command lines in one job; one that ends early is started again after the culprit."""
        todo = self.folder / f"job-{number}.json"
        command = [sys.executable, "-P", str(HERE / "job.py"), todo.name]
        if ranks > 1:
            command = ["mpirun", "-n", str(ranks), *command]
        while steps:
            todo.write_text(json.dumps([[s.key, s.argv] for s in steps]))
            with todo.with_suffix(".txt").open("w") as out:
                options = {"cwd": self.folder, "env": self.environment, "stdout": out}
                ended = subprocess.run(command, stderr=out, **options)
            done = self.results()
            left = [s for s in steps if s.key not in done]
            if len(left) == len(steps):
                sys.exit(f"{self.checkout}: a job ended at once; see {out.name}")
            if left:
                culprit = [left.pop(0).key, [f"the job ended with {ended.returncode}", ""]]
                with self.journal.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(culprit) + "\n")
            steps = left


def content(log: Path) -> dict[str, Any]:
    """All that must be alike in two logs, by name."""
    result: dict[str, Any] = {}
    with h5py.File(log, "r") as file:
        items = {"": file}
        file.visititems(items.__setitem__)
        for name, item in items.items():
            kept = [key for key in item.attrs if name or not _varies(key)]
            result |= {f"{name}@{key}": item.attrs[key] for key in kept}
            if isinstance(item, h5py.Dataset):
                clock = name.startswith("rounds/time_")
                result[name] = f"{item.dtype} {item.shape}" if clock else item[()]
    return result


def _varies(key: str) -> bool:
    return key in VARIES or key.startswith("seconds_")


def bits(value: Any) -> tuple:
    """Type, shape and bytes, alike for every NaN."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return str(array.dtype), array.shape, array.tobytes()


def unlike(old: Any, new: Any) -> str:
    """In what two values differ, in a few words."""
    if isinstance(old, str) and isinstance(new, str):
        pairs = itertools.zip_longest(old.splitlines(), new.splitlines())
        return next((f"{a!r}, {b!r}" for a, b in pairs if a != b), "the ends of lines")
    a, b = np.asarray(old), np.asarray(new)
    if a.dtype != b.dtype or a.shape != b.shape or not a.ndim:
        return f"{a.dtype} {a.shape} {old!s:.60}, {b.dtype} {b.shape} {new!s:.60}"
    at = next(i for i in np.ndindex(a.shape) if bits(a[i]) != bits(b[i]))
    return f"first at {at}: {a[at]}, {b[at]}"


def compare_logs(old: Path, new: Path) -> list[str]:
    """One line for each difference between two logs."""
    if not (old.exists() and new.exists()):
        return [f"{old.name}: only on the {'old' if old.exists() else 'new'} side"]
    first, second = content(old), content(new)
    lines = []
    for name in sorted(first | second):
        if name not in first or name not in second:
            if name in first or name.split("@")[0] not in ADDED:
                lines.append(f"{name}: only on the {'old' if name in first else 'new'} side")
        elif bits(first[name]) != bits(second[name]):
            lines.append(f"{name}: {unlike(first[name], second[name])}")
    return [f"{old.name}: {line}" for line in lines]


def compare(old: Side, new: Side, wanted: Experiments) -> int:
    """Print what differs, and counts; the exit code."""
    first, second = old.results(), new.results()
    keys = [s.key for s in itertools.chain(*wanted.values())]
    message: dict[str, list[str]] = {}  # the same change of wording is one line
    for key in keys:
        for a, b in zip(first[key], second[key], strict=True):
            if a != b:
                message.setdefault(unlike(str(a), str(b)), []).append(key)
    folders = old.folder, new.folder
    logs = sorted(
        {p.relative_to(f) for f in folders for p in (*f.glob("*.h5"), *f.glob("*-*/*.h5"))}
    )
    pairs = ([folder / log for log in logs] for folder in folders)
    with ProcessPoolExecutor(2) as pool:
        lines = list(itertools.chain(*pool.map(compare_logs, *pairs, chunksize=20)))
    for text, same in message.items():
        print(f"{same[0]} and {len(same) - 1} more: {text}")
    print("\n".join(lines))
    ended = sorted(Counter(str(second[key][0]) for key in keys).items())
    print("exit codes:", ", ".join(f"{code} ({count} times)" for code, count in ended))
    print(f"{len(wanted)} experiments, {len(logs)} logs")
    print(f"differences: {len(lines)} in logs, {len(message)} in exit codes and printed lines")
    return int(bool(message or lines))


def main() -> int:
    """Run both sides and compare them."""
    parser = argparse.ArgumentParser(description="Compare the logs of two checkouts bit for bit.")
    parser.add_argument("old", metavar="OLD", type=Path, help="a checkout")
    parser.add_argument("new", metavar="NEW", type=Path, help="a checkout")
    parser.add_argument("--logs", metavar="FOLDER", type=Path, default=Path("build/compare_logs"))
    parser.add_argument("--only", metavar="PATTERN", default="*", help="such as 'smooth-*-3d'")
    args = parser.parse_args()
    wanted = experiments(args.only)
    name = "-".join(["new", *args.new.resolve().parts[1:]])
    old, new = Side(args.old, args.logs / "old"), Side(args.new, args.logs / name)
    for side in (old, new):
        side.run(wanted)
    return compare(old, new, wanted)


if __name__ == "__main__":
    sys.exit(main())
