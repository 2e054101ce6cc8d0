"""Whole runs of what a plugin registers: small experiments, and how their logs compare."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from mpisim.analysis.plugin.registered import Subject
from mpisim.comm.one_process import OneProcess
from mpisim.core.errors import MpisimError
from mpisim.problems import PROBLEMS
from mpisim.runs import api
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import Tables
from mpisim.runs.log.reader import read

if TYPE_CHECKING:
    from mpi4py import MPI

FIRST, LAST = 7, 16  # rounds of the first part, and of the whole run
WORKERS = 6
STEP = 0.02
RANDK, TOPK = {"name": "randk", "k": 4}, {"name": "topk", "k": 4}
IDENTITY, NATURAL = {"name": "identity"}, {"name": "natural"}
QUADRATIC = {"name": "quadratic", "workers": WORKERS, "dimension": 20, "noise": 0.3}
MARINA = {"name": "marina", "p": 0.3}
JOB, WHOLE, PART, MOVED = "job.json", "whole", "part", "moved"


def experiments(subject: Subject, sample: Path) -> Iterator[tuple[str, Tables]]:
    """What the runs of a subject are called, and their tables.

    sample : a LibSVM file, which the problem of most runs reads
    """
    rows = {"name": "logistic", "data": str(sample), "workers": WORKERS}
    own = {"name": subject.name, **subject.table}
    if subject.kind == "compressor":
        yield "ef21", _tables(rows, {"name": "ef21"}, own)
        yield "marina on a quadratic", _tables(QUADRATIC, MARINA, own)
    elif subject.kind in ("method", "estimator"):
        if subject.kind == "estimator":
            own = {"estimator": own.pop("name"), "optimizer": "gd", **own}
        for compressor in (IDENTITY, RANDK, TOPK, NATURAL):
            yield f"with {compressor['name']}", _tables(rows, own, compressor)
    elif subject.kind == "optimizer":
        own["optimizer"] = own.pop("name")
        yield "after MARINA", _tables(rows, {"estimator": "marina", "p": 0.3, **own}, RANDK)
    elif subject.kind == "problem":
        sized = {"workers": WORKERS} if has_workers(subject) else {}
        yield "marina", _tables(sized | own, MARINA, {"name": "randk", "k": 0.3})
        yield "ef21", _tables(sized | own, {"name": "ef21"}, {"name": "topk", "k": 0.3})
    else:
        tables = _tables(rows, {"name": "ef21-2way"}, TOPK)
        tables["run"]["columns"] = [subject.name]
        yield "ef21-2way", tables


def _tables(problem: dict, method: dict, compressor: dict) -> Tables:
    method = {"stepsize": STEP} | method
    run = {"rounds": LAST, "seed": 3}
    tables = {"problem": problem, "method": method, "compressor": compressor, "run": run}
    return copy.deepcopy(tables)


def has_workers(subject: Subject) -> bool:
    """Whether a problem has the key ``workers``."""
    return "workers" in PROBLEMS[subject.name].__dataclass_fields__  # type: ignore[attr-defined]


def run(
    tables: Tables, log: Path, comm: MPI.Intracomm | None = None, rounds: int = LAST, **how: Any
) -> str:
    """Run an experiment on ``comm``, by default in this process; why it cannot, as one line."""
    whole = tables | {"run": tables["run"] | {"rounds": rounds} | how.pop("run", {})}
    try:
        api.run(Experiment.from_dict(whole), comm or OneProcess(), log, **how)  # type: ignore[arg-type]
    except MpisimError as error:
        return str(error)
    return ""


def log_of(folder: Path, number: int | str, name: str) -> Path:
    """The log of a run of an experiment."""
    return folder / f"{number}.{name}.h5"


def write_job(folder: Path, plugins: list[str], many: dict[int, Tables]) -> None:
    """Say what `run_job` runs: {number: experiment}. Each has its log of the first part."""
    (folder / JOB).write_text(json.dumps({"plugins": plugins, "experiments": many}))


def run_job(folder: Path, comm: MPI.Intracomm) -> None:
    """Run each experiment on the ranks of ``comm``, and go on there with its first part.

    Collective. Rank 0 leaves a file with the reason where a run is not possible.
    """
    job = comm.bcast(json.loads((folder / JOB).read_text()) if comm.rank == 0 else None)
    for number, tables in job["experiments"].items():
        moved: dict[str, Any] = {"resume": True, "run": {"layout": "dedicated"}}
        for name, how in ((f"{WHOLE}{comm.size}", {}), (MOVED, moved)):
            log = log_of(folder, number, name)
            why = run(tables, log, comm, **how)
            if why and comm.rank == 0:
                log.with_suffix(".why").write_text(why)


def why_not(log: Path) -> str:
    """Why `run_job` could not write a log; empty if it could."""
    file = log.with_suffix(".why")
    return file.read_text() if file.exists() else ""


def complete(log: Path) -> bool:
    """Whether a run of `LAST` rounds has written its log to the end."""
    if not log.exists():
        return False
    found = read(log)
    status = found.attrs.get("status")
    return status == "diverged" or (status == "done" and found.columns["round"][-1] == LAST)


def differences(one: Path, two: Path) -> list[str]:
    """What two logs differ in, clocks apart."""
    first, second = _content(one), _content(two)
    return [name for name in sorted(first | second) if first.get(name) != second.get(name)]


def _content(path: Path) -> dict[str, bytes]:
    with h5py.File(path, "r") as file:
        found = {
            f"{group}/{name}": data[:].tobytes()
            for group in ("rounds", "workers")
            for name, data in file[group].items()
            if not name.startswith("time_")
        }
        found["final/x"] = file["final/x"][:].tobytes()
        found["stepsize"] = np.float64(file.attrs["stepsize"]).tobytes()
        found["stopped_by"] = file.attrs["stopped_by"].encode()
    return found
