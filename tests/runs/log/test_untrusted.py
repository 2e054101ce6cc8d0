"""A process of its own for what may crash."""

import ctypes
import errno
import os
import re
import resource
import time

import h5py
import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.machine import reading_budget
from mpisim.runs.log import untrusted as module
from mpisim.runs.log.reader import last_iterate, read
from mpisim.runs.log.untrusted import Crashed, run_each, run_isolated


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
