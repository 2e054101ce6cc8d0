"""--resume onto what may be there: nothing, a complete, another, a torn or a damaged log."""

import os
import shutil

import h5py
import numpy as np
import pytest

from mpisim.cli import main
from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.core.errors import InputError, OutputError
from mpisim.runs import checkpoint
from mpisim.runs.log import writer
from mpisim.runs.loop import Loop
from tests.helpers import columns, run_tables
from tests.resumes import differences
from tests.runs.support import Killed, killed, said, tables


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "log.h5"
    run_tables(tables(), path)
    return path


@pytest.fixture
def rounds_run(monkeypatch):
    """The rounds from which runs start, from now on."""
    found, original = [], Loop.run
    monkeypatch.setattr(Loop, "run", lambda s: found.append(s.setup.round.k) or original(s))
    return found


def test_nothing_to_resume_is_a_start(whole, tmp_path, capfd):
    log = tmp_path / "new" / "log.h5"
    run_tables(tables(), log, resume=True)
    [line] = said(capfd)
    assert line.endswith("log.h5: there is nothing to resume; starting at round 0")
    assert differences(whole, log) == []


def test_a_run_killed_before_its_first_checkpoint_starts_again(whole, tmp_path, monkeypatch, capfd):
    log = tmp_path / "log.h5"
    killed(monkeypatch, log, at=5)
    log.write_bytes(log.read_bytes()[:700])  # whatever is left of it
    with pytest.raises(InputError, match=r"has run\.seed = 1, this run has 2"):
        run_tables(tables(seed=2), log, resume=True)
    run_tables(tables(), log, resume=True)
    assert "stopped before its first checkpoint; starting at round 0" in said(capfd)[-1]
    assert differences(whole, log) == []


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_complete_log_stays_as_it_is(checkpoints, whole, tmp_path, rounds_run, capfd):
    log = tmp_path / "log.h5"
    run_tables(tables(), log)
    if not checkpoints:
        for path in tmp_path.glob("*.ckpt*"):
            path.unlink()
    content = log.read_bytes()
    end = run_tables(tables(), log, resume=True, keep=True)
    assert log.read_bytes() == content and rounds_run == [0]
    assert said(capfd)[-1].endswith("complete, done at round 30; there is nothing to do")
    found = columns(log)
    assert end.status == "done" and end.row.loss == found["loss"][-1] and end.row.round == 30
    names = list(end.columns)
    assert list(end.row.bits) == [found[name][-1] for name in names if name in BITS]
    assert end.row.seconds == [found[name][-1] for name in names if name.startswith("time_")]
    assert np.array_equal(end.columns["loss"], found["loss"]) and end.attributes["seed"] == 1
    with h5py.File(log) as file:
        assert np.array_equal(file["final/x"], end.x)
    if not checkpoints:  # another experiment is not complete
        for other in (tables(seed=2), tables(40)):
            with pytest.raises(InputError, match="there is no checkpoint to resume from; --force"):
                run_tables(other, log, resume=True)
    assert log.read_bytes() == content


def test_a_complete_log_ends_with_the_code_of_its_status(tmp_path, rounds_run, capfd):
    settings = ["problem={ name = 'least-squares', data = 'sample', workers = 3 }"]
    settings += ["method={ name = 'gd', stepsize = 1e9 }", "run.rounds=60"]
    words = ["run", *(word for s in settings for word in ("--set", s))]
    words += ["--out", str(tmp_path / "log.h5"), "--resume"]
    assert [main(words), main(words)] == [3, 3] and len(rounds_run) == 1
    complete, diverged = said(capfd)[-2:]
    assert "complete, diverged at round" in complete and "diverged: the loss is" in diverged
    assert main([*words, "--set", "method.stepsize=1e-3"]) == 2
    settings[1] = "method={ name = 'gd', stepsize = 1e-3 }"
    words = ["run", *(word for s in settings for word in ("--set", s))]
    words += ["--out", str(tmp_path / "other.h5"), "--resume"]
    assert [main(words), main(words)] == [0, 0] and len(rounds_run) == 2
    assert "done: round 60" in capfd.readouterr().out.splitlines()[-1]


def other_seed(log):
    for path in log.parent.glob("log.h5*"):
        path.rename(path.with_name("kept-" + path.name))
    run_tables(tables(seed=2), log)
    for path in log.parent.glob("kept-*.ckpt*"):
        path.rename(path.with_name(path.name.removeprefix("kept-")))


def zeroed(first):
    def harm(log):
        with h5py.File(log, "r+") as file:
            file["rounds/grad_norm_sq"][first:] = 0

    return harm


def zeroed_clock(log):
    with h5py.File(log, "r+") as file:
        file["rounds/time_other"][:15] = 0


# Harm to the log of a run with checkpoints at rounds 13 and 20, and where it goes on from.
HARMS = {
    "none": (lambda log: None, 20),
    "zeroed behind the checkpoints": (zeroed(20), 20),
    "zeroed behind the first one": (zeroed(13), 13),
    "zeroed": (zeroed(5), None),
    "clocks zeroed": (zeroed_clock, None),
    "of another seed": (other_seed, None),
    "removed": (os.unlink, None),
    "cut": (lambda log: os.truncate(log, 4000), None),
}


