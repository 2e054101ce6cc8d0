"""`mpisim check`: all that a plugin registers, in one process, in whole runs, on several ranks."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from mpisim.comm.communicators import Comm, OneProcess
from mpisim.compressors import make
from mpisim.compressors.base import COMPRESSORS, Compressor
from mpisim.core.errors import InputError, MpisimError
from mpisim.core.imports import reached
from mpisim.core.registry import Registry
from mpisim.core.schema import build, options
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.problems.data.sample import write_sample
from mpisim.runs import plugins as files
from mpisim.runs.labels import Tables
from mpisim.runs.metrics import METRICS
from mpisim.testing import runs
from mpisim.testing.compressor import compressor_checks
from mpisim.testing.method import THEORY, finds_gradient, theory_step
from mpisim.testing.problem import problem_checks
from mpisim.testing.runs import Broken, Check, NotChecked, Outcome, Trial

KINDS: dict[str, Registry[Any]] = {
    "compressor": COMPRESSORS,
    "estimator": ESTIMATORS,
    "optimizer": OPTIMIZERS,
    "problem": PROBLEMS,
    "metric": METRICS,
}
# By type, for keys without a default.
TRIED = {bool: True, int: 2, float: 0.5, Compressor: {"name": "randk", "k": 2}}
DATA = "data"  # this key without a default gets the sample

# What the runs have besides the subject.
WORKERS = 6
STEP = 0.02
RANDK, TOPK = {"name": "randk", "k": 4}, {"name": "topk", "k": 4}
IDENTITY, NATURAL = {"name": "identity"}, {"name": "natural"}
QUADRATIC = {"name": "quadratic", "workers": WORKERS, "dimension": 20, "noise": 0.3}
MARINA = {"name": "marina", "p": 0.3}


class Subject(NamedTuple):
    """One thing that a plugin registers, with one of its tables.

    kind : a key of `KINDS`; ``method`` for an estimator that has a method of its name
    """

    kind: str
    name: str
    table: Mapping[str, Any]

    def __str__(self) -> str:
        keys = ", ".join(f"{key} = {value}" for key, value in self.table.items() if key != DATA)
        return f"{self.kind} {self.name}" + (f" ({keys})" if keys else "")


def check(
    plugins: str | os.PathLike | Sequence[str | os.PathLike],
    comm: Comm | None = None,
    say: Callable[[Outcome], Any] = id,
) -> list[Outcome]:
    """Check everything that plugins register; the outcomes, on rank 0. Collective.

    Runs on several ranks take those of ``comm``; a single rank starts mpirun for them.

    plugins : the path of a .py file, the name of a module, or several of these
    say : is called with each outcome as soon as it is known

    `InputError` for a plugin that cannot be loaded, registers nothing, or has a key that must be
    given and for which its ``examples`` have no value.
    """
    ranks: Any = comm or OneProcess()
    several = [plugins] if isinstance(plugins, str | os.PathLike) else plugins
    names = load([os.fspath(plugin) for plugin in several])
    with tempfile.TemporaryDirectory(prefix="mpisim-check-") as folder:
        if ranks.rank > 0:
            for trial in ranks.bcast(None):
                trial.run_on(ranks)
            return []
        outcomes = []
        for outcome in _outcomes(names, Path(folder), ranks):
            outcomes.append(outcome)
            say(outcome)
        return outcomes


def _outcomes(names: list[str], folder: Path, comm: Any) -> Iterator[Outcome]:
    sample = folder / "sample"
    write_sample(sample, rows=240)
    planned: list[tuple[Subject, list[Trial]]] = []
    for i, subject in enumerate(list(subjects(names, sample))):
        trials = [
            Trial(title, deepcopy(tables), folder / f"{i}.{j}")
            for j, (title, tables) in enumerate(experiments(subject, sample))
        ]
        # a method may need an unbiased compressor, say, but must run without compression
        for trial in trials[1:] if subject.kind in ("method", "estimator") else ():
            trial.optional = True
        planned.append((subject, trials))
        for one in _alone(subject):
            yield one.outcome(str(subject))
        yield from _in_one_process(subject, trials)
    able = [trial for _, trials in planned for trial in trials if not trial.why]
    job = _on_ranks(names, folder, able, comm)
    for subject, trials in planned:
        for one in _compared(subject, trials, job, comm.size if comm.size > 1 else runs.RANKS):
            yield one.outcome(str(subject))


def _alone(subject: Subject) -> list[Check]:
    """The checks of a compressor or problem by itself."""
    table = dict(subject.table)
    if subject.kind == "compressor":
        return compressor_checks(make({"name": subject.name, **table}))
    if subject.kind == "problem":
        return problem_checks(build(PROBLEMS[subject.name], table, "problem"))
    return []


def _in_one_process(subject: Subject, trials: list[Trial]) -> Iterator[Outcome]:
    name, ran = str(subject), Check("runs", _over(trials, Trial.run)).outcome(str(subject))
    titles = ", ".join(trial.title for trial in trials if not trial.refused)
    yield ran._replace(what=f"runs ({titles})")
    for trial in trials:
        if trial.refused:
            yield Outcome(name, f"runs {trial.title}", "not checked", trial.why)
    if subject.kind == "method":
        title = f'stepsize = "theory": f falls in {THEORY} rounds'
        yield Check(title, lambda: theory_step(trials)).outcome(name)
    right = False
    if subject.kind in ("method", "estimator"):
        title, tables = "where the point stands still, it finds the gradient", trials[0].tables
        outcome = Check(title, lambda: finds_gradient(tables)).outcome(name)
        right = outcome.status == "ok"
        yield outcome
    for trial in trials:
        trial.may_keep = right
    same = "a run with run.debug = true has the same log"
    yield Check(same, _over(trials, Trial.debug)).outcome(name)
    same = "a run in two parts has the log of a run in one, so its state is complete"
    yield Check(same, _over(trials, Trial.resume)).outcome(name)
    if subject.kind == "metric":
        same = "it does not change the run that it measures"
        yield Check(same, _over(trials, Trial.unmeasured)).outcome(name)
    if able := [trial for trial in trials if trial.ensemble()]:
        same = "in_ensembles: two runs that advance together have the logs of each alone"
        yield Check(same, _over(able, Trial.together)).outcome(name)


def _over(trials: list[Trial], check: Callable[[Trial], None]) -> Callable[[], None]:
    """A check of each experiment, but those that are optional and do not run."""

    def checked() -> None:
        for trial in trials:
            if trial.refused:
                continue
            try:
                if check is not Trial.run and trial.why:
                    raise Broken(trial.why)
                check(trial)
            except (MpisimError, Broken) as error:
                raise Broken(f"{trial.title}: {error}") from None

    return checked


def _on_ranks(names: list[str], folder: Path, trials: list[Trial], comm: Any) -> Outcome:
    """Run on several ranks what runs; a job's outcome."""
    if comm.size > 1:
        for trial in comm.bcast(trials):
            trial.run_on(comm)
        return Outcome("", "", "ok")
    absolute = [str(Path(name).resolve()) if name.endswith(".py") else name for name in names]
    return Check("", lambda: runs.run_job(folder, absolute, trials)).outcome("")


