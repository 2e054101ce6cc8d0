"""A log can be read after each single write to the disk, as if the process were killed there."""

import io
import os

import h5py
import numpy as np
import pytest

from mpisim.runs.log import draft as drafts
from mpisim.runs.log import ordered_file as ordered
from mpisim.runs.log import writer as logs
from mpisim.runs.log.draft import Draft
from mpisim.runs.log.schema import columns, row_type
from mpisim.runs.log.writer import LogWriter

MORE = 1 << 20  # bytes that are reserved behind the end


def row(k):
    return (k, 0.5 + k, 0.25, *[10 * k] * 7, k, *[0.1 * k] * 8)


def check(content: bytes) -> None:
    with h5py.File(io.BytesIO(content), "r") as file:
        rows = min(column.size for column in file["rounds"].values())
        file["rounds/time_other"][:]
        assert dict(file.attrs)["config"] == "text" * 100
        assert np.array_equal(file["rounds/round"][:rows], np.arange(rows))
        assert np.array_equal(file["rounds/loss"][:rows], 0.5 + np.arange(rows))


def written(tmp_path, monkeypatch, resume):
    """The bytes of a log at first, and all writes until it is closed, in their order."""
    for module in (drafts, logs):
        monkeypatch.setattr(module, "CHUNK_ROWS", 16)
    path, writes, schema = tmp_path / "log.h5", [], columns(False)
    attributes = {f"a{i}": "x" * 30 for i in range(30)} | {"config": "text" * 100}
    rows = np.array([row(k) for k in range(10 if resume else 0)], row_type(schema))
    original = ordered.OrderedFile.commit

    def commit(self):
        writes.extend(self.in_order())
        original(self)

    monkeypatch.setattr(ordered.OrderedFile, "commit", commit)
    log = LogWriter(path, Draft(attributes, schema, rows))
    before = path.read_bytes()
    k = log._written
    for rows in (3, 20, 1, 50):
        for _ in range(rows):
            log._block.append(row(k))
            k += 1
        log.flush()
    log.finish("done", np.zeros(200), {"rows": np.ones(6, int)})
    check(path.read_bytes())
    return before, writes, path.read_bytes()


@pytest.mark.parametrize("resume", [False, True])
def test_every_state_on_the_disk_can_be_read(resume, tmp_path, monkeypatch):
    before, writes, after = written(tmp_path, monkeypatch, resume)
    assert len(writes) > 100
    content = bytearray(before) + bytes(MORE)
    for position, data in writes:
        content[position : position + len(data)] = data
        check(bytes(content))
    assert content[: len(after)] == after


def test_the_order_matters(tmp_path, monkeypatch):
    """In HDF5's own order some states cannot be read: the test above can fail."""
    monkeypatch.setattr(ordered.OrderedFile, "in_order", lambda self: self._pending)
    with pytest.raises((OSError, KeyError, AssertionError)):
        test_every_state_on_the_disk_can_be_read(False, tmp_path, monkeypatch)


def test_reads_see_what_was_written_and_the_disk_sees_commits(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(40) + (200).to_bytes(8, "little") + bytes(200 - 48))
    file = ordered.OrderedFile(os.open(path, os.O_RDWR))
    before = path.read_bytes()
    for position, data in ((10, b"abc"), (198, b"wxyz"), (11, b"B")):
        file.seek(position)
        assert file.write(data) == len(data)
    file.seek(9)
    assert file.read(5) == b"\0aBc\0"
    assert file.seek(0, 2) == 202
    file.flush()
    assert path.read_bytes() == before
    file.commit()
    assert path.read_bytes()[10:13] == b"aBc" and path.read_bytes()[198:] == b"wxyz"
    file.close()
    file.close()
