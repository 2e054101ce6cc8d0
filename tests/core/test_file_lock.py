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


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("text")
    (tmp_path / "lock").symlink_to("mine")
    with pytest.raises(OSError), FileLock(tmp_path / "lock"):
        pass
    assert (tmp_path / "mine").read_text() == "text"


def test_a_file_system_without_locks_locks_nothing(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    with FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock"):
        pass
    assert not list(tmp_path.iterdir())
