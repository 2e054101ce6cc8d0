"""A log has one writer: the second one is refused, or the first one notices that it has lost it."""

import errno
import fcntl
import os
import shutil
import socket
from pathlib import Path

import pytest

import mpisim
from mpisim.cli import main
from mpisim.core.errors import InputError, OutputError
from mpisim.core.files import FileLock
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.experiment import parse
from mpisim.runs.log import writer
from tests.helpers import run_tables
from tests.resumes import differences
from tests.runs.support import Killed, said, tables
from tests.runs.sweep.support import run as sweep
from tests.runs.sweep.support import write

BUSY = rf"log\.h5: another run is writing it \({socket.gethostname()}, pid {os.getpid()}\)$"


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


def test_a_refusal_on_the_command_line(tmp_path, capfd):
    words = ["run", "--set", "problem={ name = 'logistic', data = 'sample', workers = 3 }"]
    words += ["--set", "method={ name = 'gd', stepsize = 0.1 }", "--set", "run.rounds=3"]
    words += ["--out", str(tmp_path / "log.h5")]
    with FileLock(tmp_path / ".log.h5.lock"):
        assert main([*words, "--force"]) == 2
    [line] = capfd.readouterr().err.splitlines()
    assert "log.h5: another run is writing it (" in line and not list(tmp_path.iterdir())


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


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Killed])
def test_no_lock_is_left_by_a_run_that_fails(error, tmp_path, monkeypatch):
    def fail():
        raise error

    at_round(monkeypatch, 3, fail)
    with pytest.raises(error):
        run_tables(tables(), tmp_path / "log.h5")
    assert not list(tmp_path.glob(".*"))


def test_a_point_that_another_run_writes_is_skipped(tmp_path, capfd):
    file, logs = write(tmp_path, "run.seed = [1, 2]"), tmp_path / "logs"
    points = sweep(file, logs)
    assert said(capfd) == []
    shutil.rmtree(logs)
    logs.mkdir()
    name = Path(points[0].log).name
    with FileLock(logs / f".{name}.lock"):
        one, two = sweep(file, logs)
    assert (one.status, one.exit_code, two.status) == ("skipped", 2, "done")
    assert "another run is writing it" in one.reason
    assert [point.status for point in sweep(file, logs)] == ["done", "done"]
    assert sorted(p.name for p in logs.glob(".*")) == []


def test_a_point_that_another_run_has_completed_meanwhile_is_not_run(tmp_path, monkeypatch):
    file, logs = write(tmp_path, "run.seed = [1, 2]"), tmp_path / "logs"
    content = {Path(p.log): Path(p.log).read_bytes() for p in sweep(file, logs)}
    kept = {path: path.read_bytes() for path in logs.iterdir()}
    shutil.rmtree(logs)
    original = writer.lock_of

    def completed(log):
        if not log.exists():
            for path in kept:
                if path.name.startswith(log.name):
                    path.write_bytes(kept[path])
        return original(log)

    monkeypatch.setattr("mpisim.runs.sweep.queue.lock_of", completed)
    assert [point.status for point in sweep(file, logs)] == ["done", "done"]
    assert all(path.read_bytes() == before for path, before in content.items())
