"""Every check of a log, one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from mpisim.analysis.verify.checks import as_written, checks
from mpisim.analysis.verify.repeat import COLUMNS, replay, rerun, tables_of, why_not
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.runs.experiment import Experiment, parse
from mpisim.runs.identity import executed_by, of_log, other_code
from mpisim.runs.log.reader import Log, damaged
from mpisim.runs.log.schema import DIGEST
from mpisim.runs.signals import STOPPED


@dataclasses.dataclass(frozen=True)
class Check:
    """One check of a log.

    problems : what is wrong; done : False where it could not be checked, or is a remark
    stopped : the status of a second run that a signal has ended
    """

    text: str
    problems: tuple[str, ...] = ()
    done: bool = True
    stopped: str = ""

    def __str__(self) -> str:
        mark = "!!" if self.problems else "ok" if self.done else "--"
        return "\n".join([f"  {mark}  {self.text}", *(f"      {one}" for one in self.problems)])


def examine(log: Log, again: bool, trusted: bool, comm: Any) -> Iterator[Check]:
    """The checks of a log, as they are made; with ``again`` also a second run. Collective.

    trusted : what the experiment needs beyond mpisim is loaded
    """
    lacks = "" if trusted else lacking(log.config.get("plugin", []))
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
        text = f"every row of a second run on {comm.size} ranks, clocks apart"
        yield comm.bcast(Check(text, tuple(problems)))


def lacking(plugins: object) -> str:
    """What a log with these plugins needs; empty if there are none."""
    if not plugins:
        return ""
    names = ", ".join(map(str, plugins if isinstance(plugins, list) else [plugins]))
    return f"its experiment needs {names}: --plugin names it, --load-plugins trusts the log"


def _checks(log: Log, lacks: str) -> Iterator[Check]:
    """Those that need nothing but the log; ``lacks``: what its experiment needs."""
    with damaged(log.path):
        text, problems = as_written(log)
        there = DIGEST in log.attrs
        yield Check(text if there else f"{text}: no, the log has none", tuple(problems), done=there)
        good = True
        for text, problems in checks(log):
            good = good and not problems
            yield Check(text, tuple(problems))
        if good and log.rows:
            yield from _recomputed(log, lacks)


def _recomputed(log: Log, lacks: str) -> Iterator[Check]:
    here = [name for name in COLUMNS if name in log.columns]
    text = f"{', '.join(here)}: recomputed from the seed"
    if lacks:
        yield Check(f"{text}: no, {lacks}", done=False)
        return
    try:
        experiment = parse(tables_of(log))
    except InputError as error:
        hint = "--plugin loads what is not mpisim's"
        raise InputError(f"{log.path}: {error}; {hint}") from None
    yield from _code(log, experiment)
    if reason := why_not(log, experiment):
        yield Check(f"{text}: no, {reason}; --rerun checks them", done=False)
        return
    try:
        yield Check(text, tuple(replay(log, experiment)))
    except TimeoutError as error:
        yield Check(f"{text}: no, {error}", done=False)


def _code(log: Log, experiment: Experiment) -> Iterator[Check]:
    """Whether one code, the one here, wrote the log. Another one need not be wrong."""
    for line in str(log.attrs.get("accepted_changes", "")).splitlines():
        yield Check(f"other code wrote the rows from {line}", done=False)
    text = other_code(of_log(log.attrs), executed_by(experiment))
    yield Check(f"the log {text}" if text else "the code that is here wrote the log", done=not text)
