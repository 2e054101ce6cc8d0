"""Run the same experiments with two checkouts of mpisim and compare their logs bit for bit.

    .venv/bin/python tools/compare_logs.py OLD NEW [--logs FOLDER] [--only PATTERN]

OLD and NEW are checkouts. The experiments are those of compare_logs.toml, on one rank and on three,
in both layouts. Each package is used through its command line alone, so its modules may move
between the two checkouts. Logs go to FOLDER/old and FOLDER/new; what has run already with the same
source and the same table is not run again.

Compared are exit codes, what a command says, and all that a log holds: the columns with their units
and descriptions, the last iterate, and the attributes. Left out are the values of the clocks
(`time_*`) and the attributes in VARIES. Prints one line for each difference, then counts; the exit
code is 1 if something differs.

Numba compiles a function anew when its own file changes, not when a function that it calls in
another file does: in that case delete the caches of NEW first (`find NEW/mpisim -name '*.nb[ic]'
-delete`).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import fnmatch
import hashlib
import importlib.util
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import tomli_w

TABLES = ("problem", "method", "compressor", "run", "sweep", "parts")
PLACES = ("1s", "3s", "3d")  # ranks, and shared or dedicated layout
LAYOUTS = {"s": "shared", "d": "dedicated"}
STAGES = (1, 3, 1)  # ranks of the jobs, one after the other
MOST_CRASHES = 10  # jobs that may end before their last command line
# Attributes that tell of the machine, the moment and the software, not of the experiment.
VARIES = {"start", "end", "command", "host", "hosts", "network", "platform", "cores", "python"}
VARIES |= {"mpi_library", "package_version", "mpi4py", "numpy", "scipy", "h5py", "numba"}
VARIES |= {"scikit_learn", "pooch", "tomli_w", "constriction", "torch"}


class Step(NamedTuple):
    """A command line, the experiment file that it reads, and the stage at which it runs."""

    key: str
    argv: list[str]
    tables: dict[str, Any]
    stage: int


class Experiment(NamedTuple):
    """The command lines that write a log, or a folder of logs, called ``name``."""

    name: str
    steps: list[Step]


def experiments(pattern: str) -> list[Experiment]:
    """The experiments whose name matches ``pattern``."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    found = []
    for grid in table["grid"]:
        named = [e for e in of_grid(grid) if fnmatch.fnmatch(e.name, pattern)]
        if named and "needs" in grid and importlib.util.find_spec(grid["needs"]) is None:
            print(f"skipped: {len(named)} of {grid['name']}, {grid['needs']} is not installed")
        else:
            found += named
    return found


def of_grid(grid: dict[str, Any]) -> Iterator[Experiment]:
    """The product of a grid's alternatives, at each of its places."""
    axes = grid.get("vary", {})
    choices = [[{k: c} if k in TABLES else c for c in axis] for k, axis in axes.items()]
    commands = grid.get("commands", ["run FILE --out LOG --force"])
    for choice in itertools.product(*choices):
        tables = {name: copy.deepcopy(grid[name]) for name in TABLES if name in grid}
        for change in choice:
            for name, keys in change.items():
                tables[name] = tables.get(name, {}) | keys
        parts = tables.pop("parts", None)
        words = [grid["name"], *(tables.get(t, {}).get("name") for t in ("method", "compressor"))]
        name = "-".join([*filter(None, words), digest(tables)])
        if parts:
            yield in_parts("-".join([name, *parts["place"]]), tables, parts)
        else:
            for place in grid.get("places", PLACES):
                yield at_place(f"{name}-{place}", tables, commands, place)


def at_place(name: str, tables: dict[str, Any], commands: list[str], place: str) -> Experiment:
    """All command lines at the same place."""
    stage = STAGES.index(int(place[0]))
    return Experiment(name, [step(name, 0, c, tables, place, stage) for c in commands])


def in_parts(name: str, tables: dict[str, Any], parts: dict[str, list]) -> Experiment:
    """A run that is gone on with from its checkpoint, by other ranks or in the other layout."""
    steps, stage = [], 0
    for number, (place, rounds) in enumerate(zip(parts["place"], parts["rounds"], strict=True)):
        stage = STAGES.index(int(place[0]), stage)
        command = f"run FILE --out LOG {'--resume' if number else '--force'}"
        part = tables | {"run": tables["run"] | {"rounds": rounds}}
        steps.append(step(name, number, command, part, place, stage))
    return Experiment(name, steps)


def step(
    name: str, number: int, command: str, tables: dict[str, Any], place: str, stage: int
) -> Step:
    """A command line with the names of its files filled in."""
    tables = tables | {"run": tables["run"] | {"layout": LAYOUTS[place[1]]}}
    files = {"FILE": f"{name}.{number}.toml", "LOG": f"{name}.h5", "FOLDER": name}
    argv = [files.get(word, word) for word in command.split()]
    return Step(f"{name} {digest([argv, tables])} {' '.join(argv)}", argv, tables, stage)


