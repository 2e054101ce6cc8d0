"""Repeats a run: its bits from its seed alone, without its data, or all of its rows.

`repeat` runs comparisons on record again, and compares the digests of their rows.

For the bits, the method runs again on a problem whose gradients are zero. Shared randomness decides
which rounds are compressed, which workers take part and which coordinates travel, so if the length
of a message does not depend on its values, all columns of bits follow.
"""

from __future__ import annotations

import dataclasses
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import starmap
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis.results import of_study
from mpisim.analysis.study.figure import Study
from mpisim.comm.clock import Clock
from mpisim.comm.communicators import Comm, OneProcess
from mpisim.comm.job import on_first
from mpisim.comm.star import Star
from mpisim.core.errors import InputError
from mpisim.core.machine import VECTORS, gigabytes, reading_budget
from mpisim.core.protocols import Round
from mpisim.core.registry import of_mpisim
from mpisim.core.rng import Streams
from mpisim.core.terminal import report
from mpisim.methods.method_table import Schedule
from mpisim.problems.base import Problem
from mpisim.runs.experiment import Experiment, parse
from mpisim.runs.labels import Tables
from mpisim.runs.log.reader import Log, last_iterate, read
from mpisim.runs.log.schema import LEDGER, ORACLE
from mpisim.runs.log.untrusted import TOO_LONG
from mpisim.runs.loop import set_up_and_run
from mpisim.runs.record import Output
from mpisim.runs.run_state import RunState
from mpisim.runs.stop import COMPLETE, STOPPED, StopSignals

COLUMNS = [name for name, *_ in LEDGER + ORACLE]
PROGRESS_SECONDS = 5.0


class ZeroGradients(Problem):
    """A problem whose gradients are zero; ``rows``: samples of each worker."""

    name = "zero-gradients"
    identical = True
    identity = "zero-gradients"

    def __init__(self, d: int, rows: np.ndarray, dtype: np.dtype):
        self.n = self.m = rows.size
        self.first, self.d, self.rows, self.dtype = 0, d, rows, dtype

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        raise TypeError("there is nothing to load")

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(self.m), np.zeros((self.m, self.d), self.dtype)

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        return np.zeros((len(batch), self.d), self.dtype)


def why_not(log: Log, experiment: Experiment) -> str:
    """Why the bits cannot be recomputed; empty if they can."""
    if "rows" not in log.workers:
        return "the log lacks the number of samples of each worker, which a run writes at its end"
    if log.columns["bits_up"][0] or log.columns["bits_down"][0]:
        return "what was exchanged before round 0 depends on the data"
    size = 8.0 * VECTORS * log.n * int(log.attrs["dimension"])
    with reading_budget() as budget:
        if size > budget.bytes:
            return f"that may take {gigabytes(size)}; MPISIM_READ_GIGABYTES allows more"
    method, kind = experiment.method.name, type(experiment.method.estimator)
    if not kind.replayed:
        return f"method {method!r} needs more of the data than gradients"
    if not of_mpisim(kind) and "replayed" not in vars(kind):
        return f"the class of method {method!r} does not say `replayed = True`"
    star, _ = _star(log, experiment)
    for compressor in (experiment.compressor, *experiment.method.compressors):
        bound = compressor.bind(int(log.attrs["dimension"]), log.n, experiment.run.precision)
        if bound.fitted:
            return f"the compressor {compressor.name!r} is fitted to the data"
        if bound.form(star.draw("up")).sizes is None:
            return f"the length of a message of {compressor.name!r} depends on what is in it"
    return ""


def replay(log: Log, experiment: Experiment) -> list[str]:
    """The first difference of each column of bits, and of ``oracle_calls``.

    Raises `InputError` where the method does not fit the log, which another version then wrote, and
    `TimeoutError` where all rounds take longer than the command's `reading_budget`.
    """
    star, round = _star(log, experiment)
    rows = log.workers["rows"]
    problem = ZeroGradients(int(log.attrs["dimension"]), rows, star.precision.arithmetic)
    compressor = experiment.compressor.bind(problem.d, star.n, star.precision)
    unmeasured = dataclasses.replace(experiment.run, columns=None)
    experiment = dataclasses.replace(experiment, run=unmeasured)
    state = RunState(experiment, star, round, problem, compressor, rows)
    counts, begin = [], monotonic()
    shown = begin
    rounds = log.columns["round"].tolist()
    logged = set(rounds)
    for k in range(rounds[-1] + 1):
        if k in logged:
            counts.append((*star.ledger.totals.values(), state.oracle.calls))
        if k < rounds[-1]:
            state.step(1.0)  # along gradients that are zero
        if monotonic() - shown > PROGRESS_SECONDS:
            shown = monotonic()
            report(f"  bits of round {k} of {rounds[-1]}")
            with reading_budget() as budget:
                if shown - begin > budget.seconds:
                    raise TimeoutError(f"round {k} of {rounds[-1]} takes too long: {TOO_LONG}")
    problems = []
    for name, repeated in zip(COLUMNS, np.array(counts).T, strict=True):
        values = log.columns[name]
        if not np.array_equal(repeated, values):
            row = int(np.argmax(repeated != values))
            text = f"the log has {values[row]}, the seed gives {repeated[row]}"
            problems.append(f"round {rounds[row]}, {name}: {text}")
    return [
        *problems,
        *worker_differences(log, {"bits_up": star.ledger.worker_bits_up}, "the seed gives"),
    ]


