"""Files that are whole and durable, or not there; locks; users without a home."""

import errno
import fcntl
import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from mpisim.core import files, home, terminal
from mpisim.core.errors import OutputError


@pytest.fixture
def events(monkeypatch):
    """A list of what happens to files and folders, from now on."""
    actual = []

    def watch(name, describe):
        original = getattr(os, name)

        def function(*arguments, **options):
            result = original(*arguments, **options)
            actual.append(describe(*arguments))
            return result

        monkeypatch.setattr(os, name, function)

    def synced(descriptor):
        return "sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file"

    watch("pwrite", lambda *_: "write")
    watch("fsync", synced)
    watch("replace", lambda source, target: f"name {os.path.basename(target)}")
    return actual


def test_the_file_is_synced_before_its_name_and_the_folder_after_each(events, tmp_path):
    files.write_atomic(tmp_path / "a", b"one")
    assert events == ["write", "sync file", "name a", "sync folder"]
    del events[:]
    files.write_atomic(tmp_path / "a", b"two", keep=tmp_path / "a.old")
    kept = ["name a.old", "sync folder", "name a", "sync folder"]
    assert events == ["write", "sync file", *kept]
    assert (tmp_path / "a").read_bytes() == b"two" and (tmp_path / "a.old").read_bytes() == b"one"


def test_each_new_folder_is_synced_into_the_one_above(events, tmp_path):
    files.make_folder(tmp_path / "a" / "b")
    assert events == ["sync folder"] * 2
    files.make_folder(tmp_path / "a" / "b")
    assert len(events) == 2


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_folder_that_cannot_be_synced_is_not_a_failure(number, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input") if number == errno.EIO else nullcontext():
        files.sync_folder(tmp_path)


@pytest.mark.parametrize(("others", "refused"), [(0, True), (1, True), (1, False)])
def test_a_file_that_is_not_written_leaves_the_old_one(others, refused, tmp_path, monkeypatch):
    """Refused in the end, or another process writes it, whose temporary file must stay."""
    path, temporary, original, written = tmp_path / "a", tmp_path / ".a.new", os.pwrite, []
    path.write_bytes(b"old")

    def pwrite(descriptor, data, at):
        if others:
            temporary.unlink()
            temporary.write_bytes(b"of the other one")
        written.append(data)
        return original(descriptor, data, at)

    def require():
        if written and refused:
            raise OutputError("another run has it")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OutputError if refused else OSError, match="another"):
        files.create_atomic(path, b"of the first one", require=require)
    assert path.read_bytes() == b"old" and len(os.listdir(tmp_path)) == 1 + others
    assert not others or temporary.read_bytes() == b"of the other one"


def test_short_writes_are_gone_on_with(tmp_path, monkeypatch):
    original = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda d, data, at: original(d, data[:3], at))
    descriptor = files.create_atomic(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"
    (tmp_path / "a").unlink()
    assert not files.leads_to(tmp_path / "a", descriptor)  # as where another program removed it
    os.close(descriptor)


def test_json_keeps_every_value_and_puts_lists_of_numbers_on_a_line(tmp_path):
    text = 'a [ 1, 2 ] and a \n [ 3 ] and a "["'
    content = {"a": [[1.5, None], [1e-300, -2]], "b": [text, "[\n1\n]"], "c": [], "d": [{"e": [1]}]}
    files.write_json(tmp_path / "one.json", content | {"f": np.arange(3), "g": np.float64(0.1)})
    written = (tmp_path / "one.json").read_text()
    assert json.loads(written) == content | {"f": [0, 1, 2], "g": 0.1}
    lines = [line.strip().rstrip(",") for line in written.splitlines()]
    assert {"[1.5, null]", "[1e-300, -2]", '"e": [1]', '"f": [0, 1, 2]'} <= set(lines)


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
        with pytest.raises(files.Locked, match=rf"^\S+, pid {holder.pid}$"), files.FileLock(path):
            pass
        holder.send_signal(signal.SIGKILL)
    assert path.exists()
    mine = pytest.raises(files.Locked, match=f"pid {os.getpid()}")
    with files.FileLock(path), mine, files.FileLock(path):
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
    with files.FileLock(path), pytest.raises(files.Locked), files.FileLock(path):
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
    with pytest.raises(OSError, match="lock is a link, or no regular file"), files.FileLock(path):
        pass
    assert thesis.read_text() == "text" and os.path.lexists(path)
    assert not (tmp_path / "nothing").exists()


def test_a_file_system_without_locks_locks_nothing(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    (tmp_path / "lock").write_text("a holder elsewhere")
    with files.FileLock(tmp_path / "lock"), files.FileLock(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == "a holder elsewhere"  # as it may be held
    assert not list(tmp_path.iterdir())


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A user id that the system does not know, without HOME; temporary files lie in tmp_path."""

    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # a KeyError
    for name in ("HOME", "XDG_CACHE_HOME", "MPISIM_CACHE", "NUMBA_CACHE_DIR"):
        monkeypatch.setenv(name, "")  # so that what a test sets itself is undone
        monkeypatch.delenv(name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda place, mode: str(place).startswith(str(tmp_path)))
    monkeypatch.setattr(terminal, "_reported", set())
    return tmp_path / f"mpisim-{os.geteuid()}"


def test_an_unknown_user(nobody):
    home.provide()
    assert os.environ["HOME"] == home.NONE
    assert os.environ["NUMBA_CACHE_DIR"] == str(nobody / "numba")
    assert home.cache_folder() == nobody / "mpisim"
    assert nobody.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["file", "dangling link", "link", "folder"])
def test_what_another_user_could_write_is_not_used(how, tmp_path, monkeypatch, capsys):
    place, later = tmp_path / "place", tmp_path / "later"
    make = {"file": place.touch, "folder": lambda: place.mkdir(mode=0o700)}
    make.get(how, lambda: place.symlink_to(later))()
    if how == "link":
        later.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(place, 4002, 4002, follow_symlinks=False)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("MPISIM_CACHE", str(place))
    assert home.cache_folder() == home.cache_folder() == home.OFF
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mpisim: nothing is cached in {place}: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_private_folder_that_others_can_enter_is_not_used(nobody):
    nobody.mkdir(mode=0o750)
    home.provide()
    assert home.OFF in Path(os.environ["NUMBA_CACHE_DIR"]).parents
    assert home.cache_folder() == home.OFF and not list(nobody.iterdir())


def test_a_folder_is_checked_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "cache"))
    assert home.cache_folder() == tmp_path / "cache"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache").chmod(0o777)
    assert home.cache_folder() == home.OFF
    (tmp_path / "cache").chmod(0o755)
    assert home.cache_folder() == tmp_path / "cache"


def test_cache_place(monkeypatch):
    for name, value, place in (
        ("HOME", "/three", "/three/.cache/mpisim"),
        ("XDG_CACHE_HOME", "/two", "/two/mpisim"),
        ("MPISIM_CACHE", "/one", "/one"),
    ):
        monkeypatch.delenv("MPISIM_CACHE", raising=False)
        monkeypatch.setenv(name, value)
        assert str(home.cache_place()) == place
