"""The output of a run: its log, its checkpoints, its progress, and what a tracker gets."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.comm.job import on_first
from mpisim.core.errors import InputError, OutputError, library
from mpisim.core.files import make_folder
from mpisim.core.schema import choose
from mpisim.core.terminal import one_line, report
from mpisim.runs import checkpoint
from mpisim.runs.attributes import Durations, attributes_of
from mpisim.runs.host import Place, here
from mpisim.runs.labels import flatten
from mpisim.runs.log import journal
from mpisim.runs.log.schema import row_type
from mpisim.runs.log.writer import LogWriter, lock_of, require_new
from mpisim.runs.metrics import End, Row
from mpisim.runs.progress import Progress
from mpisim.runs.rehearsal import Rehearsal
from mpisim.runs.resume import Resumption, Start, is_absent
from mpisim.runs.setup import Setup

# Attributes that say how much a run's seconds are worth: the largest of its starts.
BESIDE = ("oversubscribed", "side_by_side", "ensemble")
PLACE = ("ranks", "hosts", "network")  # seconds at two places are those of neither
TRACKERS = {"tensorboard": "tensorboardX", "wandb": "wandb", "mlflow": "mlflow"}


@dataclasses.dataclass(frozen=True)
class Output:
    """Where a run writes its log (None: nowhere), and what to do with an existing one.

    force : replace it; with resume: where it cannot be resumed
    resume : go on from its checkpoint; where there is nothing, start
    accept : go on although other code, libraries or processors executed the rows before
    quiet : show no progress
    closing : whether the progress ends with a line
    keep : also keep the rows in memory
    earlier : with resume, and where there is no log yet: the log of the same experiment with a
        smaller budget that it goes on from; that log stays as it is
    side_by_side : how many runs of a sweep run at the same time
    ensemble : how many runs advance together with this one, and itself
    track : the tracker that gets the rows, too (`mpisim.runs.record`); none if empty
    advice : whether to say where one rank would be faster, unless quiet
    """

    log: Path | None
    force: bool = False
    resume: bool = False
    accept: bool = False
    command: str = ""
    quiet: bool = False
    closing: bool = True
    keep: bool = False
    earlier: Path | None = None
    side_by_side: int = 1
    ensemble: int = 1
    track: str = ""
    advice: bool = True


def find_start(setup: Setup, output: Output) -> Start:
    """What there is to resume, if the output asks for it. Collective; only rank 0 has its rows."""
    log, here = output.log, []
    if log is None or not output.resume:
        return Start()

    def search() -> Start:
        here.append(start := _find_start(setup, output, log))
        ended = start.ended and dataclasses.replace(start.ended, columns={}, attributes={})
        return Start(state=start.state, ended=ended)  # the others need no more

    everywhere = on_first(setup.star.side, search)
    return here[0] if here else everywhere


def _find_start(setup: Setup, output: Output, log: Path) -> Start:
    earlier = None if os.path.lexists(log) else output.earlier
    if output.force and earlier is None and is_absent(log):
        return Start()  # a new point of a sweep, say: there is nothing to report
    run = Resumption(setup.experiment, setup.run, setup.identity, setup.schema, output.accept)
    try:
        if earlier is None:
            start = run.find(log)
        else:
            with lock_of(earlier):
                start = run.find_earlier(earlier)
    except InputError as error:
        if not output.force:
            raise InputError(f"{error}; --force starts over") from None
        start = Start(f"{error}; starting over")
    if start.note:
        report(f"mpisim: {one_line(start.note)}")
    return start


class Record:
    """The record of one run that starts, or goes on from what was found.

    All ranks have one, but only rank 0 writes. The constructor is collective, and raises
    `InputError` if the log cannot be written.

    attributes : of the log, on rank 0
    """

    def __init__(self, setup: Setup, output: Output, start: Start, durations: Durations):
        self.setup, self.output, self.durations = setup, output, durations
        self.path = checkpoint.path_for(output.log) if output.log is not None else None
        self.log: LogWriter | None = None
        self.tracker: Tracker | None = None
        self.attributes: dict = {}
        self._rows: list[tuple] = []
        self._before = np.empty(0, row_type(setup.schema))
        self._resumed = bool(start.state)
        places = setup.star.side.gather(here())
        on_first(setup.star.side, lambda: self._open_log(start, places or []))
        shown = setup.star.is_server and not output.quiet
        self.progress = Progress(setup.run.rounds) if shown else None

    def rehearsed(self, rehearsal: Rehearsal) -> None:
        """The next round is the run's first, or the one of its checkpoint."""
        self.durations.rehearsed(self._resumed)
        shown = self.progress and self.output.advice
        if shown and (advice := rehearsal.advice(self.setup.star.comm.size)):
            report(advice)

    def row(self, row: Row) -> None:
        """Record a row, with the metrics' columns."""
        if self.log is not None:
            self.log.row(row)
        if self.tracker is not None:
            self.tracker.row(row)
        if self.output.keep:
            self._rows.append(tuple(row.values()))
        if self.progress is not None:
            bits = row["bits_up"] / self.setup.star.n
            self.progress.update(row["round"], row["loss"], row["grad_norm_sq"], bits)

    def checkpoint(self) -> None:
        """Save all state before the next round. Collective."""
        if self.path is None:
            return
        state = self.setup.state.dump()
        if state is not None:
            assert self.log is not None
            # a checkpoint comes before the row of its round
            checkpoint.save(self.path, self.setup.identity, state, self.log.mark())

    def close(self, end: End | None) -> None:
        """End log and progress; None: the run failed."""
        status, x = ("failed", None) if end is None else (end.status, end.x)
        if self.progress is not None:
            self.progress.close(status if self.output.closing else "")
        last = self.durations.attributes() | {"stopped_by": end.stopped_by if end else ""}
        if self.attributes:
            self.attributes |= last
        if self.log is not None:
            workers = self.setup.workers | {"bits_up": self.setup.star.ledger.worker_bits_up}
            self.log.finish(status, x, workers, last)
        if self.tracker is not None:
            self.tracker.close(status)

    def columns(self) -> dict[str, np.ndarray]:
        """The kept rows, by column, on rank 0 with those before a resume."""
        schema, before = self.setup.schema, self._before
        values = zip(*self._rows, strict=True) if self._rows else [()] * len(schema)
        named = zip(schema, values, strict=True)
        return {name: np.append(before[name], np.array(v, kind)) for (name, kind, *_), v in named}

    def _open_log(self, start: Start, places: list[Place]) -> None:
        """On rank 0: the log, with the rows before the checkpoint on resume.

        These are those of the log that it replaces, or of an earlier one, which stays. The
        checkpoint comes first: it fits the rows that are there, and those that replace them. One
        without state says that the run starts at round 0.
        """
        setup, output, log, schema = self.setup, self.output, self.output.log, self.setup.schema
        attributes = attributes_of(setup, output.command, places)
        attributes |= {"side_by_side": output.side_by_side, "ensemble": output.ensemble}
        beside = {name: attributes[name] for name in BESIDE}
        rows, before = np.empty(0, row_type(schema)), {}
        if start.mark is not None and start.rows is not None:
            rows, before, k = start.rows, start.mark.attributes, int(start.state["round"])
            moved = any(before.get(name) != attributes.get(name) for name in PLACE)
            beside["resumed_elsewhere"] = int(moved)
            beside = {key: max(int(before.get(key, 0)), value) for key, value in beside.items()}
            attributes |= {"resumed": k, **beside}
            if start.changes:
                lines = before.get("accepted_changes", "").splitlines()
                lines.append(f"round {k}: {start.changes}")
                attributes["accepted_changes"] = "\n".join(lines)
            if output.keep:
                self._before = rows
        self.attributes = before | attributes
        if log is not None and not (output.force or output.resume):
            require_new(log)  # before a tracker shows a run that does not start
        if output.track:
            name = log.stem if log else setup.experiment.method.name
            self.tracker = Tracker(output.track, name, self.attributes)
        if log is None or self.path is None:
            return
        mark = journal.Mark(len(rows), journal.digest(rows), self.attributes)
        try:
            make_folder(log.parent)
            if start.mark is None or (output.earlier is not None and not os.path.lexists(log)):
                checkpoint.former(self.path).unlink(missing_ok=True)
            checkpoint.save(self.path, setup.identity, start.state, mark, keep=False)
        except OSError as error:
            raise InputError(f"{log}: cannot be written: {error.strerror}") from None
        except OutputError as error:
            raise InputError(str(error)) from None
        self.log = LogWriter(log, self.attributes, schema, rows)


