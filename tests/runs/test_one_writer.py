"""A log has one writer: the second one is refused, or the first one notices that it has lost it."""

import errno
import fcntl
import os
import socket

import pytest

import mpisim
from mpisim.core.errors import InputError, OutputError
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.experiment import parse
from mpisim.runs.log import writer
from tests.helpers import run_tables
from tests.resumes import differences
from tests.runs.support import tables

HOLDER = rf"{socket.gethostname()}, pid {os.getpid()}"
BUSY = rf"log\.h5: another run is writing it \({HOLDER}, with the lock /.*/\.log\.h5\.lock\)$"


@pytest.fixture
def no_locks(monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)


def at_round(patch, k, act):
    """Call ``act`` once, before the row of round k."""
    original, done = Evaluator.row, []

    def row(self, number, *arguments):
        if number == k and not done:
            done.append(k)
            act()
        return original(self, number, *arguments)

    patch.setattr(Evaluator, "row", row)


@pytest.mark.parametrize("flags", [{}, {"force": True}, {"resume": True}])
def test_the_second_is_refused(flags, tmp_path, monkeypatch):
    log = tmp_path / "log.h5"

    def second():
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(InputError, match=BUSY):
            run_tables(tables(seed=2), log, **flags)
        with pytest.raises(InputError, match=BUSY):
            mpisim.run(parse(tables()), log=log, **flags)
        assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}

    at_round(monkeypatch, 9, second)
    run_tables(tables(), log)
    run_tables(tables(), tmp_path / "alone.h5")
    assert differences(tmp_path / "alone.h5", log) == []
    assert not list(tmp_path.glob(".*"))  # neither locks nor temporary files


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("flush", [0, 1000])
def test_without_locks_the_first_one_stops(flush, tmp_path, monkeypatch):
    log, alone = tmp_path / "log.h5", tmp_path / "alone.h5"
    run_tables(tables(seed=2), alone)
    monkeypatch.setattr(writer, "FLUSH_SECONDS", flush)
    at_round(monkeypatch, 9, lambda: run_tables(tables(seed=2), log, force=True))
    with pytest.raises(OutputError, match=r"log\.h5: is not this run's log any more"):
        run_tables(tables(checkpoint_seconds=1e-9), log)
    assert differences(alone, log) == []
    run_tables(tables(seed=2), log, resume=True)  # also the checkpoints are the second one's
    assert differences(alone, log) == []


@pytest.mark.parametrize("how", ["moved", "removed", "folder moved"])
def test_a_log_that_is_taken_away_is_one_line(how, tmp_path, monkeypatch):
    folder = tmp_path / "logs"
    log = folder / "log.h5"
    acts = {
        "moved": lambda: log.rename(folder / "mine.h5"),
        "removed": log.unlink,
        "folder moved": lambda: folder.rename(tmp_path / "elsewhere"),
    }
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0)
    at_round(monkeypatch, 9, acts[how])
    with pytest.raises(OutputError, match=r"log\.h5: is not this run's log any more"):
        run_tables(tables(), log)
