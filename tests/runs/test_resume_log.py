"""--resume onto what may be there; and a log has one writer."""

import errno
import fcntl
import os
import shutil
import socket

import h5py
import pytest

import mpisim
from mpisim.core.errors import InputError, OutputError
from mpisim.runs import checkpoint
from mpisim.runs.experiment import parse
from mpisim.runs.log import journal, writer
from mpisim.runs.loop import Loop
from tests.helpers import run_tables, some_of
from tests.resumes import differences
from tests.runs.support import Killed, at_round, die, killed, messages, refused, tables


@pytest.fixture
def rounds_run(monkeypatch):
    """The rounds from which runs start, from now on."""
    result, original = [], Loop.run
    monkeypatch.setattr(Loop, "run", lambda s: result.append(s.setup.round.k) or original(s))
    return result


def test_a_run_killed_before_its_first_checkpoint_starts_again(full, log, monkeypatch, capfd):
    killed(monkeypatch, log, at=5)
    with pytest.raises(InputError, match=r"has run\.seed = 1, this run has 2"):
        run_tables(tables(seed=2), log, resume=True)
    run_tables(tables(), log, resume=True)
    assert "stopped before its first checkpoint; starting at round 0" in messages(capfd)[-1]
    assert differences(full, log) == []


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_complete_log_stays_as_it_is(checkpoints, full, log, rounds_run, capfd):
    shutil.copy(full, log)
    if checkpoints:
        shutil.copy(checkpoint.path_for(full), checkpoint.path_for(log))
    content = log.read_bytes()
    end = run_tables(tables(), log, resume=True, keep=True)
    assert log.read_bytes() == content and rounds_run == []
    assert messages(capfd)[-1].endswith("complete, done at round 30; there is nothing to do")
    assert end.row == {name: values[-1] for name, values in end.columns.items()}


def test_another_complete_log_without_checkpoints_is_refused(full, log):
    shutil.copy(full, log)
    for other in (tables(seed=2), tables(40)):
        with refused(log.parent, "there is no checkpoint to resume from; --force"):
            run_tables(other, log, resume=True)
    for name, value, fact in (("workers", 9, "workers"), ("problem", "", "problem identity")):
        shutil.copy(full, log)
        with h5py.File(log, "a") as file:  # as other ranks, or a changed data set, wrote it
            file.attrs[name] = value
        with refused(log.parent, f"has {fact} = {value}, this run has"):
            run_tables(tables(), log, resume=True, accept=True)


def of_run(log, **run):
    """Puts the complete log of another run in the place of this one's."""
    other = log.with_name("other.h5")
    run_tables(tables(**run), other)
    other.rename(log)


def zeroed(log, rows, column="grad_norm_sq"):
    with h5py.File(log, "r+") as file:
        file[f"rounds/{column}"][rows] = 0


def cut_journal(log, share):
    path = journal.path_for(log)
    os.truncate(path, int(share * path.stat().st_size))


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


# Harms to a run with checkpoints at rounds 13 and 20, killed at 25, and where it goes on from.
HARMS = {
    "zeroed behind the checkpoints": lambda log: zeroed(log, slice(20, None)),
    "zeroed": lambda log: zeroed(log, slice(5, None)),
    "clocks zeroed": lambda log: zeroed(log, slice(15), "time_other"),
    "of another seed": lambda log: of_run(log, seed=2),
    "of a shorter run": lambda log: of_run(log, rounds=22),
    "no log": lambda log: log.write_text("thesis"),
    "empty": lambda log: os.truncate(log, 0),
    "cut": lambda log: os.truncate(log, 4000),
    "removed": os.unlink,
    "no journal": lambda log: journal.path_for(log).unlink(),
    "journal flipped": lambda log: flip(journal.path_for(log)),
    "journal cut": lambda log: cut_journal(log, 0.4),
    "journal cut late": lambda log: cut_journal(log, 0.7),
    "checkpoint cut": lambda log: os.truncate(checkpoint.path_for(log), 4000),
    "checkpoint flipped": lambda log: flip(checkpoint.path_for(log)),
    "checkpoint removed": lambda log: checkpoint.path_for(log).unlink(),
    "checkpoint emptied": lambda log: os.truncate(checkpoint.path_for(log), 0),
}
ALONE = dict.fromkeys(HARMS) | dict.fromkeys(["removed", "no journal", "journal flipped"], 20)
ALONE |= {"": 20, "journal cut": 20, "journal cut late": 20}
ALONE |= {harm: 13 for harm in HARMS if harm.startswith("checkpoint")}
BOTH = {"no journal, of another seed": None, "journal cut late, removed": 13}
BOTH |= {"journal cut, removed": None, "journal cut, of another seed": None}


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("harms", "first"), (ALONE | BOTH).items())
def test_only_this_runs_log_is_gone_on_with(
    harms, first, full, log, monkeypatch, rounds_run, capfd
):
    killed(monkeypatch, log)
    for harm in filter(None, harms.split(", ")):
        HARMS[harm](log)
    del rounds_run[:]
    if first is None:
        with refused(log.parent, r"log\.h5.*; --force"):
            run_tables(tables(), log, resume=True)
        run_tables(tables(), log, resume=True, force=True)
        assert rounds_run == [0] and messages(capfd)[-1].endswith("; starting over")
    else:
        run_tables(tables(), log, resume=True)
        assert rounds_run == [first]
        lines = [line for line in messages(capfd) if "continuing from" in line]
        assert [line.endswith(".ckpt.old, round 13") for line in lines] == [True] * (first == 13)
        why = "No such file" if harms == "checkpoint removed" else "its checksum does not fit"
        assert "checkpoint" not in harms or why in lines[0]
    assert differences(full, log) == []