def _star(log: Log, experiment: Experiment) -> tuple[Star, Round]:
    run, round = experiment.run, Round(experiment.run.rounds)
    parts = Streams(run.seed), run.precision, Clock(), round
    star = Star(OneProcess(), log.n, "shared", *parts, fleet=experiment.fleet)
    if int(log.attrs["dimension"]) < 1:  # of workers there is always one
        raise InputError(f"{log.path}: has no workers or no dimension")
    return star, round


def tables_of(log: Log) -> dict[str, Any]:
    """The experiment of a log, up to its last row, without the plugins that it names.

    For a run that did not end, parameters are those that it had resolved, as some depend on
    ``run.rounds``.
    """
    tables = {name: dict(t) if isinstance(t, dict) else t for name, t in log.config.items()}
    tables.pop("plugin", None)
    tables["problem"].setdefault("workers", log.n)
    tables["run"]["checkpoint_seconds"] = 1e9
    if log.attrs.get("status") not in COMPLETE:
        rounds = tables["run"]["rounds"]
        tables["run"]["rounds"] = int(log.columns["round"][-1])
        for key in tables["method"]:
            tables["method"][key] = log.attrs.get(f"method_{key}", tables["method"][key])
        if schedule := tables["method"].get("schedule"):
            at = Schedule(**schedule).starts(rounds)
            tables["method"]["schedule"] = schedule | {"at": at}
    return tables


def rerun(tables: dict[str, Any], log: Log | None, comm: Comm) -> tuple[str, list[str]]:
    """The status of a second run, and the differences. Collective; ``log`` is rank 0's."""
    with ExitStack() as stack, StopSignals("start it again") as signals:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if comm.rank == 0 else ""
        again = Path(comm.bcast(folder)) / "rerun.h5"
        result = set_up_and_run(parse(tables), comm, Output(again), signals)
        if log is None or result.status not in COMPLETE:
            return result.status, []
        return result.status, compare(log, read(again))


def ended(log: Log) -> bool:
    """Whether `/workers` and `/final/x` are there, as of the last row; a run that failed may be
    beyond it."""
    return log.attrs.get("status") not in ("running", "failed")


def worker_differences(log: Log, columns: Mapping[str, np.ndarray], source: str) -> Iterator[str]:
    """The first worker in each of the ``columns`` (n,) of ``source`` that has another value in the
    log."""
    for name, right in columns.items() if ended(log) else ():
        values = log.workers.get(name)
        if values is None:
            yield f"workers/{name}: the log lacks it"
        elif not np.array_equal(values, right):
            i = int(np.argmax(values != right))
            yield f"worker {i}, {name}: the log has {values[i]}, {source} {right[i]}"


def compare(log: Log, again: Log) -> list[str]:
    """What differs in the first row that does, in columns of workers and in x; no clocks."""
    differences = []
    rows = min(log.rows, again.rows)
    names = [n for n in log.columns if n in again.columns and not n.startswith("time_")]
    first = {name: _first(log.columns[name][:rows], again.columns[name][:rows]) for name in names}
    row = min(first.values())
    if row < rows:
        round = log.columns["round"][row]
        for name in (name for name in names if first[name] == row):
            one, two = log.columns[name][row].item(), again.columns[name][row].item()
            differences.append(f"round {round}, {name}: the log has {one!r}, the rerun {two!r}")
    elif log.rows != again.rows:
        differences.append(f"the log has {log.rows} rows, the rerun {again.rows}")
    differences += worker_differences(log, again.workers, "the rerun")
    one, two = last_iterate(log.path), last_iterate(again.path)
    if one is None or two is None:
        if two is not None and ended(log):
            differences.append("final/x: the log lacks it")
    elif not differences and not np.array_equal(one, two, equal_nan=True):
        differences.append("final/x differs, and no column does")
    return differences


def _first(one: np.ndarray, two: np.ndarray) -> int:
    """The first place where they differ; their length if they do not."""
    equal = (one == two) | ((one != one) & (two != two))
    return int(np.argmin(np.append(equal, False)))