def digest(value: Any) -> str:
    """A few digits that stand for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def source(checkout: Path) -> str:
    """The sha256 of the package's modules and their places."""
    total = hashlib.sha256()
    for path in sorted((checkout / "mpisim").rglob("*.py")):
        total.update(f"{path.relative_to(checkout)}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


class Side:
    """A checkout and the folder of its logs."""

    def __init__(self, checkout: Path, folder: Path):
        self.checkout, self.folder = checkout.resolve(), folder.resolve()
        self.journal, self.stamp = self.folder / "results.jsonl", self.folder / "source"
        self.environment, self.crashes = os.environ | {"PYTHONPATH": str(self.checkout)}, 0
        self.environment |= {"MPISIM_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "1"}
        bin = str(Path(sys.executable).parent)
        self.environment["PATH"] = os.pathsep.join([bin, os.environ["PATH"]])

    def results(self) -> dict[str, list]:
        """Exit code and output of each command line that has run."""
        text = self.journal.read_text(encoding="utf-8") if self.journal.exists() else ""
        return dict(json.loads(line) for line in text.splitlines())

    def run(self, wanted: list[Experiment]) -> None:
        """Run the experiments that are not there yet."""
        self.prepare()
        known = self.results()
        missing = [e for e in wanted if not all(s.key in known for s in e.steps)]
        print(f"{self.checkout}: {len(missing)} of {len(wanted)} experiments to run", flush=True)
        again = {s.key for e in missing for s in e.steps}
        kept = [json.dumps(item) + "\n" for item in known.items() if item[0] not in again]
        self.journal.write_text("".join(kept), encoding="utf-8")
        for experiment in missing:
            for s in experiment.steps:
                file = next((word for word in s.argv if word.endswith(".toml")), None)
                if file:
                    (self.folder / file).write_text(tomli_w.dumps(s.tables), encoding="utf-8")
        for stage, ranks in enumerate(STAGES):
            self.run_stage(missing, stage, ranks)
        if source(self.checkout) != self.stamp.read_text():
            sys.exit(f"{self.checkout}: its source was changed meanwhile; start again")

    def prepare(self) -> None:
        """Empty the folder unless its logs come from this source; see that the package is found."""
        now = source(self.checkout)
        if not self.stamp.exists() or self.stamp.read_text() != now:
            if self.folder.exists() and any(self.folder.iterdir()) and not self.stamp.exists():
                sys.exit(f"{self.folder}: holds something else than logs of this tool")
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self.stamp.write_text(now)
        command = [sys.executable, "-P", "-c", "import mpisim.cli; print(mpisim.__file__)"]
        said = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True
        )
        if not Path(said.stdout.strip()).is_relative_to(self.checkout) or said.returncode:
            sys.exit(f"{self.checkout}: not the package imported: {said.stdout}{said.stderr}")

    def run_stage(self, missing: list[Experiment], stage: int, ranks: int) -> None:
        """The command lines of a stage: one job on several ranks, or two at a time on one rank."""
        start, jobs = time.monotonic(), 2 if ranks == 1 else 1
        lines = [[s for s in e.steps if s.stage == stage] for e in missing]
        lines = [steps for steps in lines if steps]
        shares = [[s for steps in lines[i::jobs] for s in steps] for i in range(jobs)]
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(partial(self.run_job, ranks), range(jobs), shares))
        if lines:
            seconds = time.monotonic() - start
            print(f"  ranks: {ranks}, experiments: {len(lines)}, {seconds:.0f} s", flush=True)

    def run_job(self, ranks: int, number: int, steps: list[Step]) -> None:
        """Command lines in one job. A job that ends early is started again behind the culprit."""
        todo = self.folder / f"job-{number}.json"
        output = todo.with_suffix(".txt")
        command = [sys.executable, "-P", __file__, "drive", todo.name]
        if ranks > 1:
            command = ["sh", "-c", '. "$0" && exec "$@"', settings(self.environment), "mpirun"]
            command += ["-n", str(ranks), sys.executable, "-P", __file__, "drive", todo.name]
        while steps:
            todo.write_text(json.dumps([[s.key, s.argv] for s in steps]))
            with output.open("w") as file:
                ended = subprocess.run(
                    command, cwd=self.folder, env=self.environment, stdout=file, stderr=file
                )
            done = self.results()
            steps = [s for s in steps if s.key not in done]
            if steps:
                self.crashes += 1
                if self.crashes > MOST_CRASHES:
                    sys.exit(f"{self.checkout}: too many jobs ended early; see {output}")
                note(self.journal, steps.pop(0).key, f"the job ended with {ended.returncode}", "")


def settings(environment: dict[str, str]) -> str:
    """The file with the settings of the mpirun that is on PATH, in this tool's checkout."""
    said = subprocess.run(["mpirun", "--version"], env=environment, capture_output=True, text=True)
    vendor = "openmpi" if re.search("open.?mpi|prrte", said.stdout, re.I) else "mpich"
    root = Path(__file__).resolve().parents[1]
    return str(next(f for d in ("tools", "run") if (f := root / d / f"env.{vendor}").is_file()))


