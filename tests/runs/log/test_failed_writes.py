"""A call on a log's files fails: one error, no crash, and what was durable is still there."""

import errno
import os

import h5py
import numpy as np
import pytest

from mpisim.core.errors import OutputError
from mpisim.runs.log import journal, writer
from mpisim.runs.log.writer import LogWriter
from tests.runs.log.support import SCHEMA, row, rows

CALLS = ("pwrite", "pread", "fsync", "link", "replace", "unlink")
RESULTS = {"rows": np.ones(6, int)}


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A record for each row, and an HDF5 file at each mark."""
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0)
    monkeypatch.setattr(writer, "COST_SHARE", float("inf"))


def write(log, marks):
    """60 rows, and the end that follows; ``marks``: the numbers of rows that were made durable."""
    try:
        for k in range(60):
            log.row(row(k))
            if k % 20 == 0:
                marks.append(log.mark(k).rows)
    except OutputError:
        log.finish("failed", None, RESULTS)
        raise
    log.finish("done", np.zeros(50), RESULTS)


def failing(monkeypatch, name, numbers):
    """Let the calls with these numbers fail; the list of all calls."""
    original, calls = getattr(os, name), []

    def function(*arguments, **options):
        calls.append(arguments)
        if len(calls) in numbers:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*arguments, **options)

    monkeypatch.setattr(os, name, function)
    return calls


def content(path):
    """Status and rows of a log."""
    with h5py.File(path) as file:
        size = {values.size for values in file["rounds"].values()}
        assert len(size) == 1 and file.attrs["config"] == "x" * 2000
        assert np.array_equal(file["rounds/loss"], rows(0, *size)["loss"])
        return file.attrs["status"], *size


@pytest.mark.drawn(6)
@pytest.mark.parametrize("again", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("name", CALLS)
def test_each_failure_is_one_line_and_loses_nothing(name, again, tmp_path, monkeypatch):
    path = tmp_path / "log.h5"
    with monkeypatch.context() as patch:
        log = LogWriter(path, {"config": "x" * 2000}, SCHEMA)
        last = len(failing(patch, name, ())) or len(calls_of(patch, name, log))
    assert content(path) == ("done", 60) and not journal.path_for(path).exists()
    for first in sorted({1, 2, 3, last // 3, last // 2, last - 1, last} & {*range(1, last + 1)}):
        log, marks = LogWriter(path, {"config": "x" * 2000}, SCHEMA), [0]
        with monkeypatch.context() as patch:
            failing(patch, name, range(first, 10**9 if again else first + 1))
            with pytest.raises(OutputError, match=r"log\.h5: cannot be written: Input/output e"):
                write(log, marks)
        status, there = content(path)
        kept = journal.read(path, SCHEMA)
        if kept is None:
            assert (status, there) == ("done", 60)
        else:
            assert max(len(kept), there) >= marks[-1] and len(kept) >= marks[-1]
            assert np.array_equal(kept, rows(0, len(kept)))
        assert status in ("running", "failed", "done")


def calls_of(patch, name, log):
    """The calls of an undisturbed run."""
    calls = failing(patch, name, ())
    write(log, [])
    return calls


@pytest.mark.parametrize("name", ["pwrite", "fsync"])
def test_after_a_failure_the_journal_is_not_written_again(name, tmp_path, monkeypatch):
    """The system forgets the pages that it could not write; a second sync would succeed."""
    log = LogWriter(tmp_path / "log.h5", {}, SCHEMA)
    log.row(row(0))
    with monkeypatch.context() as patch:
        failing(patch, name, (1,))
        with pytest.raises(OutputError) as first:
            log.row(row(1)) or log.mark(2)
    size = log.journal.path.stat().st_size
    for act in (lambda: log.row(row(2)), lambda: log.mark(3)):
        with pytest.raises(OutputError) as again:
            act()
        assert again.value is first.value
    assert log.journal.path.stat().st_size == size
    with pytest.raises(OutputError):  # nor is the end of the run what was asked for
        log.finish("done", np.zeros(3), {})
    with h5py.File(tmp_path / "log.h5") as file:
        assert file.attrs["status"] in ("running", "failed")


def test_the_last_log_is_on_the_disk_before_the_journal_goes(tmp_path, monkeypatch):
    log, events = LogWriter(tmp_path / "log.h5", {}, SCHEMA), []
    for name in ("pwrite", "fsync", "replace", "unlink"):
        original = getattr(os, name)

        def function(*arguments, name=name, original=original, **options):
            events.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(os, name, function)
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_, **__: None)  # of a temporary name
    log.finish("done", np.zeros(3), {})
    assert events == ["pwrite", "fsync", "replace", "fsync", "unlink"]