SECONDS = 60.0  # of a comparison; more of its runs are not drawn


class Comparison(NamedTuple):
    """A comparison on record.

    runs : {name of a log: the first digits of `Log.digest`}
    seconds : what a run took, the mean over the runs of its figure
    """

    name: str
    figure: str
    scale: str
    runs: dict[str, str]
    seconds: float


def recorded(study: Path) -> list[Comparison]:
    """The comparisons on record that name their runs, each once."""
    comparisons: dict[tuple[str, ...], Comparison] = {}
    for result in of_study(study):
        origin = result.provenance
        seconds = origin.seconds / max(sum(origin.runs.values()), 1)
        for one in (one for claim in result.claims for one in claim.evidence):
            if runs := one.numbers.get("runs"):
                name = f"{origin.study}-{origin.figure}, {origin.scale}, {one.where}"
                new = Comparison(name, origin.figure, origin.scale, runs, seconds)
                comparisons.setdefault((origin.scale, *sorted(runs)), new)
    return list(comparisons.values())


def repeat(
    study: Study, number: int, seed: int, comm: Comm, seconds: float = SECONDS
) -> tuple[list[str], bool, str]:
    """Run ``number`` comparisons again that ``seed`` draws, until a signal stops a run.

    Returns lines for a person, whether all digits agree, and the status of a run that was stopped.

    Collective. Of a comparison as many runs are drawn as took ``seconds``. Comparisons of which one
    run took longer, or that ask for more ranks than the job has, are passed over.
    """
    several = on_first(comm, lambda: recorded(study.folder))
    short = [one for one in several if one.seconds <= seconds]

    def draw() -> tuple[list[tuple[Comparison, dict[str, Tables]]], int]:
        drawn: list[tuple[Comparison, dict[str, Tables]]] = []
        wide, random = 0, Random(seed)
        for comparison in random.sample(short, len(short)):
            if len(drawn) == number:
                break
            count = min(len(comparison.runs), int(seconds / max(comparison.seconds, 1e-9)))
            some = random.sample(sorted(comparison.runs), count)
            one = comparison._replace(runs={name: comparison.runs[name] for name in some})
            tables = _tables(study, one, comm.size)
            if tables is None:
                wide += 1
            else:
                drawn.append((one, tables))
        return drawn, wide

    chosen, wide = on_first(comm, draw)
    drawn = f"{len(chosen)} of {len(several)} comparisons drawn by seed {seed}"
    longer = f"of {len(several) - len(short)} a run takes longer than {seconds:g} s"
    over = f"; {wide} passed over, whose runs ask for more ranks" * (wide > 0)
    lines = [f"{study.folder}: {drawn}; {longer}{over}"]
    right = True
    for one, tables in chosen:
        wrong, stopped = _differences(one, tables, comm)
        if stopped:
            return [*lines, f"  {one.name}: stopped"], right, stopped
        right &= not wrong
        texts = wrong or [f"{len(one.runs)} runs, every digit as on record"]
        lines += [f"  {one.name}: {text}" for text in texts]
    return lines, right, ""


def _differences(one: Comparison, tables: dict[str, Tables], comm: Comm) -> tuple[list[str], str]:
    """A line for each run that is not as on record; or the status of a stopped run. Collective."""
    from mpisim.runs.sweep.executor import sweep

    def wrong(name: str, digest: str) -> str:
        if name not in made:
            return f"{name}: no such run in the figure's grid"
        try:
            log = read(folder / f"{name}.h5")
        except InputError as error:
            return f"{name}: {error}"
        return "" if log.digest.startswith(digest) else f"{name}: other rows than on record"

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(on_first(comm, lambda: temporary))
        points = sweep(folder, list(tables.values()), comm) if tables else []
        if stopped := next((p.status for p in points if p.status in STOPPED), ""):
            return [], stopped
        made = {point.name for point in points}
        return on_first(comm, lambda: [*filter(None, starmap(wrong, one.runs.items()))]), ""


def _tables(study: Study, one: Comparison, ranks: int) -> dict[str, Tables] | None:
    """{name of a log: its experiment}, of the runs that the figure's grids still have.

    None if one asks for more than so many ranks.
    """
    from mpisim.runs.sweep.plan import plan

    planned = []
    for grid in study.figure(one.figure).source.parts():
        folder, points, _ = grid.points(study.folder, one.scale)
        planned += plan(folder, points, ranks, accept=True)
    points = [point for point in planned if point.name in one.runs]
    if any((point.ranks or 0) > ranks for point in points):
        return None
    return {point.name: tomllib.loads(point.config) for point in points}