class Tracker:
    """A run of the tracker ``kind``; `InputError` where its library is missing.

    A tracker cannot end a run: the first error of its library is reported, and it gets no more.

    name : of the run
    attributes : of the run's log; its settings and its step are sent
    """

    def __init__(self, kind: str, name: str, attributes: Mapping[str, Any]):
        self.kind, self.working = kind, True
        tool = library(choose(TRACKERS, kind, "track"), kind, f"--track {kind}")
        about = flatten(tomllib.loads(attributes["config"])) | {"stepsize": attributes["stepsize"]}
        self._try(lambda: getattr(self, f"_{kind}")(tool, name, about))

    def row(self, row: Mapping[str, Any]) -> None:
        """Send the values of a row, as those of its round."""
        values = {name: float(value) for name, value in row.items() if name != "round"}
        self._try(lambda: self._send(values, int(row["round"])))

    def close(self, status: str) -> None:
        """End the tracker's run, with the status of this one."""
        self._try(lambda: self._end(status))

    def _tensorboard(self, tool: Any, name: str, about: dict[str, Any]) -> None:
        writer = tool.SummaryWriter(f"runs/{name}")
        writer.add_text("settings", "\n".join(f"    {k} = {v}" for k, v in about.items()))
        self._send = lambda values, k: [writer.add_scalar(n, v, k) for n, v in values.items()]
        self._end = lambda status: writer.close()

    def _wandb(self, tool: Any, name: str, about: dict[str, Any]) -> None:
        run = tool.init(project=os.environ.get("WANDB_PROJECT", "mpisim"), name=name, config=about)
        self._send = lambda values, k: run.log(values, step=k)
        self._end = lambda status: run.finish(exit_code=int(status == "failed"))

    def _mlflow(self, tool: Any, name: str, about: dict[str, Any]) -> None:
        tool.start_run(run_name=name)
        tool.log_params({key: str(value)[:500] for key, value in about.items()})
        self._send = lambda values, k: tool.log_metrics(values, step=k)
        self._end = lambda status: tool.end_run("FAILED" if status == "failed" else "FINISHED")

    def _try(self, act: Callable[[], Any]) -> None:
        try:
            if self.working:
                act()
        except Exception as error:
            self.working = False
            report(f"mpisim: --track {self.kind}: stopped: {one_line(error)}; the run goes on")