PLACED = ["no log", "empty", "of another seed", "of a shorter run", "zeroed"]


@some_of(3, rounds=[30, 40], harm=PLACED)
def test_what_stands_in_the_place_of_a_complete_log_is_not_replaced(harm, rounds, full, log):
    """Its first checkpoint, of round 0, needs no row; that does not make it this run's log."""
    for path in full.parent.glob("log.h5*"):
        shutil.copy(path, log.parent)
    HARMS[harm](log)
    with refused(log.parent, r"log\.h5.*--force"):
        run_tables(tables(rounds), log, resume=True)


@some_of(2, module=[journal, writer], moment=["before", "after"])
def test_killed_while_a_file_is_replaced(module, moment, full, log, monkeypatch, rounds_run):
    """On resume the journal and the log are written anew; the checkpoint fits before and after."""
    killed(monkeypatch, log)
    original = module.create_atomic

    def create(path, content, **options):
        if moment == "after":
            original(path, content, **options)
        raise Killed

    def go_on():
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(module, "create_atomic", create)
            run_tables(tables(), log, resume=True)

    go_on()
    killed(monkeypatch, log, at=22, resume=True)  # in place now, behind the copy's checkpoint
    go_on()
    run_tables(tables(), log, resume=True)
    assert rounds_run[0] == 0 and set(rounds_run[1:]) == {20} and differences(full, log) == []


def test_killed_between_the_last_log_and_the_end_of_the_journal(full, log, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(journal.Journal, "close", die)
        run_tables(tables(20), log)
    assert journal.path_for(log).exists()
    content = log.read_bytes()
    run_tables(tables(20), log, resume=True)
    assert log.read_bytes() == content
    run_tables(tables(), log, resume=True)
    assert differences(full, log) == [] and not journal.path_for(log).exists()


HOLDER = rf"{socket.gethostname()}, pid {os.getpid()}"
BUSY = rf"log\.h5: another run is writing it \({HOLDER}, with the lock /.*/\.log\.h5\.lock\)$"


@pytest.fixture
def no_locks(monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("flags", [{}, {"force": True}, {"resume": True}])
def test_the_second_is_refused(flags, full, log, monkeypatch):
    def second():
        with refused(log.parent, BUSY):
            run_tables(tables(seed=2), log, **flags)
        with refused(log.parent, BUSY):
            mpisim.run(parse(tables()), log=log, **flags)

    at_round(monkeypatch, 9, second)
    run_tables(tables(), log)
    assert differences(full, log) == []
    assert not list(log.parent.glob(".*"))  # neither locks nor temporary files


@pytest.mark.parametrize("name", ["log.h5", "log.h5.journal"])
def test_a_file_that_is_taken_away_is_one_line(name, log, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0)
    at_round(monkeypatch, 9, log.with_name(name).unlink)
    with pytest.raises(OutputError, match=r"log\.h5: is not this run's log any more"):
        run_tables(tables(), log)


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("flush", [0, 1000])
def test_without_locks_the_first_one_stops(flush, log, monkeypatch):
    alone = log.with_name("alone.h5")
    run_tables(tables(seed=2), alone)
    monkeypatch.setattr(writer, "FLUSH_SECONDS", flush)
    at_round(monkeypatch, 9, lambda: run_tables(tables(seed=2), log, force=True))
    with pytest.raises(OutputError, match=r"log\.h5: is not this run's log any more"):
        run_tables(tables(checkpoint_seconds=1e-9), log)
    assert differences(alone, log) == []
    run_tables(tables(seed=2), log, resume=True)  # also the checkpoints are the second one's
    assert differences(alone, log) == []
