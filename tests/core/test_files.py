"""Files that are whole and durable, or not there."""

import errno
import json
import os
import stat

import numpy as np
import pytest

from mpisim.core import files
from mpisim.core.errors import OutputError
from mpisim.core.files import create_atomic, leads_to, make_folder, write_atomic, write_json


@pytest.fixture
def events(monkeypatch):
    """A list of what happens to files and folders, from now on."""
    found = []

    def watch(name, describe):
        original = getattr(os, name)

        def function(*arguments, **options):
            result = original(*arguments, **options)
            found.append(describe(*arguments))
            return result

        monkeypatch.setattr(os, name, function)

    def synced(descriptor):
        return "sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file"

    watch("pwrite", lambda *_: "write")
    watch("fsync", synced)
    watch("replace", lambda source, target: f"name {os.path.basename(target)}")
    return found


def test_the_file_is_synced_before_its_name_and_the_folder_after_each(events, tmp_path):
    write_atomic(tmp_path / "a", b"one")
    assert events == ["write", "sync file", "name a", "sync folder"]
    del events[:]
    write_atomic(tmp_path / "a", b"two", keep=tmp_path / "a.old")
    kept = ["name a.old", "sync folder", "name a", "sync folder"]
    assert events == ["write", "sync file", *kept]
    del events[:]
    write_atomic(tmp_path / "a", b"three")
    assert events == ["write", "sync file", "name a", "sync folder"]
    assert (tmp_path / "a").read_bytes() == b"three" and (tmp_path / "a.old").read_bytes() == b"one"


def test_each_new_folder_is_synced_into_the_one_above(events, tmp_path):
    make_folder(tmp_path / "a" / "b")
    assert events == ["sync folder"] * 2
    make_folder(tmp_path / "a" / "b")
    assert len(events) == 2


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_folder_that_cannot_be_synced_is_not_a_failure(number, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output"):
            files.sync_folder(tmp_path)
    else:
        files.sync_folder(tmp_path)


def test_a_file_that_is_refused_in_the_end_leaves_the_old_one(tmp_path):
    path = tmp_path / "a"
    write_atomic(path, b"one")

    def refuse():
        raise OutputError("another run has it")

    with pytest.raises(OutputError):
        create_atomic(path, b"two", require=refuse)
    assert path.read_bytes() == b"one" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("refused", [True, False])
def test_of_two_processes_that_write_a_file_the_later_one_does(refused, tmp_path, monkeypatch):
    """Without locks; the earlier one must not remove or rename the other's temporary file."""
    path, original, other = tmp_path / "a", os.pwrite, []

    def pwrite(descriptor, data, at):
        if not other:
            other.append(path.with_name(".a.new"))
            other[0].unlink()
            other[0].write_bytes(b"of the later one")
        return original(descriptor, data, at)

    def require():
        if other and refused:
            raise OutputError("another run has it")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OutputError if refused else OSError, match="another"):
        create_atomic(path, b"of the earlier one", require=require)
    assert other[0].read_bytes() == b"of the later one" and not path.exists()


def test_short_writes_are_gone_on_with(tmp_path, monkeypatch):
    original = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda d, data, at: original(d, data[:3], at))
    write_atomic(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_path_leads_to_a_file_until_it_is_replaced(tmp_path):
    path = tmp_path / "a"
    descriptor = create_atomic(path, b"one")
    assert leads_to(path, descriptor)
    write_atomic(path, b"two")
    assert not leads_to(path, descriptor)
    path.unlink()
    assert not leads_to(path, descriptor)
    os.close(descriptor)


def test_json_keeps_every_value_and_puts_lists_of_numbers_on_a_line(tmp_path):
    text = 'a [ 1, 2 ] and a \n [ 3 ] and a "["'
    content = {"a": [[1.5, None], [1e-300, -2]], "b": [text, "[\n1\n]"], "c": [], "d": [{"e": [1]}]}
    write_json(tmp_path / "one.json", content | {"f": np.arange(3), "g": np.float64(0.1)})
    written = (tmp_path / "one.json").read_text()
    assert json.loads(written) == content | {"f": [0, 1, 2], "g": 0.1}
    lines = [line.strip().rstrip(",") for line in written.splitlines()]
    assert {"[1.5, null]", "[1e-300, -2]", '"e": [1]', '"f": [0, 1, 2]'} <= set(lines)
