"""The schema of a log, its journal, and what remains when writing fails."""

import errno
import hashlib
import itertools
import json
import os
import struct
import zlib

import h5py
import numpy as np
import pytest

from mpisim.core.errors import OutputError
from mpisim.runs.log import journal, writer
from mpisim.runs.log.journal import Journal
from mpisim.runs.log.schema import columns, row_type
from mpisim.runs.log.writer import LogWriter
from tests.helpers import calls_of, some_of

SCHEMA = columns(False)


def row(k: int) -> dict:
    """The row of round k."""
    values = (k, 0.5 + k, 0.25, *[10 * k] * 7, k, *[0.1 * k] * 8)
    return {name: value for (name, *_), value in zip(SCHEMA, values, strict=True)}


def rows(first: int, last: int) -> np.ndarray:
    """The rows of rounds first, ..., last - 1."""
    kind = row_type(SCHEMA)
    return np.array([tuple(row(k)[name] for name in kind.names) for k in range(first, last)], kind)


class Time:
    """A clock that goes on when it is told to, and while an HDF5 file is written."""

    def __init__(self, patch, cost=lambda rows: 0.0):
        self.now, self.spent, original = 0.0, 0.0, LogWriter._write
        patch.setattr(writer, "monotonic", lambda: self.now)

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
    path = tmp_path / "a" / "log.h5"
    log = LogWriter(path, {"title": "t"}, SCHEMA)
    log.row(row(0))
    log.finish("done", np.arange(3.0), {"rows": np.array([1, 2])})
    with h5py.File(path) as file:
        assert file.attrs["status"] == "done" and file.attrs["title"] == "t"
        assert set(file["rounds"]) == {name for name, *_ in SCHEMA}
        for data in [*file["rounds"].values(), *file["workers"].values()]:
            assert data.attrs["units"] and data.attrs["description"]
        assert file["final/x"][:].tolist() == [0, 1, 2]
        expected = hashlib.sha256(repr(rows(0, 0).dtype.descr).encode() + rows(0, 1).tobytes())
        assert file.attrs["rows_sha256"] == expected.hexdigest()


@some_of(2, pause=[0.3, 0.9, 4.0, 9.0, 60.0])
def test_how_far_the_files_may_be_behind(pause, log, monkeypatch):
    """The journal by a second; the HDF5 file by ten, or a tenth of the time since the start."""
    time = Time(monkeypatch)
    kept, written, k = LogWriter(log, {}, SCHEMA), {}, 0
    while time.now < 40 * max(pause, 5.0):
        time.now += pause
        kept.row(row(k))
        written[k], k = time.now, k + 1
        if pause < 1 and k % 13:
            continue
        late = time.now + 0.99 * pause  # just before the next row
        assert late - written.get(kept.journal.rows, late) <= 1.0
        there = rows_of(log)
        assert there > 0 or time.now < 1
        assert late - written.get(there, late) <= max(10.0, time.now / 10)
    kept.finish("done", None, {})
    assert rows_of(log) == k


@pytest.mark.parametrize("checkpoints", [1e9, 30.0])
def test_writing_all_rows_again_takes_a_tenth_of_the_time(checkpoints, tmp_path, monkeypatch):
    """5 rows a second, and 4 ms for each row that is in the HDF5 file."""
    time = Time(monkeypatch, cost=lambda rows: 4e-3 * rows)
    log, saved, k = LogWriter(tmp_path / "log.h5", {}, SCHEMA), 0.0, 0
    while time.now < 600:
        time.now += 0.2
        log.row(row(k))
        k += 1
        if time.now - saved > checkpoints:
            log.mark()
            saved = time.now
    assert time.spent < 0.12 * time.now
    log.finish("done", None, {})


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


@pytest.mark.parametrize(
    "tail", [b"", b"\0" * 5000, b"\xff" * 5000], ids=["nothing", "zeros", "rubbish"]
)
def test_a_torn_tail_is_cut_at_the_last_good_record(tail, log):
    """At some lengths, with nothing after it, space that was never filled, or rubbish."""
    ends = (2, 3, 7, 20)
    sizes, path = write(log, *ends), journal.path_for(log)
    content = path.read_bytes()
    for size in range(0, len(content) + 1, 17):
        path.write_bytes(content[:size] + tail)
        result = journal.read(log, SCHEMA)
        there = max([0, *(end for end, at in zip(ends, sizes, strict=True) if at <= size)])
        assert np.array_equal(rows(0, 0) if result is None else result, rows(0, there))


