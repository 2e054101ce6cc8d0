"""Every check of a log, one after the other; most must hold whatever was run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis.link_model import to_some
from mpisim.analysis.repeat import COLUMNS, ended, replay, rerun, tables_of, why_not
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.terminal import one_line
from mpisim.runs.careful import is_plugin
from mpisim.runs.experiment import parse
from mpisim.runs.identity import executed_by, of_log, other_code
from mpisim.runs.log.reader import Log, damaged
from mpisim.runs.log.schema import CUMULATIVE, DIGEST, LEDGER, REQUIRED, SCHEMA_VERSION
from mpisim.runs.stop import STOPPED, Stop, diverges, stop_of


class Check(NamedTuple):
    """One check of a log.

    problems : what is wrong; done : False where it could not be checked, or is a remark
    stopped : the status of a second run that a signal has ended
    """

    text: str
    problems: Sequence[str] = ()
    done: bool = True
    stopped: str = ""

    def __str__(self) -> str:
        mark = "!!" if self.problems else "ok" if self.done else "--"
        return "\n".join([f"  {mark}  {self.text}", *(f"      {one}" for one in self.problems)])


def checks(log: Log) -> Iterator[Check]:
    """The checks that need the log alone; where columns are missing, the first one only."""
    missing = [name for name, *_ in REQUIRED if name not in log.columns]
    wrong = [f"there is no column {name}" for name in missing]
    if (version := log.attrs.get("schema_version")) != SCHEMA_VERSION:
        wrong.append(f"schema_version is {version}, this mpisim writes {SCHEMA_VERSION}")
    yield Check("schema: all columns are there", wrong)
    if missing or not log.rows:
        return
    yield Check("rounds: each run.log_every-th, and the last", _rounds(log))
    yield Check("cumulative columns never decrease", list(_falls(log)))
    yield Check("totals of all workers agree with each other", list(_totals(log)))
    yield Check("attributes agree with config", list(_attributes(log)))
    yield Check("status fits the last row", list(_status(log)))


def as_written(log: Log) -> Check:
    """Whether the rows are those that were written, by a log's digest."""
    text = f"{DIGEST}: the sha256 of the rows, clocks included"
    if DIGEST not in log.attrs:
        return Check(f"{text}: no, the log has none", done=False)
    return Check(text, () if log.as_written else ["the rows have changed since they were written"])


def _rounds(log: Log) -> list[str]:
    rounds = log.columns["round"]
    every = log.config["run"].get("log_every") or log.attrs.get("log_every", 1)
    last = int(rounds[-1])
    expected = np.union1d(np.arange(0, last + 1, int(every)), last)
    if np.array_equal(rounds, expected):
        return []
    same = min(rounds.size, expected.size)
    row = int(np.argmax(np.append(rounds[:same] != expected[:same], True)))
    return [f"row {row} is of round {rounds[min(row, rounds.size - 1)]}"]


def _falls(log: Log) -> Iterator[str]:
    for name, *_ in CUMULATIVE:
        steps = np.diff(log.columns[name], prepend=0)
        if not np.all(steps >= 0):
            row = int(np.argmin(steps >= 0))
            yield f"round {log.columns['round'][row]}, {name}: falls by {-steps[row]}"


def _totals(log: Log) -> Iterator[str]:
    last = {name: int(log.columns[name][-1]) for name, *_ in LEDGER}
    most, total = last["bits_up_max"], last["bits_up"]
    if not total <= log.n * most <= log.n * total:
        yield f"bits_up_max is {most} where {log.n} workers sent {total} bits"
    for name in () if to_some(log) else ("bits_down", "framing_bits_down"):
        uneven = log.columns[name] % log.n != 0
        if uneven.any():
            round = log.columns["round"][int(uneven.argmax())]
            yield f"round {round}, {name}: is not the same for each of {log.n} workers"
    sent = log.workers.get("bits_up") if ended(log) else None
    if sent is not None and int(sent.sum()) != total:
        yield f"workers/bits_up sums up to {sent.sum()}, rounds/bits_up ends with {total}"
    if sent is not None and int(sent.max()) > most:
        yield f"a worker sent {sent.max()} bits, bits_up_max ends with {most}"


