"""Runs that are killed between checkpoints, and the compiled functions of this process."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from mpisim.runs.log import writer
from mpisim.runs.metrics import Evaluator
from tests.helpers import run_tables, table

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


def messages(capfd: pytest.CaptureFixture) -> list[str]:
    """mpisim's lines on stderr, progress apart."""
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith("mpisim: ")]


def kernels() -> Iterator[Dispatcher]:
    """All that loaded modules hold."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mpisim.")]
    for value in (value for module in modules for value in vars(module).values()):
        if isinstance(value, Dispatcher):
            yield value


def forget_kernels() -> None:
    """As in a process that has not used a kernel yet."""
    for kernel in kernels():
        kernel.overloads.clear()
        kernel._reset_overloads()