def test_the_journal_of_another_run_is_not_removed(log):
    one = Journal(journal.path_for(log), SCHEMA, rows(0, 1))
    two = Journal(journal.path_for(log), SCHEMA, rows(0, 2))
    assert two.is_here() and not one.is_here()
    one.close(remove=True)
    assert two.is_here() and len(journal.read(log, SCHEMA)) == 2
    two.close(remove=True)


CALLS = ("pwrite", "pread", "fsync", "link", "replace", "unlink")
RESULTS = {"rows": np.ones(6, int)}
LONG = {"config": "x" * 2000}


@pytest.fixture
def often(monkeypatch):
    """A record for each row, and an HDF5 file at each mark."""
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0)
    monkeypatch.setattr(writer, "COST_SHARE", float("inf"))


def sixty_rows(log, marks):
    """60 rows, and the end that follows; ``marks``: the numbers of rows that were made durable."""
    try:
        for k in range(60):
            log.row(row(k))
            if k % 20 == 0:
                marks.append(log.mark().rows)
    except OutputError:
        log.finish("failed", None, RESULTS)
        raise
    log.finish("done", np.zeros(50), RESULTS)


def failing(monkeypatch, name, numbers):
    """Let the calls with these numbers fail."""
    original, calls = getattr(os, name), []

    def function(*arguments, **options):
        calls.append(arguments)
        if len(calls) in numbers:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*arguments, **options)

    monkeypatch.setattr(os, name, function)


def content(path):
    """Status and rows of a log."""
    there = rows_of(path)
    with h5py.File(path) as file:
        assert {values.size for values in file["rounds"].values()} == {there}
        assert file.attrs["config"] == LONG["config"]
        return file.attrs["status"], there


@pytest.mark.parametrize("again", [False, True], ids=["once", "for ever"])
@some_of(4, name=CALLS)
def test_each_failure_is_one_line_and_loses_nothing(name, again, log, monkeypatch, often):
    path = log
    with monkeypatch.context() as patch:
        log, calls = LogWriter(path, LONG, SCHEMA), calls_of(patch, os, name)
        sixty_rows(log, [])
    last = len(calls)
    assert content(path) == ("done", 60) and not journal.path_for(path).exists()
    for first in sorted({1, 2, last // 2, last - 1, last} & {*range(1, last + 1)}):
        log, marks = LogWriter(path, LONG, SCHEMA), [0]
        with monkeypatch.context() as patch:
            failing(patch, name, range(first, 10**9 if again else first + 1))
            with pytest.raises(OutputError, match=r"log\.h5: cannot be written: Input/output e"):
                sixty_rows(log, marks)
        status, there = content(path)
        kept = journal.read(path, SCHEMA)
        if kept is None:
            assert (status, there) == ("done", 60)
        else:
            assert len(kept) >= marks[-1] and np.array_equal(kept, rows(0, len(kept)))
        assert status in ("running", "failed", "done")


@pytest.mark.parametrize("name", ["pwrite", "fsync"])
def test_after_a_failure_the_journal_is_not_written_again(name, log, monkeypatch, often):
    """The system forgets the pages that it could not write; a second sync would succeed."""
    kept = LogWriter(log, {}, SCHEMA)
    kept.row(row(0))
    with monkeypatch.context() as patch, pytest.raises(OutputError) as first:
        failing(patch, name, (1,))
        kept.row(row(1))
        kept.mark()
    size = kept.journal.path.stat().st_size
    for act in (lambda: kept.row(row(2)), kept.mark):
        with pytest.raises(OutputError) as again:
            act()
        assert again.value is first.value
    assert kept.journal.path.stat().st_size == size
    with pytest.raises(OutputError):  # nor is the end of the run what was asked for
        kept.finish("done", np.zeros(3), {})
    with h5py.File(log) as file:
        assert file.attrs["status"] in ("running", "failed")


def test_the_last_log_is_on_the_disk_before_the_journal_goes(log, monkeypatch, often):
    log, events = LogWriter(log, {}, SCHEMA), []
    for name in ("pwrite", "fsync", "replace", "unlink"):
        original = getattr(os, name)

        def function(*arguments, name=name, original=original, **options):
            events.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(os, name, function)
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_, **__: None)  # of a temporary name
    log.finish("done", np.zeros(3), {})
    assert events == ["pwrite", "fsync", "replace", "fsync", "unlink"]
