"""How runs end: by a signal, by a condition of `run.stop`, or because they diverge."""

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import weakref
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import mpisim
from mpisim.analysis.tune import best
from mpisim.cli import main
from mpisim.comm.clock import Clock
from mpisim.core.errors import Diverged, InputError
from mpisim.runs import ctrl_c
from mpisim.runs.loop import Poll
from mpisim.runs.stop import StopSignals
from mpisim.testing.new import create
from mpisim.testing.runs import LAST
from tests.comm.jobs import HANG_SECONDS
from tests.helpers import attributes, before_row, columns, forged, run_tables, some_of, table
from tests.resumes import differences
from tests.runs.sweep.support import BASE


@pytest.mark.parametrize(
    ("number", "cause", "status"),
    [
        (signal.SIGINT, "Ctrl-C", "interrupted"),
        (signal.SIGTERM, "SIGTERM or a closed terminal", "terminated"),
        (signal.SIGHUP, "SIGTERM or a closed terminal", "terminated"),
    ],
)
def test_a_run(number, cause, status, tmp_path, monkeypatch, capfd):
    """Which gets it before the row of round 5."""
    (tmp_path / "x.toml").write_text(BASE)
    log = str(tmp_path / "log.h5")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the suite may run under nohup
    before_row(monkeypatch, lambda k: k == 5 and os.kill(os.getpid(), number))
    code = 130 if number == signal.SIGINT else 143
    assert main(["run", str(tmp_path / "x.toml"), "--out", log]) == code
    out, err = capfd.readouterr()
    [line] = [line for line in err.splitlines() if line.startswith("mpisim: ")]
    text = rf"mpisim: stopped by {cause} at round (\d+); log {log}; --resume .*"
    result = re.fullmatch(text, line)
    assert result and out == ""
    assert attributes(log)["status"] == status and columns(log)["round"][-1] == int(result[1])
    assert main(["run", str(tmp_path / "x.toml"), "--out", log, "--resume"]) == 0


