"""Reading logs in a process of its own, and the one line that says what is wrong with a file."""

import ctypes
import errno
import mmap
import os
import re
import resource
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from mpisim.analysis.log_files import all_rows
from mpisim.analysis.report_data import y_axes
from mpisim.core.errors import InputError
from mpisim.core.machine import reading_budget
from mpisim.runs.log import untrusted as module
from mpisim.runs.log.reader import last_iterate, read
from mpisim.runs.log.schema import SCHEMA_VERSION
from mpisim.runs.log.untrusted import Crashed, run_each, run_isolated
from tests.runs.support import put_elsewhere, refused

SQUARES = [8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125]


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_uniformly_drawn_iterate(make_log, rows):
    """After k rounds x^ is uniform among x^0, ..., x^{k-1}: MARINA, Algorithm 1, line 12."""
    log = read(make_log(rounds=rows - 1, columns={"grad_norm_sq": np.array(SQUARES[:rows])}))
    means = [SQUARES[0], *(np.mean(SQUARES[:k]) for k in range(1, rows))]
    np.testing.assert_allclose(log.column("mean_grad_norm_sq"), means, rtol=1e-14)


@pytest.mark.parametrize(
    ("rounds", "why"),
    [
        ([0, 2, 3], "run.log_every = 1, not 2"),
        ([0, 1, 4], "run.log_every = 1, not 3"),
        ([3, 4, 5], "the rows from round 0 on, not from 3"),
    ],
)
def test_no_mean_over_rounds_that_are_not_in_the_log(make_log, rounds, why):
    log = read(make_log(rounds=2, columns={"round": np.array(rounds)}))
    line = f"log1.h5: no mean_grad_norm_sq: it needs {why}, or run.columns"
    with pytest.raises(InputError, match=line):
        log.column("mean_grad_norm_sq")
    names = {*all_rows([log]), *(axis.name for axis in y_axes([log]))}
    assert "grad_norm_sq" in names and "mean_grad_norm_sq" not in names


def hdf5(config):
    def write(path):
        with h5py.File(path, "w") as file:
            file["rounds/round" if config else "x"] = [0]
            file.attrs["config"] = config

    return write


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "no such log"),
        (Path.mkdir, "is a folder, not a log; `mpisim show` lists the runs of a folder"),
        (Path.touch, "the file is empty"),
        (lambda path: path.write_text("round,loss\n0,1\n" * 100), "not an HDF5 file"),
        (os.mkfifo, "not a log: not a regular file"),
        (hdf5(""), "holds no group /rounds"),
        (hdf5("a = = 1"), "attribute config is not TOML"),
    ],
)
def test_bad_files_are_one_line(tmp_path, write, message):
    path = tmp_path / "bad.h5"
    write(path)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize("how", ["link", "/rounds/round", "/rounds/loss", "virtual", "raw"])
def test_other_files_are_never_read(make_log, how, monkeypatch):
    """Nor is a link followed that stays in the file."""
    path = make_log(rounds=3)
    monkeypatch.chdir(path.parent)
    with h5py.File(path, "r+") as file:
        if how.startswith("/"):
            del file["rounds/loss"]
            file["rounds/loss"] = h5py.SoftLink(how)
        else:
            put_elsewhere(file["rounds"], "loss", how)
    lies = how in ("virtual", "raw")
    message = "the data of /rounds/loss lies in other files" if lies else "/rounds/loss is a link"
    with refused(path.parent, rf"{path}: the log is refused: {message}"):
        read(path)


def test_a_newer_layout_is_refused(make_log):
    path = make_log(rounds=3)
    with h5py.File(path, "r+") as file:
        file.attrs["schema_version"] = SCHEMA_VERSION + 1
        file.move("rounds", "rows")  # whatever else is new in it
    with pytest.raises(InputError, match=r"by a newer mpisim: its schema is 2, .* up to 1; up"):
        read(path)


