"""The schema of a log, its journal, and what remains when writing fails."""

import hashlib
import io
import itertools
import json
import os
import struct
import zlib

import h5py
import numpy as np
import pytest

from mpisim.runs.log import journal
from mpisim.runs.log import writer as writers
from mpisim.runs.log.journal import Journal
from mpisim.runs.log.writer import LogWriter
from tests.runs.log.support import SCHEMA, row, rows


def writer(path):
    return LogWriter(path, {"title": "t"}, SCHEMA)


class Time:
    """A clock that goes on when it is told to, and while an HDF5 file is written."""

    def __init__(self, patch, cost=lambda rows: 0.0):
        self.now, self.spent, original = 0.0, 0.0, LogWriter._write
        patch.setattr(writers, "monotonic", lambda: self.now)

        def write(log, *arguments):
            begin = self.now
            original(log, *arguments)
            self.now += cost(log.journal.rows)
            log._written, log._cost = self.now, self.now - begin
            self.spent += self.now - begin

        patch.setattr(LogWriter, "_write", write)


def rows_of(path):
    with h5py.File(path) as file:
        assert np.array_equal(file["rounds/loss"], rows(0, file["rounds/loss"].size)["loss"])
        return file["rounds/loss"].size


def test_every_column_has_units_and_a_description(tmp_path):
    log = writer(tmp_path / "a" / "log.h5")
    log.row(row(0))
    log.finish("done", np.arange(3.0), {"rows": np.array([1, 2])})
    with h5py.File(tmp_path / "a" / "log.h5") as file:
        assert file.attrs["status"] == "done" and file.attrs["title"] == "t"
        assert set(file["rounds"]) == {name for name, *_ in SCHEMA}
        for data in [*file["rounds"].values(), *file["workers"].values()]:
            assert data.attrs["units"] and data.attrs["description"]
        assert file["final/x"][:].tolist() == [0, 1, 2]
        expected = hashlib.sha256(repr(rows(0, 0).dtype.descr).encode() + rows(0, 1).tobytes())
        assert file.attrs["rows_sha256"] == expected.hexdigest()


@pytest.mark.drawn(3)
@pytest.mark.parametrize("pause", [0.02, 0.3, 0.9, 4.0, 9.0, 60.0])
def test_how_far_the_files_may_be_behind(pause, tmp_path, monkeypatch):
    """The journal by a second; the HDF5 file by ten, or a tenth of the time since the start."""
    path, time = tmp_path / "log.h5", Time(monkeypatch)
    log, written, k = writer(path), {}, 0
    while time.now < (40 if pause == 0.02 else 40 * max(pause, 5.0)):
        time.now += pause
        log.row(row(k))
        written[k], k = time.now, k + 1
        if pause < 1 and k % 13:
            continue
        late = time.now + 0.99 * pause  # just before the next row
        assert late - written.get(log.journal.rows, late) <= 1.0
        there = rows_of(path)
        assert there > 0 or time.now < 1
        assert late - written.get(there, late) <= max(10.0, time.now / 10)
    log.finish("done", None, {})
    assert rows_of(path) == k


@pytest.mark.parametrize("checkpoints", [1e9, 30.0])
def test_writing_all_rows_again_takes_a_tenth_of_the_time(checkpoints, tmp_path, monkeypatch):
    """5 rows a second, and 4 ms for each row that is in the HDF5 file."""
    time = Time(monkeypatch, cost=lambda rows: 4e-3 * rows)
    log, saved, k = writer(tmp_path / "log.h5"), 0.0, 0
    while time.now < 600:
        time.now += 0.2
        log.row(row(k))
        k += 1
        if time.now - saved > checkpoints:
            log.mark(k)
            saved = time.now
    assert time.spent < 0.12 * time.now
    log.finish("done", None, {})


def test_plain_h5py_reads_the_log_between_any_two_calls(tmp_path, monkeypatch):
    """As if the process were killed there, or somebody looked."""
    path, seen = tmp_path / "log.h5", []

    def look():
        if path.exists():
            with open(path, "rb") as file, h5py.File(io.BytesIO(file.read())) as log:
                log["rounds/time_other"][:]
                seen.append((log.attrs["status"], log["rounds/loss"].size))
                assert np.array_equal(log["rounds/loss"], rows(0, seen[-1][1])["loss"])

    for name in ("pwrite", "fsync", "link", "replace", "unlink"):
        original = getattr(os, name)

        def function(*arguments, original=original, **options):
            look()
            result = original(*arguments, **options)
            look()
            return result

        monkeypatch.setattr(os, name, function)
    monkeypatch.setattr(writers, "FLUSH_SECONDS", 0)
    monkeypatch.setattr(writers, "COST_SHARE", float("inf"))
    log = LogWriter(path, {}, SCHEMA, rows(0, 10))
    for k in range(10, 60):
        log.row(row(k))
        if k % 7 == 0:
            log.mark(k)
    log.finish("done", np.zeros(200), {"rows": np.ones(6, int)})
    assert seen == sorted(seen, key=lambda one: (one[1], one[0] == "done"))
    assert len(set(seen)) > 8 and seen[-1] == ("done", 60)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.h5"


def write(log, *ends):
    """A journal with a record up to each of ``ends``; the sizes of the file after each."""
    written = Journal(journal.path_for(log), SCHEMA, rows(0, ends[0]))
    sizes = [written.path.stat().st_size]
    for first, last in itertools.pairwise(ends):
        written.append(rows(first, last))
        sizes.append(written.path.stat().st_size)
    assert np.array_equal(np.concatenate([*written.batches()]), rows(0, ends[-1]))
    written.close(remove=False)
    return sizes


def test_the_format_is_as_it_is_described(log):
    """Read with nothing but the standard library, NumPy and the module's docstring."""
    write(log, 3, 5)
    content, records = journal.path_for(log).read_bytes(), []
    while content:
        length, checksum = struct.unpack("<II", content[:8])
        record, content = content[8 : 8 + length], content[8 + length :]
        assert len(record) == length and zlib.crc32(record) == checksum
        records.append(record)
    header = json.loads(records[0])
    kind = np.dtype([tuple(column) for column in header["columns"]])
    assert header["journal"] == 1 and kind.names == tuple(sorted(name for name, *_ in SCHEMA))
    assert np.array_equal(np.frombuffer(b"".join(records[1:]), kind), rows(0, 5))


@pytest.mark.parametrize("tail", [b"", b"\0" * 5000, b"\xff" * 5000])
def test_a_torn_tail_is_cut_at_the_last_good_record(tail, log):
    """At each length, with nothing behind it, or space that was never filled, or rubbish."""
    ends = (2, 3, 7, 20)
    sizes, path = write(log, *ends), journal.path_for(log)
    content = path.read_bytes()
    for size in range(0, len(content) + 1, 7 if tail else 1):
        path.write_bytes(content[:size] + tail)
        result = journal.read(log, SCHEMA)
        there = max([0, *(end for end, at in zip(ends, sizes, strict=True) if at <= size)])
        if result is None:
            assert there == 0
        else:
            assert np.array_equal(result, rows(0, there))


def test_the_journal_of_another_run_is_not_removed(log):
    one = Journal(journal.path_for(log), SCHEMA, rows(0, 1))
    two = Journal(journal.path_for(log), SCHEMA, rows(0, 2))
    assert two.is_here() and not one.is_here()
    one.close(remove=True)
    assert two.is_here() and len(journal.read(log, SCHEMA)) == 2
    two.close(remove=True)