def test_a_signal_too_late_for_a_run_goes_to_the_script(tmp_path, monkeypatch):
    last = tomllib.loads(BASE)["run"]["rounds"]
    before_row(monkeypatch, lambda k: k == last and os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        mpisim.run(tomllib.loads(BASE), log=tmp_path / "log.h5")
    assert attributes(tmp_path / "log.h5")["status"] == "done"


@pytest.mark.parametrize("at", [1, LAST])
def test_a_signal_ends_mpisim_check(at, tmp_path, monkeypatch, capfd):
    """Whether it stops one of its runs or comes too late for it."""
    path, _ = create("compressor", "mine", tmp_path)
    before_row(monkeypatch, lambda k: k == at and os.kill(os.getpid(), signal.SIGTERM))
    assert main(["check", str(path)]) == 143
    assert capfd.readouterr().err.splitlines()[-1] == "mpisim: stopped by SIGTERM"


BEFORE = {  # the rounds of a run, and instead of any: where a signal comes
    "importing a plugin": ("mpisim.runs.plugins.load", "run"),
    "printing": ("mpisim.runs.host.info_text", "--info"),
    "reading data": ("mpisim.problems.data.libsvm.parse", "run"),
    "planning": ("mpisim.runs.sweep.executor.plan", "sweep"),
    "setting a point up": ("mpisim.runs.sweep.runner.Setup", "sweep"),
    "drawing": ("matplotlib.figure.Figure.savefig", "plot"),
}


@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
@some_of(4, where=BEFORE)
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


def test_after_a_handler_of_c_comes_the_default(monkeypatch):
    """Python names it None, and cannot install it again."""
    usual, change = signal.getsignal(signal.SIGTERM), signal.signal
    with monkeypatch.context() as embedded:
        embedded.setattr(signal, "signal", lambda *words: change(*words) and None)
        signals = StopSignals().__enter__()
    signals.__exit__(None)
    now = change(signal.SIGTERM, usual), change(signal.SIGINT, signal.default_int_handler)
    assert now == (signal.SIG_DFL, signal.SIG_DFL)


def helper(tmp_path):
    """The process that hears Ctrl-C, with a file for a terminal, as a child of this one."""
    code = f"import mpisim.runs.ctrl_c as c; c.TERMINAL = {str(tmp_path / 'terminal')!r}; c.main()"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the process catches it
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    signal.signal(signal.SIGINT, before)
    while not catches_ctrl_c(process.pid):
        assert process.poll() is None
        time.sleep(1e-3)
    return process


def catches_ctrl_c(pid: int) -> bool:
    with open(f"/proc/{pid}/status") as status:
        [mask] = [line.split()[1] for line in status if line.startswith("SigCgt")]
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


@some_of(4, pressed=[False, True], words=[[b"one\n"], [b"one\n", b"two\n"], [b"one\n", b"\n"], []])
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


MESSAGE = 4 * 32  # bits that a worker sends in each round
DCGD, RANDK = {"name": "dcgd", "stepsize": 0.05}, {"name": "randk", "k": 4}


def randk(rounds=60, **run):
    return table(DCGD, RANDK, rounds=rounds, **run)


@pytest.mark.parametrize(
    ("stop", "every", "last", "by"),
    [
        ({"bits_up": 5 * MESSAGE}, 1, 5, "bits_up"),
        ({"bits_up": 5 * MESSAGE + 1}, 1, 6, "bits_up"),
        ({"bits_up": 5 * MESSAGE + 0.5}, 4, 8, "bits_up"),
        ({"bits_up": 60 * MESSAGE}, 7, 60, "bits_up"),
        ({"bits_up": 60 * MESSAGE + 1}, 7, 60, "rounds"),
        ({"paper_bits_up": 7 * MESSAGE}, 1, 7, "paper_bits_up"),
        ({"bits_up": 9 * MESSAGE, "oracle_calls": 3}, 1, 3, "oracle_calls"),  # samples of a worker
        ({"bits_up": 2 * MESSAGE, "oracle_calls": 3}, 1, 2, "bits_up"),
        *(({"loss": 10.0}, 1, 0, "loss"), ({"grad_norm_sq": 0.0}, 1, 60, "rounds")),
    ],
)
def test_costs_without_a_draw_give_the_exact_last_row(stop, every, last, by, tmp_path):
    log = tmp_path / "log.h5"
    if "oracle_calls" in stop:
        samples = run_tables(randk(rounds=1)).row["oracle_calls"] / 6
        stop = stop | {"oracle_calls": stop["oracle_calls"] * samples}
    end = run_tables(randk(log_every=every, stop=stop), log)
    assert (end.status, end.row["round"], end.stopped_by) == ("done", last, by)
    with h5py.File(log) as file:
        assert file.attrs["status"] == "done" and file.attrs["stopped_by"] == by
        assert file["rounds/round"][-1] == last
        assert np.array_equal(file["final/x"][:], end.x)
    full = tmp_path / "full.h5"
    run_tables(randk(rounds=last, log_every=every), full)
    assert set(differences(full, log)) <= {"stopped_by"}


def one_row(tmp_path, step, data="2 1:2", **run):
    """GD on least squares of a row."""
    (tmp_path / "line").write_text(f"{data}\n")
    problem = {"name": "least-squares", "data": str(tmp_path / "line")}
    return table({"name": "gd", "stepsize": step}, workers=1, problem=problem, **run)


@pytest.mark.parametrize(("every", "last"), [(1, 9), (4, 12)])
def test_a_run_that_rises_too_far_is_stopped(every, last, tmp_path, command):
    """A step of 2.5 / L: |grad f(x^k)|^2 = 2.25^k |grad f(x^0)|^2, 1000 times the start at 8.52."""
    log, stop = tmp_path / "log.h5", {"divergence": 1000.0}
    tables = one_row(tmp_path, {"theory": 2.5}, rounds=60, log_every=every, stop=stop)
    end = run_tables(tables, log)
    assert (end.status, end.row["round"], end.stopped_by) == ("done", last, "divergence")
    command("verify", log)
    [choice] = best([log])
    assert [c.out for c in choice.candidates] == ["seed 1 diverged (run.stop.divergence)"]


DIVERGES = {  # the row, a step of GD, and the round of the last row
    "a gradient that is not finite": ("1 1:1e160", 1e-3, 0),  # f(0) = 1/2
    "a loss that has grown": ("2 1:2", 2500.25, 4),  # by 10^8 in each round, from 2
    "a loss that is not finite": ("2 1:2", 1e200, 1),
}


@pytest.mark.parametrize("why", DIVERGES)
def test_a_run_that_diverges_does_not_end_as_done(why, tmp_path, command):
    data, step, last = DIVERGES[why]
    log = tmp_path / "log.h5"
    message = rf"^diverged: loss .*, \|grad f\|\^2 .* at round {last}; log "
    with pytest.raises(Diverged, match=message):
        run_tables(one_row(tmp_path, step, data, rounds=last), log)
    assert columns(log)["round"][-1] == last
    command("verify", log)
    with forged(log) as file:
        file.attrs["status"] = "done"
    command("verify", log, code=1)
    if last > 1:  # the row before is large, but may come back
        assert run_tables(one_row(tmp_path, step, data, rounds=last - 1))


def test_a_smaller_budget_is_refused(tmp_path):
    log = tmp_path / "log.h5"
    run_tables(randk(rounds=20), log)
    smaller = randk(stop={"bits_up": 9 * MESSAGE})
    with pytest.raises(InputError, match=r"run\.stop is met at round 9, before its checkpoint"):
        run_tables(smaller, log, resume=True)
    assert columns(log)["round"].size == 21
    assert run_tables(smaller, log, resume=True, force=True).row["round"] == 9


def test_what_ended_later_is_not_the_end_of_a_smaller_budget(tmp_path):
    """A run that diverged at round 4, and one that its own condition ended at round 9."""
    stop, log = {"bits_up": 9 * MESSAGE}, tmp_path / "log.h5"
    with pytest.raises(Diverged, match="at round 4"):
        run_tables(one_row(tmp_path, 2500.25, rounds=60), tmp_path / "diverged.h5")
    run_tables(randk(stop=stop), log)
    for path, tables, match in (
        (tmp_path / "diverged.h5", {"rounds": 3}, r"run\.rounds: 3 is not allowed; .* least 4"),
        (tmp_path / "diverged.h5", {"rounds": 60, "stop": {"loss": 2.0}}, "is met at round 0"),
        (log, {"rounds": 8, "stop": stop}, r"run\.rounds: 8 is not allowed; .* least 9"),
    ):
        made = randk(**tables) if path == log else one_row(tmp_path, 2500.25, **tables)
        with pytest.raises(InputError, match=match):
            run_tables(made, path, resume=True)


def test_verify_knows_where_a_run_ends(tmp_path, command):
    log = tmp_path / "log.h5"
    run_tables(randk(stop={"bits_up": 9 * MESSAGE}), log)
    assert "nothing is wrong" in command("verify", log)
    with forged(log) as file:
        file.attrs["stopped_by"] = "rounds"
    assert "stopped by rounds, but the last row says bits_up" in command("verify", log, code=1)
    with forged(log) as file:
        nine, four = (f"bits_up = {k * MESSAGE}" for k in (9, 4))
        file.attrs["config"] = file.attrs["config"].replace(nine, four)
    assert "round 4 meets run.stop, but the last row is of 9" in command("verify", log, code=1)


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
