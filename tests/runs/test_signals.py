"""SIGINT and SIGTERM end a run with a line: where, which log, how to go on."""

import os
import re
import signal
import subprocess
import sys
import time
import weakref
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from mpisim.cli import main
from mpisim.comm.clock import Clock
from mpisim.runs import ctrl_c
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.loop import Poll
from mpisim.runs.stop import StopSignals
from tests.comm.jobs import HANG_SECONDS
from tests.runs.sweep.support import BASE


@pytest.fixture
def stop(monkeypatch):
    """stop(number): a signal comes before the row of round 5."""

    def arm(number):
        original = Evaluator.row

        def row(self, k, *arguments):
            if k == 5:
                os.kill(os.getpid(), number)
            return original(self, k, *arguments)

        monkeypatch.setattr(Evaluator, "row", row)

    return arm


@pytest.mark.parametrize(
    ("number", "cause", "status"),
    [(signal.SIGINT, "Ctrl-C", "interrupted"), (signal.SIGTERM, "SIGTERM", "terminated")],
)
def test_a_run(number, cause, status, stop, tmp_path, capfd):
    (tmp_path / "x.toml").write_text(BASE)
    log = str(tmp_path / "log.h5")
    stop(number)
    assert main(["run", str(tmp_path / "x.toml"), "--out", log]) == 128 + number
    out, err = capfd.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("mpisim: ")]
    [line] = lines
    found = re.fullmatch(
        rf"mpisim: stopped by {cause} at round (\d+); log {log}; --resume .*", line
    )
    assert found and out == ""
    with h5py.File(log) as file:
        assert file.attrs["status"] == status and file["rounds/round"][-1] == int(found[1])


def test_a_sweep(stop, tmp_path, capfd):
    (tmp_path / "x.toml").write_text(BASE + "[sweep]\nrun.seed = [1, 2, 3]\n")
    stop(signal.SIGINT)
    code = main(["sweep", str(tmp_path / "x.toml"), "--out", str(tmp_path / "logs")])
    lines = [line for line in capfd.readouterr().err.splitlines() if "stopped by" in line]
    assert code == 130 and len(lines) == 1
    assert re.search(r"; log .*\.h5; 3 of 3 points are left; the same command continues$", lines[0])


BEFORE = {  # the rounds of a run, and instead of any: where a signal comes
    "importing a plugin": ("mpisim.runs.plugins.load", "run"),
    "printing": ("mpisim.runs.host.info_text", "--info"),
    "reading data": ("mpisim.problems.data.libsvm.parse", "run"),
    "planning": ("mpisim.runs.sweep.executor.plan", "sweep"),
    "setting a point up": ("mpisim.runs.sweep.runner.Setup", "sweep"),
    "drawing": ("matplotlib.figure.Figure.savefig", "plot"),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
@pytest.mark.parametrize("where", BEFORE)
def test_before_the_rounds_a_signal_ends_a_command_at_once(
    where, number, cause, tmp_path, monkeypatch, capfd, make_log
):
    place, command = BEFORE[where]
    (tmp_path / "x.toml").write_text(BASE.replace('"sample"', f'"{tmp_path / "data"}"'))
    (tmp_path / "data").write_text("1 1:2\n" * 6)
    words = {
        "run": [str(tmp_path / "x.toml"), "--out", str(tmp_path / "log.h5")],
        "sweep": [str(tmp_path / "x.toml"), "--out", str(tmp_path / "logs")],
        "plot": [str(make_log()), "-o", str(tmp_path / "x.png")],
    }

    def interrupt(*_, **__):
        os.kill(os.getpid(), number)
        time.sleep(HANG_SECONDS)

    monkeypatch.setattr(place, interrupt)
    assert main([command, *words.get(command, [])]) == 128 + number
    err = capfd.readouterr().err.splitlines()
    assert err[-1] == f"mpisim: stopped by {cause}" and sum("stopped" in line for line in err) == 1
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def helper(tmp_path):
    """The process that hears Ctrl-C, with a file for a terminal, as a child of this one."""
    code = f"import mpisim.runs.ctrl_c as c; c.TERMINAL = {str(tmp_path / 'terminal')!r}; c.main()"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the process catches it
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    signal.signal(signal.SIGINT, before)
    while not catches_ctrl_c(process.pid):
        time.sleep(1e-3)
    return process


def catches_ctrl_c(pid: int) -> bool:
    with open(f"/proc/{pid}/status") as status:
        [mask] = [line.split()[1] for line in status if line.startswith("SigCgt")]
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.parametrize("pressed", [False, True])
@pytest.mark.parametrize("words", [[b"one\n"], [b"one\n", b"two\n"], [b"one\n", b"\n"], []])
def test_last_words_are_written_after_ctrl_c_only(pressed, words, tmp_path):
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with helper(tmp_path) as process:
            for line in words:
                process.stdin.write(line)
                process.stdin.flush()
            while pressed and not heard:  # one that comes just before a read waits for the next
                process.send_signal(signal.SIGINT)
                time.sleep(1e-3)
            if pressed:
                process.send_signal(signal.SIGINT)  # once more changes nothing
        assert process.returncode == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(heard) == pressed
    terminal = tmp_path / "terminal"
    assert terminal.exists() == bool(pressed and words and words[-1].strip())
    assert not terminal.exists() or terminal.read_bytes() == words[-1]


def test_elsewhere_there_is_no_such_process(monkeypatch):
    monkeypatch.delenv(ctrl_c.RANK, raising=False)
    assert ctrl_c.LastWords.start() is None
    monkeypatch.setenv(ctrl_c.RANK, "0")
    monkeypatch.setattr(ctrl_c, "TERMINAL", "/no/such/terminal")
    assert ctrl_c.LastWords.start() is None
    assert StopSignals().stopped("terminated", 3, None).endswith("round 3; --resume continues")


def test_a_closed_terminal_ends_a_run_with_its_rows(stop, tmp_path, capfd):
    (tmp_path / "x.toml").write_text(BASE)
    log = str(tmp_path / "log.h5")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the suite may run under nohup
    stop(signal.SIGHUP)
    assert main(["run", str(tmp_path / "x.toml"), "--out", log]) == 128 + signal.SIGTERM
    with h5py.File(log) as file:
        assert file.attrs["status"] == "terminated" and len(file["rounds/round"]) > 0
    assert main(["run", str(tmp_path / "x.toml"), "--out", log, "--resume"]) == 0
    capfd.readouterr()


def test_a_check_is_read_in_the_next_one():
    """Its numbers must live until then: MPI reads and writes them meanwhile."""
    begun = []

    class Sum:
        def __init__(self, *numbers):
            self.numbers = [weakref.ref(array) for array in numbers]
            begun.append(self)

        def Wait(self):
            mine, total = (ref() for ref in self.numbers)
            total[:] = mine + others  # of the other ranks

    side = SimpleNamespace(Iallreduce=Sum)
    star = SimpleNamespace(clock=Clock(), is_server=False, ranks=3, side=side)
    poll, others = Poll(star, 0), np.array([0.0, 4.0])
    assert not poll.wished(1, False) and len(begun) == 1 and poll.next == 2
    assert not poll.wished(2, False) and len(begun) == 2 and poll.next == 6
    others = np.array([1.0, 4.0])
    assert poll.wished(6, False) and len(begun) == 2  # a wish: no further check has begun
    assert not poll.wished(10, False) and len(begun) == 3
    assert poll.finish() and not poll.finish()