def test_what_is_returned_and_raised_comes_back():
    big = np.arange(1 << 20)  # more than a pipe holds
    assert np.array_equal(run_isolated("x", lambda: big), big)
    assert run_isolated("x", os.getpid) != os.getpid()
    with pytest.raises(InputError, match="one line") as error:
        run_isolated("x", lambda: (_ for _ in ()).throw(InputError("one line")))
    assert not isinstance(error.value, Crashed)


def test_without_another_process_it_is_read_here(monkeypatch):
    def fork():
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(os, "fork", fork)
    assert run_isolated("x", os.getpid) == os.getpid()


def loop():
    while True:
        pass


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (lambda: ctypes.string_at(0), "SIGSEGV"),
        (os.abort, "SIGABRT"),
        (lambda: os._exit(3), "exit code 3"),
        (lambda: lambda: None, "exit code 1"),  # cannot be pickled
    ],
)
def test_a_process_that_dies_is_one_line(action, why, capfd):
    with pytest.raises(Crashed, match=rf"^some\.h5: .*crashed on it \({why}\)$") as error:
        run_isolated("some.h5", action)
    assert "\n" not in str(error.value) and error.value.exit_code == 2
    assert capfd.readouterr().err == ""


def test_all_that_a_command_reads_has_one_limit_in_time(tmp_path, monkeypatch):
    """A file that loops is read twice, with others and alone, each for half of what is left."""
    monkeypatch.setenv("MPISIM_READ_SECONDS", "1.5")
    paths = [tmp_path / name for name in ("good", "bad", "bad too", "bad again")]
    begin, read = cpu_seconds(), lambda path: loop() if "bad" in path.name else path.name
    with reading_budget():
        good, *bad = run_each(paths, read)
    assert good == "good" and cpu_seconds() - begin < 5  # not a minute for each
    line = r": (takes more than 1 s to read|is not read): .*; MPISIM_READ_SECONDS sets a larger"
    assert all(isinstance(one, Crashed) and re.search(line, str(one)) for one in bad)
    monkeypatch.setenv("MPISIM_READ_SECONDS", "all")
    with pytest.raises(InputError, match=r"^MPISIM_READ_SECONDS: 'all' is not allowed; it must be"):
        run_each(paths, read)


def test_many_logs_do_not_use_up_the_memory_of_a_command(tmp_path, monkeypatch):
    """Studies read thousands: a megabyte for each comes on top. A larger file still needs more."""
    monkeypatch.setenv("MPISIM_READ_GIGABYTES", "0.001")
    paths = [tmp_path / str(number) for number in range(10)]
    with reading_budget():
        assert [len(one) for one in run_each(paths, lambda _: bytes(10**6))] == 10 * [10**6]
        with pytest.raises(InputError, match="GB of memory"):
            run_isolated("x", lambda: bytes(2 * 10**7))
    with mmap.mmap(-1, 1 << 30):  # a small budget leaves memory for the code, whatever is held
        assert run_isolated("some.h5", lambda: len(bytes(1 << 28))) == 1 << 28


def test_all_that_a_command_reads_has_one_limit_in_memory(make_log, monkeypatch):
    """Also where the file is small: it has holes, and what is not written is zeros."""
    path = make_log(rounds=3)
    with h5py.File(path, "r+") as file:
        file.pop("final/x", None)
        file["final"].create_dataset("x", (200_000_000,), float)[-1] = 1
    assert path.stat().st_blocks * 512 < 10**6 and read(path).rows == 4
    with pytest.raises(InputError, match=r"needs 1\.6 GB of memory.*; MPISIM_READ_GIGABYTES sets"):
        last_iterate(path)
    with pytest.raises(MemoryError):
        run_isolated("x", lambda: np.zeros(10**9) + 1)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_what_waits_for_ever_is_ended(monkeypatch):
    monkeypatch.setattr(module, "WALL_SECONDS", 0.2)
    with pytest.raises(Crashed, match=r"^some\.h5: cannot be read within 0\.2 s$"):
        run_isolated("some.h5", lambda: time.sleep(600))
    with pytest.raises(ChildProcessError):  # no child is left
        os.waitpid(-1, os.WNOHANG)