def _compared(subject: Subject, trials: list[Trial], job: Outcome, ranks: int) -> Iterator[Check]:
    """The logs of several ranks against those of one."""

    def compare(name: str) -> None:
        if subject.kind == "problem" and not PROBLEMS[subject.name].has_workers():
            raise NotChecked("without the key `workers` there are as many workers as ranks")
        if job.status == "not checked":
            raise NotChecked(job.why)
        _over(trials, lambda trial: trial.compare(name, job.why))()

    yield Check(f"the same log on {ranks} ranks as on 1", lambda: compare("ranks"))
    yield Check(f"begun on 1 rank and ended on {ranks}, the same log", lambda: compare("moved"))


def experiments(subject: Subject, sample: Path) -> Iterator[tuple[str, Tables]]:
    """What the runs of a subject are called, and their tables.

    sample : a LibSVM file, which the problem of most runs reads
    """
    rows = {"name": "logistic", "data": str(sample), "workers": WORKERS}
    table = {"name": subject.name, **subject.table}
    if subject.kind == "compressor":
        yield "ef21", _tables(rows, {"name": "ef21"}, table)
        yield "marina on a quadratic", _tables(QUADRATIC, MARINA, table)
    elif subject.kind in ("method", "estimator"):
        if subject.kind == "estimator":
            table = {"estimator": table.pop("name"), "optimizer": "gd", **table}
        for compressor in (IDENTITY, RANDK, TOPK, NATURAL):
            yield f"with {compressor['name']}", _tables(rows, table, compressor)
    elif subject.kind == "optimizer":
        table["optimizer"] = table.pop("name")
        yield "after MARINA", _tables(rows, {"estimator": "marina", "p": 0.3, **table}, RANDK)
    elif subject.kind == "problem":
        sized = {"workers": WORKERS} if PROBLEMS[subject.name].has_workers() else {}
        yield "marina", _tables(sized | table, MARINA, {"name": "randk", "k": 0.3})
        yield "ef21", _tables(sized | table, {"name": "ef21"}, {"name": "topk", "k": 0.3})
    else:
        drawing = {"p": 0.3, "batch": 4}
        for method, keys, compressor in (("ef21-2way", {}, TOPK), ("vr-marina", drawing, RANDK)):
            tables = _tables(rows, {"name": method, **keys}, compressor)
            tables["run"]["columns"] = [subject.name]
            yield method, tables


