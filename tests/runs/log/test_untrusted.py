"""A process of its own for what may crash."""

import ctypes
import errno
import os
import signal
import time

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.runs.log import untrusted as module
from mpisim.runs.log.untrusted import Crashed, run_isolated
from tests.comm.jobs import HANG_SECONDS


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
        (loop, "SIGXCPU"),
    ],
)
def test_a_process_that_dies_is_one_line(action, why, monkeypatch, capfd):
    monkeypatch.setattr(module, "CPU_SECONDS", 1)
    with pytest.raises(Crashed, match=rf"^some\.h5: .*crashed on it \({why}\)$") as error:
        run_isolated("some.h5", action)
    assert "\n" not in str(error.value) and error.value.exit_code == 2
    assert capfd.readouterr().err == ""


def test_what_waits_for_ever_is_ended(monkeypatch):
    monkeypatch.setattr(module, "WALL_SECONDS", 0.2)
    with pytest.raises(Crashed, match=r"^some\.h5: cannot be read within 0\.2 s$"):
        run_isolated("some.h5", lambda: time.sleep(600))
    with pytest.raises(ChildProcessError):  # no child is left
        os.waitpid(-1, os.WNOHANG)


def test_an_interrupt_leaves_no_process_behind():
    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_isolated("x", lambda: time.sleep(HANG_SECONDS))
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ChildProcessError):  # no child is left
        os.waitpid(-1, os.WNOHANG)
