"""`mpisim check`: all that a plugin registers, in one process, in whole runs, on several ranks."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpisim.analysis.plugin import compressor, problem, ranks, registered, runs
from mpisim.analysis.plugin.outcome import Check, NotChecked, Outcome, outcome
from mpisim.analysis.plugin.registered import Subject
from mpisim.comm.one_process import OneProcess
from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.schema import build
from mpisim.problems import PROBLEMS
from mpisim.problems.data.sample import write_sample
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import Tables
from mpisim.runs.setup import Setup

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclasses.dataclass
class _Run:
    """An experiment with a subject.

    number : in the names of its logs
    why : it does not run; empty if it does
    refused : what it combines does not go together, which is no mistake
    """

    title: str
    tables: Tables
    number: int
    why: str = "did not run"
    refused: bool = False


def check(
    plugins: str | os.PathLike | Sequence[str | os.PathLike],
    comm: MPI.Intracomm | None = None,
    say: Callable[[Outcome], Any] = id,
) -> list[Outcome]:
    """Check everything that plugins register; the outcomes, on rank 0. Collective.

    Runs on several ranks take those of ``comm``; a single rank starts mpirun for them.

    plugins : the path of a .py file, the name of a module, or several of these
    say : is called with each outcome as soon as it is known

    `InputError` for a plugin that cannot be loaded, registers nothing, or has a key that must be
    given and for which its ``examples`` have no value.
    """
    used: Any = comm or OneProcess()
    several = [plugins] if isinstance(plugins, str | os.PathLike) else plugins
    names = registered.load([os.fspath(plugin) for plugin in several])
    with tempfile.TemporaryDirectory(prefix="mpisim-check-") as own:
        folder = Path(used.bcast(own))
        if used.rank > 0:
            used.bcast(None)
            runs.run_job(folder, used)
            return []
        found: list[Outcome] = []
        for result in _outcomes(names, folder, used):
            found.append(result)
            say(result)
        return found


def _outcomes(names: list[str], folder: Path, comm: Any) -> Iterator[Outcome]:
    sample = folder / "sample"
    write_sample(sample, rows=240)
    planned: list[tuple[Subject, list[_Run]]] = []
    count = 0
    for subject in list(registered.subjects(names, sample)):
        for what, function in _of_parts(subject):
            yield outcome(str(subject), what, function)
        many = [
            _Run(title, tables, count + i)
            for i, (title, tables) in enumerate(runs.experiments(subject, sample))
        ]
        count += len(many)
        planned.append((subject, many))
        yield from _in_one_process(subject, many, folder)
    whole = [one for _, many in planned for one in many]
    job = _on_ranks(names, whole, folder, comm)
    for subject, many in planned:
        yield from _compared(subject, many, folder, job, comm.size)


def _of_parts(subject: Subject) -> Iterator[Check]:
    """The checks of a compressor or problem by itself."""
    table = dict(subject.table)
    if subject.kind == "compressor":
        yield from compressor.checks(make({"name": subject.name, **table}))
    elif subject.kind == "problem":
        yield from problem.checks(build(PROBLEMS[subject.name], table, "problem"))


def _in_one_process(subject: Subject, many: list[_Run], folder: Path) -> Iterator[Outcome]:
    titles, name = ", ".join(one.title for one in many), str(subject)
    yield outcome(name, f"runs ({titles})", lambda: _run_all(subject, many, folder))
    for one in (one for one in many if one.refused):
        yield Outcome(name, f"runs {one.title}", "not checked", one.why)
    if subject.kind == "method":
        yield outcome(name, 'stepsize = "theory" is a number > 0', lambda: _theory(many))
    same = "a run in two parts has the log of a run in one, so its state is complete"
    yield outcome(name, same, lambda: _first(many, lambda one: _resumed(one, folder)))


def _run_all(subject: Subject, many: list[_Run], folder: Path) -> str:
    """Run each experiment whole, and the first part of it twice."""
    for one in many:
        for name, rounds in (
            (runs.WHOLE, runs.LAST),
            (runs.PART, runs.FIRST),
            (runs.MOVED, runs.FIRST),
        ):
            log = runs.log_of(folder, one.number, name)
            one.why = runs.run(one.tables, log, rounds=rounds)
            if one.why:
                break
        # a method may need an unbiased compressor, say, but must run without compression
        able = subject.kind in ("method", "estimator") and one is not many[0]
        one.refused = bool(one.why) and able
    return _first(many, lambda one: one.why)


def _theory(many: list[_Run]) -> str:
    """The theory step with the first compressor that has one."""
    why = ""
    for one in many:
        tables = one.tables | {"method": one.tables["method"] | {"stepsize": "theory"}}
        try:
            step = Setup(Experiment.from_dict(tables), OneProcess()).step  # type: ignore[arg-type]
        except InputError as error:
            why = why or str(error).removeprefix("method.stepsize: ")
            continue
        good = isfinite(step.gamma) and step.gamma > 0
        return "" if good else f"{one.title}: it is {step.gamma}"
    raise NotChecked(why)


def _resumed(one: _Run, folder: Path) -> str:
    if one.why:
        return one.why
    whole, part = (runs.log_of(folder, one.number, name) for name in (runs.WHOLE, runs.PART))
    return runs.run(one.tables, part, resume=True) or _unlike(whole, part)


def _unlike(one: Path, other: Path) -> str:
    different = runs.differences(one, other)
    return f"{', '.join(different)} differ" if different else ""


def _first(many: list[_Run], why: Callable[[_Run], str]) -> str:
    """The first failure among the experiments that run; `NotChecked` if none does."""
    able = [one for one in many if not one.refused]
    for one in able:
        if problem := why(one):
            return f"{one.title}: {problem}"
    return ""


def _on_ranks(names: list[str], many: list[_Run], folder: Path, comm: Any) -> Outcome:
    """Run what runs on several ranks."""
    able = {one.number: one.tables for one in many if not one.why}
    runs.write_job(folder, [_absolute(name) for name in names], able)
    if comm.size > 1:
        comm.bcast(None)
        runs.run_job(folder, comm)
        return Outcome("", "", "ok")
    return outcome("", "", lambda: ranks.start(folder))


def _absolute(plugin: str) -> str:
    return str(Path(plugin).resolve()) if plugin.endswith(".py") else plugin


def _compared(
    subject: Subject, many: list[_Run], folder: Path, job: Outcome, size: int
) -> Iterator[Outcome]:
    """The logs of several ranks against those of one."""
    count = size if size > 1 else ranks.RANKS
    for what, name in (
        (f"the same log on {count} ranks as on 1", f"{runs.WHOLE}{count}"),
        (f"begun on 1 rank and ended on {count}, the same log", runs.MOVED),
    ):

        def compare(name: str = name) -> str:
            if subject.kind == "problem" and not runs.has_workers(subject):
                raise NotChecked("without the key `workers` there are as many workers as ranks")
            if job.status == "not checked":
                raise NotChecked(job.why)
            return _first(many, lambda one: _moved(one, folder, name, job.why))

        yield outcome(str(subject), what, compare)


def _moved(one: _Run, folder: Path, name: str, job: str) -> str:
    """Whether a log of the ranks is that of one rank; ``job``: why some logs are missing."""
    whole, log = (runs.log_of(folder, one.number, n) for n in (runs.WHOLE, name))
    why = one.why or runs.why_not(log)
    if why or runs.complete(log):
        return why or _unlike(whole, log)
    return job or "has no complete log"
