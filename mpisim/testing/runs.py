"""Checks that raise, and their outcomes as lines; and small runs, whose logs are compared.

They are in one and in two parts, in one process and on several ranks.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from mpisim.comm.communicators import Comm, OneProcess
from mpisim.comm.debug import poisoning_sent
from mpisim.core.errors import MethodError, MpisimError
from mpisim.core.imports import PACKAGE
from mpisim.core.terminal import without_remarks
from mpisim.runs import api
from mpisim.runs.ensemble import key_of, run_together
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import Tables
from mpisim.runs.log.reader import read
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.stop import EXIT_CODES, STOPPED, StopSignals

FIRST, LAST = 7, 16  # rounds of the first part, and of the run
RANKS = 3
SECONDS = 600.0  # that a job may take: it guards against what hangs
JOB = "job.json"
# More ranks than cores, and root in a container, as tools/env.openmpi says; others ignore them.
OPEN_MPI = {
    "PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


class Broken(AssertionError):
    """What a check demands does not hold; the message, one line, says why."""


def demand(condition: object, why: str) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise Broken(why)


def demand_same(one: np.ndarray, other: np.ndarray, why: str) -> None:
    """Raise `Broken` unless two arrays have the same bytes."""
    demand(one.tobytes() == other.tobytes(), why)


class NotChecked(Exception):
    """A check does not apply; the message says why."""


class Outcome(NamedTuple):
    """One line of `mpisim check`.

    subject : what is checked: ``compressor firstk (k = 3)``
    what : what must hold
    status : ok, failed, or not checked
    why : it failed, or was not checked
    """

    subject: str
    what: str
    status: str
    why: str = ""

    @property
    def failed(self) -> bool:
        """Whether a promise is broken."""
        return self.status == "failed"

    def __str__(self) -> str:
        mark = "--" if self.status == "not checked" else self.status
        return f"{mark:<8}{self.subject}: {self.what}" + (f": {self.why}" if self.why else "")


class Check(NamedTuple):
    """What must hold, and the function that raises `Broken` if it does not."""

    what: str
    run: Callable[[], object]

    def outcome(self, subject: str) -> Outcome:
        """Run it. Any exception of a plugin fails it, with the line that raised it."""
        try:
            self.run()
        except NotChecked as reason:
            return Outcome(subject, self.what, "not checked", str(reason))
        except (Exception, SystemExit) as error:
            return Outcome(subject, self.what, "failed", one_line(error))
        return Outcome(subject, self.what, "ok")


def assert_all(checks: Iterable[Check]) -> None:
    """Run checks in a test; those that do not apply are passed over."""
    for check in checks:
        outcome = check.outcome("")
        assert not outcome.failed, f"{check.what}: {outcome.why}"


def one_line(error: BaseException) -> str:
    """An exception in one line, with the last line outside of the package that it went through."""
    text = " ".join(str(error).split())
    if isinstance(error, MpisimError | Broken):
        return text
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if PACKAGE not in Path(frame.filename).parents and "site-packages" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}: {text}"
    return text


def run(tables: Tables, log: Path, comm: Any = None, rounds: int = LAST, **how: Any) -> None:
    """Run an experiment on ``comm``, by default in this process."""
    tables = tables | {"run": tables["run"] | {"rounds": rounds}}
    with without_remarks():  # that a compressor is biased, say, is no mistake
        ended = api.run(Experiment.from_dict(tables), comm or OneProcess(), log, **how)  # type: ignore[arg-type]
    _pass_on(ended.status)


def _pass_on(status: str) -> None:
    """Raise the signal that has ended a run: it is for all the checks."""
    if status in STOPPED:
        signal.raise_signal(EXIT_CODES[status] - 128)


def require_same(log: Path, other: Path) -> None:
    """Two logs agree, except for the clocks."""
    different = differences(log, other)
    demand(not different, f"{', '.join(different)} differ")


def differences(log: Path, other: Path) -> list[str]:
    """What two logs differ in, except for the clocks."""
    first, second = _content(log), _content(other)
    return [name for name in sorted(first | second) if first.get(name) != second.get(name)]


def _content(log: Path) -> dict[str, bytes]:
    with h5py.File(log, "r") as file:
        content = {
            f"{group}/{name}": data[:].tobytes()
            for group in ("rounds", "workers")
            for name, data in file[group].items()
            if not name.startswith("time_")
        }
        content["final/x"] = file["final/x"][:].tobytes()
        content["stepsize"] = np.float64(file.attrs["stepsize"]).tobytes()
        content["stopped_by"] = file.attrs["stopped_by"].encode()
    return content


@dataclasses.dataclass
class Trial:
    """An experiment whose runs are compared.

    stem : of its logs: STEM.NAME.h5
    optional : it combines what need not go together; refused : and does not
    why : it does not run; empty if it does
    may_keep : its estimates are right, so what it keeps is, even if it was compressed
    keeps_sent : ``run.debug`` has ended it in one process; on ranks it may keep what it sent
    """

    title: str
    tables: Tables
    stem: Path
    optional: bool = False
    refused: bool = False
    why: str = "did not run"
    may_keep: bool = False
    keeps_sent: bool = False

    def log(self, name: str) -> Path:
        """The log of one of its runs."""
        return self.stem.with_name(f"{self.stem.name}.{name}.h5")

    def run(self) -> None:
        """In this process: the run, and two copies of its first part."""
        try:
            for name, rounds in (("complete", LAST), ("part", FIRST), ("moved", FIRST)):
                run(self.tables, self.log(name), rounds=rounds)
        except MpisimError as error:
            self.why, self.refused = str(error), self.optional
            if not self.optional:
                raise
        else:
            self.why = ""

    def debug(self) -> None:
        """The run with ``run.debug`` has its log."""
        try:
            run(_debugged(self.tables), self.log("debug"))
        except MethodError:
            self.keeps_sent = True
            if not self.may_keep:
                raise
            with poisoning_sent(False):  # all other mistakes still end it
                run(_debugged(self.tables), self.log("debug"), force=True)
        require_same(self.log("complete"), self.log("debug"))

    def resume(self) -> None:
        """The first part, resumed, has the log of the run."""
        run(self.tables, self.log("part"), resume=True)
        require_same(self.log("complete"), self.log("part"))

    def ensemble(self) -> str:
        """Equal for experiments that can advance together; empty if this one cannot."""
        return "" if self.why else key_of(Experiment.from_dict(self.tables))

    def together(self) -> None:
        """Two steps, and two seeds if these may differ, have together the logs of each alone."""
        method, settings = self.tables["method"], self.tables["run"]
        slower = self.tables | {"method": method | {"stepsize": 0.01}}
        seed = {"seed": settings["seed"] + 1}
        other = dataclasses.replace(self, tables=slower | {"run": settings | seed})
        if other.ensemble() != self.ensemble():
            other.tables = slower
        run(other.tables, self.log("slower"))
        both = [Experiment.from_dict(one.tables) for one in (self, other)]
        setups = [Setup(one, OneProcess()) for one in both]  # type: ignore[arg-type]
        logs = self.log("first"), self.log("second")
        with without_remarks(), StopSignals() as signals:
            outputs = [Output(log, quiet=True, ensemble=len(logs)) for log in logs]
            ends = run_together(setups, outputs, signals)
        for alone, log, end in zip(("complete", "slower"), logs, ends, strict=True):
            _pass_on(end.status)
            require_same(self.log(alone), log)

    def unmeasured(self) -> None:
        """Without ``run.columns`` the log has the same other columns."""
        settings = {key: v for key, v in self.tables["run"].items() if key != "columns"}
        run(self.tables | {"run": settings}, log := self.log("unmeasured"))
        changed = [name for name in differences(self.log("complete"), log) if name in _content(log)]
        why = "does it draw or send as methods do?"
        demand(not changed, f"without it {', '.join(changed)} differ: {why}")

    def run_on(self, comm: Comm) -> None:
        """On the ranks of ``comm``: the run, and the end of the other first part. Collective.

        The former with ``run.debug``. The latter first: in new processes, what a module keeps does
        not hide what a checkpoint lacks.
        """
        debugged = _debugged(self.tables)
        dedicated = self.tables | {"run": self.tables["run"] | {"layout": "dedicated"}}
        for name, tables, resume in (("moved", dedicated, True), ("ranks", debugged, False)):
            try:
                with poisoning_sent(not self.keeps_sent):
                    run(tables, self.log(name), comm, resume=resume)
            except MpisimError as error:
                if comm.rank == 0:
                    self.log(name).with_suffix(".why").write_text(str(error))

    def compare(self, name: str, job_error: str) -> None:
        """A log of `run_on` is that of one rank; ``job_error`` says why it may be missing."""
        log = self.log(name)
        if (why := log.with_suffix(".why")).exists():
            raise Broken(why.read_text())
        demand(_complete(log), job_error or "has no complete log")
        require_same(self.log("complete"), log)


def _debugged(tables: Tables) -> Tables:
    return tables | {"run": tables["run"] | {"debug": True}}


def _complete(path: Path) -> bool:
    if not path.exists():
        return False
    log = read(path)
    status = log.attrs.get("status")
    return status == "diverged" or (status == "done" and log.columns["round"][-1] == LAST)


def run_job(folder: Path, plugins: Sequence[str], trials: Sequence[Trial]) -> None:
    """`Trial.run_on` `RANKS` ranks of an mpirun of its own.

    plugins : which the ranks load

    `Broken` if the job fails, `NotChecked` where there is no mpirun.
    """
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise NotChecked("there is no mpirun on PATH")
    many = [(trial.tables, str(trial.stem), trial.keeps_sent) for trial in trials]
    (folder / JOB).write_text(json.dumps({"plugins": plugins, "trials": many}))
    code = f"from {__name__} import job; job()"
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))
    job = subprocess.Popen(
        [mpirun, "-n", str(RANKS), sys.executable, "-c", code, str(folder)],
        env=OPEN_MPI | os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, printed = job.communicate(timeout=SECONDS)
    except BaseException as error:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        late = f"runs on {RANKS} ranks have not ended after {SECONDS:g} s"
        raise Broken(f"{late}: do all ranks exchange?") from None
    demand(job.returncode == 0, _reason(printed) or f"mpirun ended with {job.returncode}")


def job() -> None:
    """What each rank of `run_job` does."""
    from mpisim.runs import plugins
    from mpisim.runs.host import guarded

    def body(comm: Comm) -> int:
        work = json.loads((Path(sys.argv[1]) / JOB).read_text())
        plugins.load(work["plugins"])
        for tables, stem, keeps_sent in work["trials"]:
            Trial("", tables, Path(stem), keeps_sent=keeps_sent).run_on(comm)
        return 0

    sys.exit(guarded(body))


def _reason(printed: str) -> str:
    """mpisim's line in what a job printed, with the last line of a traceback below it."""
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if line.startswith("mpisim: ")]
    if not starts:
        return lines[-1] if lines else ""
    below = lines[starts[-1] + 1 :]
    error = next((line for line in below if not line.startswith((" ", "Traceback"))), "")
    return lines[starts[-1]].removeprefix("mpisim: ") + (f": {error}" if error else "")
