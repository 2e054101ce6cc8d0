"""A lock that one process holds at a time, and that leaves nothing behind."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from mpisim.core.files import FileLock, Locked

HOLDER = """
import sys
from pathlib import Path
from mpisim.core.files import FileLock
with FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_holds_it_until_it_is_killed(tmp_path):
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Locked, match=rf"^\S+, pid {holder.pid}$"), FileLock(path):
            pass
        holder.send_signal(signal.SIGKILL)
    assert path.exists()
    with FileLock(path), pytest.raises(Locked, match=f"pid {os.getpid()}"), FileLock(path):
        pass
    assert not path.exists()


def test_a_file_that_its_holder_removed_is_not_a_lock(tmp_path, monkeypatch):
    """One process opens the file, another removes it and ends, a third one makes a new file."""
    path, original, calls = tmp_path / "lock", fcntl.flock, []

    def flock(descriptor, operation):
        if not calls:
            path.unlink()
            path.touch()
        calls.append(descriptor)
        return original(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with FileLock(path), pytest.raises(Locked), FileLock(path):
        pass
    assert len(calls) == 3


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder"])
def test_what_is_not_a_lock_stays_as_it_is(kind, tmp_path):
    thesis, path = tmp_path / "thesis", tmp_path / "lock"
    thesis.write_text("text")
    make = {
        "link": lambda: path.symlink_to(thesis),
        "dangling link": lambda: path.symlink_to("nothing"),
        "hard link": lambda: path.hardlink_to(thesis),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    with pytest.raises(OSError), FileLock(path):
        pass
    assert thesis.read_text() == "text" and os.path.lexists(path)
    assert not (tmp_path / "nothing").exists()


def test_a_file_system_without_locks_locks_nothing(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / "lock").write_text("a holder elsewhere")
    with FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == "a holder elsewhere"  # as it may be held
    assert not list(tmp_path.iterdir())