def _attributes(log: Log) -> Iterator[str]:
    config = log.config
    expected = {
        "title": config.get("title"),
        "seed": config["run"]["seed"],
        "method": config["method"]["name"],
        "compressor": config["compressor"]["name"],
        "workers": config["problem"].get("workers", log.n),
    }
    for name, value in expected.items():
        if log.attrs.get(name) != value:
            yield f"{name} is {log.attrs.get(name)!r}, in config {value!r}"
    for name, values in log.workers.items():
        if values.size != log.n:
            yield f"workers/{name} has {values.size} rows for {log.n} workers"


def _stopped_by(log: Log, last: int, stop: Stop) -> Iterator[str]:
    """A run that is done ends where its budget does, and its log says so."""
    last_row = {name: values[-1] for name, values in log.columns.items()}
    met = stop.met(last_row, log.n, float(log.columns["grad_norm_sq"][0]))
    rounds, cause = log.config["run"]["rounds"], log.attrs.get("stopped_by", "rounds")
    if not met and last != rounds:
        yield f"done, but the last row is that of round {last} of {rounds}"
    elif cause != (met or "rounds"):
        yield f"stopped by {cause}, but the last row says {met or 'rounds'}"


def _status(log: Log) -> Iterator[str]:
    status, last = log.attrs.get("status"), int(log.columns["round"][-1])
    row_0, end = ({name: float(v[i]) for name, v in log.columns.items()} for i in (0, -1))
    loss, stop = end["loss"], stop_of(log.config)
    row = stop.first_row(log.columns, log.n)
    if row is not None and row < log.rows - 1:
        yield f"round {log.columns['round'][row]} meets run.stop, but the last row is of {last}"
    elif status == "done":
        yield from _stopped_by(log, last, stop)
    if (status == "diverged") != diverges(end, row_0["loss"]) and status in ("done", "diverged"):
        yield f"{status}, but the last loss is {loss}, |grad f|^2 {end['grad_norm_sq']}"


def examine(log: Log, again: bool, trusted: bool, comm: Any) -> Iterator[Check]:
    """The checks of a log, as they are made; with ``again`` also a second run. Collective.

    trusted : what the experiment needs beyond mpisim is loaded
    """
    lacks, plugins = "", log.config.get("plugin")
    if plugins and not trusted:
        names = ", ".join(map(str, plugins if isinstance(plugins, list) else [plugins]))
        lacks = f"its experiment needs {names}: --plugin names it, --load-plugins trusts the log"
    if lacks and again:
        raise InputError(f"{log.path}: {lacks}")
    made = _checks(log, lacks)
    while (check := on_first(comm, lambda: next(made, None))) is not None:
        yield check
    if again and log.rows:
        status, problems = rerun(tables_of(log), log if comm.rank == 0 else None, comm)
        if status in STOPPED:
            yield Check("stopped", done=False, stopped=status)
            return
        ranks = f"{comm.size} rank{'s' * (comm.size > 1)}"
        text = f"every row of a second run on {ranks}, except for the clocks"
        yield comm.bcast(Check(text, problems))


def _checks(log: Log, lacks: str) -> Iterator[Check]:
    """Those that need nothing but the log; ``lacks``: what its experiment needs."""
    with damaged(log.path):
        yield as_written(log)
        good = True
        for check in checks(log):
            good = good and not check.problems
            yield check
        if good and log.rows:
            yield from _recomputed(log, lacks)


def _recomputed(log: Log, lacks: str) -> Iterator[Check]:
    text = f"{', '.join(COLUMNS)}: recomputed from the seed"
    if lacks:
        yield Check(f"{text}: no, {lacks}", done=False)
        return
    try:
        experiment = parse(tables_of(log))
    except InputError as error:
        raise InputError(f"{log.path}: {error}; --plugin loads what is not mpisim's") from None
    # Whether one code, the one here, wrote the log. Another one need not be wrong.
    for line in str(log.attrs.get("accepted_changes", "")).splitlines():
        yield Check(f"other code wrote the rows from {line}", done=False)
    other = other_code(of_log(log.attrs), executed_by(experiment))
    same = "the code that is here wrote the log"
    yield Check(f"the log {other}" if other else same, done=not other)
    again = "--rerun checks them"
    try:
        if reason := why_not(log, experiment):
            check = Check(f"{text}: no, {reason}; {again}", done=False)
        else:
            check = Check(text, replay(log, experiment))
    except TimeoutError as error:
        check = Check(f"{text}: no, {error}", done=False)
    except Exception as error:
        method = experiment.method
        if not is_plugin(method.estimator) and not is_plugin(method.optimizer):
            raise
        why = f"without the data there is {one_line(repr(error))}"
        check = Check(f"{text}: no, {why}; {again}", done=False)
    yield check