@pytest.mark.parametrize("harm", HARMS)
def test_the_log_must_be_the_one_of_the_checkpoint(
    harm, whole, tmp_path, monkeypatch, rounds_run, capfd
):
    log = tmp_path / "log.h5"
    killed(monkeypatch, log)
    act, first = HARMS[harm]
    act(log)
    before = log.read_bytes() if log.exists() else None
    del rounds_run[:]
    if first is None:
        with pytest.raises(InputError, match=r"log\.h5\.ckpt: cannot be resumed from: .*; --force"):
            run_tables(tables(), log, resume=True)
        assert rounds_run == [] and (log.read_bytes() if log.exists() else None) == before
        run_tables(tables(), log, resume=True, force=True)
        assert rounds_run == [0] and said(capfd)[-1].endswith("; starting over")
    else:
        run_tables(tables(), log, resume=True)
        assert rounds_run == [first]
        lines = [line for line in said(capfd) if "continuing from" in line]
        assert [line.endswith(".ckpt.old, round 13") for line in lines] == [True] * (first == 13)
    assert differences(whole, log) == []


def test_a_log_that_hdf5_cannot_open_is_gone_on_with(whole, tmp_path, monkeypatch, rounds_run):
    """After a power cut some of what HDF5 changed in place is on the disk, and some is not."""
    log = tmp_path / "log.h5"
    killed(monkeypatch, log)
    content = bytearray(log.read_bytes())
    for signature in (b"\x89HDF", b"TREE", b"SNOD", b"HEAP"):
        start = content.find(signature)
        while start >= 0:
            content[start : start + 96] = bytes(96)
            start = content.find(signature)
    log.write_bytes(content)
    with pytest.raises(OSError, match="signature"):
        h5py.File(log)
    run_tables(tables(), log, resume=True)
    assert rounds_run == [0, 20] and differences(whole, log) == []
    with h5py.File(whole) as one, h5py.File(log) as two:
        assert set(one.attrs) <= set(two.attrs) and two.attrs["start"] <= two.attrs["end"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_the_log_is_replaced(moment, whole, tmp_path, monkeypatch, rounds_run):
    """On resume the log is copied: until there is another checkpoint, this one fits both."""
    log = tmp_path / "log.h5"
    killed(monkeypatch, log)
    original = writer.create_whole

    def create(path, content):
        if moment == "after":
            original(path, content)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(writer, "create_whole", create)
        run_tables(tables(), log, resume=True)
    killed(monkeypatch, log, at=22, resume=True)  # in place now, behind the copy's checkpoint
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(writer, "create_whole", create)
        run_tables(tables(), log, resume=True)
    run_tables(tables(), log, resume=True)
    assert rounds_run[0] == 0 and set(rounds_run[1:]) == {20} and differences(whole, log) == []


def test_the_log_is_synced_before_the_checkpoint_that_relies_on_it(tmp_path, monkeypatch):
    """At each checkpoint, a copy of what is synced of the log is enough to go on."""
    log, synced, content = tmp_path / "log.h5", {}, {}
    fsync, save = os.fsync, checkpoint.save

    def remember(descriptor):
        fsync(descriptor)
        size = os.fstat(descriptor).st_size
        if os.path.isfile(f"/proc/self/fd/{descriptor}"):
            synced[os.fstat(descriptor).st_ino] = os.pread(descriptor, size, 0)

    def save_and_keep(path, identity, state, mark, keep=True):
        content[state.get("round")] = synced.get(log.stat().st_ino) if log.exists() else None
        save(path, identity, state, mark, keep)
        if state:
            shutil.copy(path, tmp_path / f"{state['round']}.h5.ckpt")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", remember)
        patch.setattr(checkpoint, "save", save_and_keep)
        killed(monkeypatch, log)
    assert list(content) == [None, 13, 20]
    for k in (13, 20):
        (tmp_path / f"{k}.h5").write_bytes(content[k])
        run_tables(tables(), tmp_path / f"{k}.h5", resume=True)


def test_a_failure_while_the_log_starts_is_bad_input(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"log\.h5.*: cannot be written: No space left"):
        run_tables(tables(), tmp_path / "log.h5")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_ends_the_run_with_one_error(whole, tmp_path, monkeypatch):
    log, original, calls = tmp_path / "log.h5", os.pwrite, []

    def fails(descriptor, data, position):
        calls.append(position)
        if len(calls) > 100:
            raise OSError(5, "Input/output error")
        return original(descriptor, data, position)

    with monkeypatch.context() as patch, pytest.raises(OutputError, match="Input/output error"):
        patch.setattr(os, "pwrite", fails)
        patch.setattr(writer, "FLUSH_SECONDS", 0)
        run_tables(tables(checkpoint_seconds=1e-9), log)
    run_tables(tables(), log, resume=True)
    assert differences(whole, log) == []