def note(journal: Path, key: str, code: Any, said: str) -> None:
    """Append how a command line ended; in one write, as two jobs share the file."""
    with journal.open("ab", buffering=0) as file:
        file.write((json.dumps([key, [code, said]]) + "\n").encode())


def drive(todo: str) -> None:
    """What a job runs, on all of its ranks: one command line after the other."""
    from mpi4py import MPI

    from mpisim.cli import main as command_line

    for key, argv in json.loads(Path(todo).read_text()):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code: Any = command_line(argv)
            except (Exception, SystemExit) as error:
                code = repr(error)
        lines = out.getvalue().splitlines()
        lines += [line for line in err.getvalue().splitlines() if line.startswith("mpisim: ")]
        said = re.sub(r", about .* left", "", "\n".join(lines))
        if MPI.COMM_WORLD.rank == 0:
            note(Path("results.jsonl"), key, code, said)
        MPI.COMM_WORLD.Barrier()


def content(log: Path) -> dict[str, Any]:
    """All that must be alike in two logs, by name."""
    found: dict[str, Any] = {}

    def add(name: str, item: h5py.Group | h5py.Dataset) -> None:
        found.update({f"{name}@{key}": value for key, value in item.attrs.items()})
        if isinstance(item, h5py.Dataset):
            clock = name.startswith("rounds/time_")
            found[name] = (str(item.dtype), item.shape) if clock else item[()]

    with h5py.File(log, "r") as file:
        file.visititems(add)
        found |= {f"@{key}": value for key, value in file.attrs.items() if key not in VARIES}
    return found


def bits(value: Any) -> tuple:
    """What two equal values have in common; NaN is NaN, and -0.0 is not 0.0."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return str(array.dtype), array.shape, array.tobytes()


def unlike(old: Any, new: Any) -> str:
    """In what two values differ, in a few words."""
    if isinstance(old, str) and isinstance(new, str):
        pairs = itertools.zip_longest(old.splitlines(), new.splitlines())
        return next((f"{a!r}, {b!r}" for a, b in pairs if a != b), "ends of lines")
    first, second = np.asarray(old), np.asarray(new)
    if (first.dtype, first.shape) != (second.dtype, second.shape) or not first.ndim:
        return f"{first.dtype} {first.shape} {old!s:.60}, {second.dtype} {second.shape} {new!s:.60}"
    places = [i for i in np.ndindex(first.shape) if bits(first[i]) != bits(second[i])]
    at = places[0]
    return f"{len(places)} of {first.size} values, the first at {at}: {first[at]}, {second[at]}"


def compare_logs(old: Path, new: Path) -> list[str]:
    """One line for each difference between two logs."""
    if not (old.exists() and new.exists()):
        return [f"{old.name}: only on the {'old' if old.exists() else 'new'} side"]
    first, second = content(old), content(new)
    lines = [
        f"{name}: only on the {'old' if name in first else 'new'} side"
        for name in sorted(first.keys() ^ second.keys())
    ]
    lines += [
        f"{name}: {unlike(value, second[name])}"
        for name, value in first.items()
        if name in second and bits(value) != bits(second[name])
    ]
    return [f"{old.name}: {line}" for line in lines]


def compare(old: Side, new: Side, wanted: list[Experiment]) -> int:
    """Print what differs, and counts; the exit code."""
    first, second = old.results(), new.results()
    lines, logs = [], set()
    for name, steps in wanted:
        for s in steps:
            if first[s.key] != second[s.key]:
                pairs = zip(map(str, first[s.key]), map(str, second[s.key]), strict=True)
                lines += [f"{s.key}: {unlike(a, b)}" for a, b in pairs if a != b]
        for side in (old, new):
            paths = [side.folder / f"{name}.h5", *(side.folder / name).glob("*.h5")]
            logs |= {path.relative_to(side.folder) for path in paths if path.exists()}
    names = sorted(logs)
    with ProcessPoolExecutor(2) as pool:
        pairs = [old.folder / n for n in names], [new.folder / n for n in names]
        lines += itertools.chain(*pool.map(compare_logs, *pairs, chunksize=20))
    print(*lines, sep="\n", end="\n" if lines else "")
    codes = Counter(str(second[s.key][0]) for e in wanted for s in e.steps)
    ends = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    print(f"{len(wanted)} experiments, {len(names)} logs, {len(lines)} differences")
    print(f"exit codes of the new side's command lines: {ends}")
    return int(bool(lines))


def main() -> int:
    """Run both sides and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", metavar="OLD", type=Path, help="a checkout")
    parser.add_argument("new", metavar="NEW", type=Path, help="a checkout")
    parser.add_argument("--logs", metavar="FOLDER", type=Path, default=Path("build/compare_logs"))
    parser.add_argument("--only", metavar="PATTERN", default="*", help="of names: 'smooth-*-3d'")
    args = parser.parse_args()
    wanted = experiments(args.only)
    old, new = Side(args.old, args.logs / "old"), Side(args.new, args.logs / "new")
    for side in (old, new):
        side.run(wanted)
    return compare(old, new, wanted)


if __name__ == "__main__":
    sys.exit(drive(sys.argv[2]) if sys.argv[1:2] == ["drive"] else main())
