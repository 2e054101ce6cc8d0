"""Runs that are killed between checkpoints, and the compiled functions of this process."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import pytest
from mpi4py import MPI
from numba.core.dispatcher import Dispatcher

from mpisim.core.errors import InputError
from mpisim.runs.experiment import Experiment
from mpisim.runs.log import writer
from mpisim.runs.loop import End, run_rounds
from mpisim.runs.metrics import Evaluator
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.stop import StopSignals
from tests.helpers import before_row, run_tables, table

GD = {"name": "gd", "stepsize": 0.1}
DIANA, QSGD = {"name": "diana", "stepsize": 0.1}, {"name": "qsgd", "s": 3}


def tables(rounds=30, **run):
    """A run of DIANA, whose workers and server have state."""
    return table(DIANA, QSGD, rounds=rounds, **run)


class Killed(BaseException):
    """Nothing can be done any more: not even the log is closed."""


def killed(patch: pytest.MonkeyPatch, log: Path, rounds=30, at=25, **output):
    """A run that is killed at a round, with two checkpoints before."""
    with patch.context() as context, pytest.raises(Killed):
        original = Evaluator.row

        def row(self, k, *arguments):
            if k == at:
                raise Killed
            result = original(self, k, *arguments)
            return result if k not in (13, 20) else result._replace(checkpoint=True)

        def finish(self, *_):
            self.flush()
            self._write("running")

        context.setattr(Evaluator, "row", row)
        context.setattr(writer.LogWriter, "finish", finish)
        run_tables(tables(rounds), log, **output)


def die(*_, **__):
    raise Killed


def at_round(patch: pytest.MonkeyPatch, k: int, act: Callable[[], object]) -> None:
    """Call ``act`` once, before the row of round k."""
    left = [act]
    before_row(patch, lambda number: number == k and left and left.pop()())


def messages(capfd: pytest.CaptureFixture) -> list[str]:
    """mpisim's lines on stderr, progress apart."""
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith("mpisim: ")]


def kernels() -> Iterator[Dispatcher]:
    """All that loaded modules hold."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mpisim.")]
    for value in (value for module in modules for value in vars(module).values()):
        if isinstance(value, Dispatcher):
            yield value


def run_afresh(experiment: Experiment) -> tuple[Setup, End]:
    """A run without a log, as in a process that has not used a kernel yet."""
    for kernel in kernels():
        kernel.overloads.clear()
        kernel._reset_overloads()
    setup = Setup(experiment, MPI.COMM_SELF)
    with StopSignals() as signals:
        return setup, run_rounds(setup, Output(None, quiet=True, keep=True), signals)


def put_elsewhere(group: h5py.Group, name: str, how: str) -> None:
    """Let a data set be a "link", a "raw" file or "virtual", with its values in this folder."""
    values = group[name][()]
    values.tofile("other.raw")
    with h5py.File("other.h5", "w") as other:
        other["values"] = values
    del group[name]
    if how == "link":
        group[name] = h5py.ExternalLink("other.h5", "values")
    elif how == "raw":
        group.create_dataset(name, values.shape, values.dtype, external="other.raw")
    else:
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[:] = h5py.VirtualSource("other.h5", "values", values.shape)
        group.create_virtual_dataset(name, layout)


@contextmanager
def refused(folder: Path, match: str) -> Iterator[None]:
    """One line says why, and no file is changed."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=match) as error:
        yield
    assert "\n" not in str(error.value)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
