"""The schema of a log, its blocks, and what remains when writing fails."""

import errno
import subprocess
import sys

import h5py
import numpy as np
import pytest

from mpisim.core.errors import InputError, OutputError
from mpisim.runs.log import writer as logs
from mpisim.runs.log.schema import columns
from mpisim.runs.log.writer import LogWriter
from tests.comm.jobs import HANG_SECONDS
from tests.helpers import run_tables, table


def writer(path, **options):
    return LogWriter.create(path, {"title": "t"}, columns(False), options.get("force", False))


def row(k):
    return (k, 0.5, 0.25, *[10 * k] * 7, k, *[0.1 * k] * 8)


def test_every_column_has_units_and_a_description(tmp_path):
    log = writer(tmp_path / "a" / "log.h5")
    log.row(row(0))
    log.finish("done", np.arange(3.0), {"rows": np.array([1, 2])})
    with h5py.File(tmp_path / "a" / "log.h5") as file:
        assert file.attrs["status"] == "done" and file.attrs["title"] == "t"
        assert set(file["rounds"]) == {name for name, *_ in columns(False)}
        for data in [*file["rounds"].values(), *file["workers"].values()]:
            assert data.attrs["units"] and data.attrs["description"]
        assert file["final/x"][:].tolist() == [0, 1, 2]


def test_rows_can_be_read_during_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "BLOCK_ROWS", 10)
    log = writer(tmp_path / "log.h5")
    for k in range(25):
        log.row(row(k))
    with h5py.File(tmp_path / "log.h5", locking=False) as file:
        assert file["rounds/round"][:].tolist() == list(range(20))
        assert file.attrs["status"] == "running"
    log.finish("done", None, {})


def test_an_old_log_is_kept_unless_forced(tmp_path):
    path = tmp_path / "log.h5"
    path.write_text("old")
    with pytest.raises(InputError, match="exists already; --resume"):
        writer(path)
    assert path.read_text() == "old"
    writer(path, force=True).finish("done", None, {})
    assert h5py.is_hdf5(path)


def test_full_disk_is_one_line():
    with pytest.raises((InputError, OutputError), match="cannot be written"):
        writer(logs.Path("/dev/full/log.h5"))


def test_log_every_keeps_the_last_row(tmp_path):
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=10, log_every=4), tmp_path / "log.h5")
    with h5py.File(tmp_path / "log.h5") as file:
        assert file["rounds/round"][:].tolist() == [0, 4, 8, 10]
        assert file["workers/bits_up"][:].sum() == file["rounds/bits_up"][-1]


def test_no_room_for_the_status_is_a_failure(tmp_path, monkeypatch):
    log = writer(tmp_path / "log.h5")
    log.row(row(0))

    def full(size):
        if size == 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log, "_reserve", full)
    with pytest.raises(OutputError):
        log.finish("done", np.zeros(2), {})
    with h5py.File(tmp_path / "log.h5") as file:
        assert file.attrs["status"] == "running" and file["rounds/round"][:].tolist() == [0]


def test_an_exception_between_two_columns_leaves_them_equally_long(tmp_path, monkeypatch):
    log = writer(tmp_path / "log.h5")
    log.row(row(0))
    log.flush()
    original, calls = h5py.Dataset.resize, []

    def resize(self, *arguments):
        calls.append(self.name)
        if len(calls) == 5:
            raise KeyboardInterrupt
        original(self, *arguments)

    monkeypatch.setattr(h5py.Dataset, "resize", resize)
    log.row(row(1))
    with pytest.raises(KeyboardInterrupt):
        log.flush()
    log.finish("failed", None, {})
    with h5py.File(tmp_path / "log.h5") as file:
        assert {data.size for data in file["rounds"].values()} == {1}


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
from mpisim.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_disk_that_fills_up_during_the_run(tmp_path):
    """A limit on the size of files stands for the full disk: the log stays, one line says why."""
    settings = ["problem={ name = 'logistic', data = 'sample', workers = 6 }", "run.rounds=100000"]
    settings += ["method={ name = 'gd', stepsize = 0.1 }", "run.checkpoint_seconds=0.5"]
    words = [word for setting in settings for word in ("--set", setting)]
    job = subprocess.run(
        [sys.executable, "-c", LIMITED, "run", *words, "--out", str(tmp_path / "log.h5")],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert job.returncode == 1
    lines = [line for line in job.stderr.splitlines() if line.startswith("mpisim: ")]
    assert len(lines) == 1 and "log.h5: cannot be written: File too large" in lines[0]
    assert "Traceback" not in job.stderr
    with h5py.File(tmp_path / "log.h5") as file:
        rounds = file["rounds/round"][:]
        assert rounds.size > 4000 and np.array_equal(rounds, np.arange(rounds.size))
        assert file.attrs["status"] == "failed"
    left = {"log.h5", "log.h5.ckpt", "log.h5.ckpt.old"}
    assert {p.name for p in tmp_path.iterdir()} <= left
