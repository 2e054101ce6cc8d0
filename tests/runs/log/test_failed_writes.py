"""A call on the log's file fails: one error, no crash, and a file that is what was committed."""

import errno
import os

import h5py
import numpy as np
import pytest

from mpisim.core.errors import OutputError
from mpisim.runs.log import draft as drafts
from mpisim.runs.log import writer as logs
from mpisim.runs.log.draft import Draft
from mpisim.runs.log.schema import columns
from mpisim.runs.log.writer import LogWriter

CALLS = {"pwrite": 900, "pread": 40, "fsync": 6, "posix_fallocate": 33, "ftruncate": 1}


def row(k):
    return (k, 0.5 + k, 0.25, *[10 * k] * 7, k, *[0.1 * k] * 8)


def write(log, rows=200):
    for k in range(rows):
        log.row(row(k))
        if k % 7 == 0:
            log.flush()
        if k % 50 == 0:
            log.mark(k)


@pytest.mark.parametrize("again", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("name", CALLS)
def test_each_failure_is_one_line(name, again, tmp_path, monkeypatch):
    for module in (drafts, logs):
        monkeypatch.setattr(module, "CHUNK_ROWS", 16)
    original, last = getattr(os, name), CALLS[name]
    results = {"rows": np.ones(6, int)}
    for failing in sorted({1, 2, 3, last // 3, last // 2, last - 1, last} & {*range(1, last + 1)}):
        log = LogWriter(tmp_path / "log.h5", Draft({"config": "x" * 2000}, columns(False)))
        calls = []

        def fails(*arguments, failing=failing, calls=calls):
            calls.append(arguments)
            if len(calls) == failing or (again and len(calls) > failing):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return original(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(OutputError, match=r"log\.h5: cannot be written: Input/output e"):
                try:
                    write(log)
                except OutputError:
                    log.finish("failed", None, results)
                log.finish("done", np.zeros(50), results)
        if name in ("pwrite", "fsync"):  # what is on the disk is not known: nothing is tried again
            assert len(calls) == failing
        assert not log.file


def test_after_a_failed_sync_a_log_never_says_done(tmp_path, monkeypatch):
    """The system forgets the pages that it could not write; a second sync would succeed."""
    log, original, calls = LogWriter.create(tmp_path / "log.h5", {}, columns(False), False), [], []
    original = os.fsync

    def fails_once(descriptor):
        calls.append(descriptor)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        original(descriptor)

    monkeypatch.setattr(os, "fsync", fails_once)
    log.row(row(0))
    with pytest.raises(OutputError):
        log.finish("done", np.zeros(3), {})
    with h5py.File(tmp_path / "log.h5") as file:
        assert file.attrs["status"] == "running"


def test_all_is_synced_before_the_status_and_the_status_at_the_end(tmp_path, monkeypatch):
    events = []
    log = LogWriter.create(tmp_path / "log.h5", {}, columns(False), False)
    end, write_, sync = log._end, os.pwrite, os.fsync
    monkeypatch.setattr(log, "_end", lambda status: events.append("status") or end(status))
    monkeypatch.setattr(os, "pwrite", lambda *a: events.append("write") or write_(*a))
    monkeypatch.setattr(os, "fsync", lambda d: events.append("sync") or sync(d))
    write(log, 10)
    del events[:]
    log.finish("done", np.zeros(3), {"rows": np.ones(6, int)})
    status = events.index("status")
    assert events[status - 1] == events[-1] == "sync"
    assert {"write"} == set(events[: status - 1]) == set(events[status + 1 : -1])