def _tables(problem: dict, method: dict, compressor: dict) -> Tables:
    method, run = {"stepsize": STEP} | method, {"rounds": runs.LAST, "seed": 3}
    return {"problem": problem, "method": method, "compressor": compressor, "run": run}


# what plugins register


def load(value: Sequence[str]) -> list[str]:
    """Import plugins; `InputError` unless they register something."""
    names = files.load(list(value))
    classes = [cls for registry in KINDS.values() for cls in registry.loaded().values()]
    for plugin in names:
        if not _modules([plugin]) & {cls.__module__ for cls in classes}:
            kinds = ", ".join(KINDS)
            raise InputError(f"{plugin}: registers nothing; expected: a {kinds} or method")
    return names


def subjects(names: Sequence[str], sample: Path) -> Iterator[Subject]:
    """Everything that the loaded plugins ``names`` register, with each of its `examples`.

    ``sample``: a LibSVM file for problems that need data. `InputError` where a key has no default
    and its type does not say what may be tried.
    """
    modules = _modules(names)
    for kind, registry in KINDS.items():
        for name, cls in registry.loaded().items():
            if cls.__module__ in modules:
                title = "method" if kind == "estimator" and METHODS.knows(name) else kind
                for table in _examples(title, name, cls, sample):
                    yield Subject(title, name, table)


def _modules(names: Sequence[str]) -> set[str]:
    """The modules of plugins, and those of the same folders or packages that they import."""
    modules = (Path(name).stem if name.endswith(".py") else name for name in names)
    return set(reached(modules, lambda name, _: name.partition(".")[0] != "mpisim"))


def _examples(kind: str, name: str, cls: Any, sample: Path) -> Iterator[dict[str, Any]]:
    if not dataclasses.is_dataclass(cls):  # a metric, which has no keys
        yield {}
        return
    hints, missing = get_type_hints(cls), dataclasses.MISSING
    needed = [
        field.name
        for field in dataclasses.fields(cls)
        if field.init and field.default is missing and field.default_factory is missing
    ]
    for example in getattr(cls, "examples", ()) or [{}]:
        table = dict(example)
        for key in (key for key in needed if key.rstrip("_") not in table):
            tried = [TRIED[option] for option in options(hints[key]) if option in TRIED]
            if key == DATA:
                tried = [str(sample)]
            if not tried:
                how = f"so its class must say what to try: examples = [{{{key!r}: ...}}]"
                raise InputError(f"{kind} {name!r}: the key {key!r} has no default, {how}")
            table[key.rstrip("_")] = tried[0]
        yield table
