"""How runs end: by a signal, by a condition of `run.stop`, or because they diverge."""

import os
import signal
import subprocess
import sys
import time
import tomllib
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import mpisim
from mpisim.analysis.tune import best
from mpisim.cli import main
from mpisim.comm.clock import Clock
from mpisim.core.errors import Diverged
from mpisim.runs import ctrl_c
from mpisim.runs.loop import Poll
from mpisim.runs.stop import StopSignals
from mpisim.testing.new import create
from mpisim.testing.runs import LAST
from tests.comm.jobs import HANG_SECONDS
from tests.helpers import attributes, before_row, columns, forged, run_tables, some_of, table
from tests.resumes import differences
from tests.runs.support import GD, refused
from tests.runs.sweep.support import BASE


@pytest.mark.parametrize(
    ("number", "cause", "status"),
    [
        (signal.SIGINT, "Ctrl-C", "interrupted"),
        (signal.SIGTERM, "SIGTERM or a closed terminal", "terminated"),
        (signal.SIGHUP, "SIGTERM or a closed terminal", "terminated"),
    ],
)
def test_a_run(number, cause, status, log, tmp_path, monkeypatch, capfd):
    """Which gets it before the row of round 5."""
    (tmp_path / "x.toml").write_text(BASE)
    words = ["run", str(tmp_path / "x.toml"), "--out", str(log)]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the suite may run under nohup
    before_row(monkeypatch, lambda k: k == 5 and os.kill(os.getpid(), number))
    assert main(words) == (130 if number == signal.SIGINT else 143)
    out, err = capfd.readouterr()
    [line] = [one for one in err.splitlines() if one.startswith("mpisim: ")]
    last, of_log = columns(log)["round"][-1], attributes(log)
    assert of_log["status"] == status and out == ""
    assert line.startswith(f"mpisim: stopped by {cause} at round {last}; log {log}; --resume ")
    assert main([*words, "--resume"]) == 0


def test_a_signal_too_late_for_a_run_goes_to_the_script(log, monkeypatch):
    last = tomllib.loads(BASE)["run"]["rounds"]
    before_row(monkeypatch, lambda k: k == last and os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        mpisim.run(tomllib.loads(BASE), log=log)
    assert attributes(log)["status"] == "done"


@pytest.mark.parametrize("at", [1, LAST])
def test_a_signal_ends_mpisim_check(at, tmp_path, monkeypatch, capfd):
    """Whether it stops one of its runs or comes too late for it."""
    path, _ = create("compressor", "mine", tmp_path)
    before_row(monkeypatch, lambda k: k == at and os.kill(os.getpid(), signal.SIGTERM))
    assert main(["check", str(path)]) == 143
    assert capfd.readouterr().err.splitlines()[-1] == "mpisim: stopped by SIGTERM"


BEFORE = {  # the rounds of a run: a command, and where a signal comes in it
    "mpisim.runs.plugins.load": "run x.toml --out log.h5",
    "mpisim.runs.host.info_text": "--info",
    "mpisim.problems.data.libsvm.parse": "run x.toml --out log.h5",
    "mpisim.runs.sweep.executor.plan": "sweep x.toml --out logs",
    "mpisim.runs.sweep.runner.Setup": "sweep x.toml --out logs",
    "matplotlib.figure.Figure.savefig": "plot log1.h5 -o x.png",
}


@some_of(3, place=BEFORE, number=[signal.SIGINT, signal.SIGTERM])
def test_before_the_rounds_a_signal_ends_a_command_at_once(
    place, number, tmp_path, monkeypatch, capfd, make_log
):
    monkeypatch.chdir(make_log().parent)
    (tmp_path / "x.toml").write_text(BASE.replace('"sample"', '"./data"'))
    (tmp_path / "data").write_text("1 1:2\n" * 6)

    def interrupt(*_, **__):
        os.kill(os.getpid(), number)
        time.sleep(HANG_SECONDS)

    monkeypatch.setattr(place, interrupt)
    assert main(BEFORE[place].split()) == 128 + number
    [line] = [line for line in capfd.readouterr().err.splitlines() if "stopped" in line]
    assert line == f"mpisim: stopped by {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}"
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


def helper(terminal):
    """The process that hears Ctrl-C, with a file for a terminal, as a child of this one."""
    code = f"import mpisim.runs.ctrl_c as c; c.TERMINAL = {str(terminal)!r}; c.main()"
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


@some_of(3, pressed=[False, True], words=[[b"one\n"], [b"one\n", b"two\n"], [b"one\n", b"\n"], []])
def test_last_words_are_written_after_ctrl_c_only(pressed, words, tmp_path):
    heard, terminal = [], tmp_path / "terminal"
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with helper(terminal) as process:
            for line in words:
                process.stdin.write(line)
                process.stdin.flush()
            while pressed and not heard:  # one that comes just before a read waits for the next
                process.send_signal(signal.SIGINT)
                time.sleep(1e-3)
            if pressed:
                process.send_signal(signal.SIGINT)  # once more changes nothing
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.returncode == 0 and len(heard) == pressed
    said = pressed and words and words[-1].strip()
    written = words[-1] if said else b""
    assert (terminal.read_bytes() if terminal.exists() else b"") == written


def test_elsewhere_there_is_no_such_process(monkeypatch):
    monkeypatch.delenv(ctrl_c.RANK, raising=False)
    assert ctrl_c.LastWords.start() is None
    monkeypatch.setenv(ctrl_c.RANK, "0")
    monkeypatch.setattr(ctrl_c, "TERMINAL", "/no/such/terminal")
    assert ctrl_c.LastWords.start() is None


MESSAGE = 4 * 32  # bits that a worker sends in each round
NINE = {"bits_up": 9 * MESSAGE}


def randk(rounds=60, **run):
    return table(GD | {"name": "dcgd"}, {"name": "randk", "k": 4}, rounds=rounds, **run)


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
        ({"loss": 10.0}, 1, 0, "loss"),
        ({"grad_norm_sq": 0.0}, 1, 60, "rounds"),
    ],
)
def test_costs_without_a_draw_give_the_exact_last_row(stop, every, last, by, log):
    if "oracle_calls" in stop:
        samples = run_tables(randk(rounds=1)).row["oracle_calls"] / 6
        stop = stop | {"oracle_calls": stop["oracle_calls"] * samples}
    end = run_tables(randk(log_every=every, stop=stop), log)
    assert (end.status, end.row["round"], end.stopped_by) == ("done", last, by)
    assert attributes(log)["status"] == "done" and attributes(log)["stopped_by"] == by
    full = log.with_name("full.h5")
    run_tables(randk(rounds=last, log_every=every), full)
    assert set(differences(full, log)) <= {"stopped_by"}


def one_row(tmp_path, step, data="2 1:2", **run):
    """GD on least squares of a row."""
    (tmp_path / "line").write_text(f"{data}\n")
    problem = {"name": "least-squares", "data": str(tmp_path / "line")}
    return table({"name": "gd", "stepsize": step}, workers=1, problem=problem, **run)


@pytest.mark.parametrize(("every", "last"), [(1, 9), (4, 12)])
def test_a_run_that_rises_too_far_is_stopped(every, last, log, command):
    """A step of 2.5 / L: |grad f(x^k)|^2 = 2.25^k |grad f(x^0)|^2, 1000 times the start at 8.52."""
    how = {"rounds": 60, "log_every": every, "stop": {"divergence": 1000.0}}
    end = run_tables(one_row(log.parent, {"theory": 2.5}, **how), log)
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
def test_a_run_that_diverges_does_not_end_as_done(why, log, tmp_path, command):
    data, step, last = DIVERGES[why]
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


def test_a_smaller_budget_is_refused(log, tmp_path):
    """Of runs that ended by themselves, at round 20, by a condition at 9, or diverged at 4."""
    earlier, diverged = log.with_name("earlier.h5"), log.with_name("diverged.h5")
    with pytest.raises(Diverged, match="at round 4"):
        run_tables(one_row(tmp_path, 2500.25, rounds=60), diverged)
    run_tables(randk(rounds=20), log)
    run_tables(randk(stop=NINE), earlier)
    for path, tables, match in (
        (log, {"stop": NINE}, r"run\.stop is met at round 9, before its checkpoint"),
        (earlier, {"rounds": 8, "stop": NINE}, r"run\.rounds: 8 is not allowed; .* least 9"),
        (diverged, {"rounds": 3}, r"run\.rounds: 3 is not allowed; .* least 4"),
        (diverged, {"rounds": 60, "stop": {"loss": 2.0}}, "is met at round 0"),
    ):
        made = one_row(tmp_path, 2500.25, **tables) if path == diverged else randk(**tables)
        with refused(tmp_path, match):
            run_tables(made, path, resume=True)
    assert run_tables(randk(stop=NINE), log, resume=True, force=True).row["round"] == 9


def test_verify_knows_where_a_run_ends(log, command):
    run_tables(randk(stop=NINE), log)
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
    poll = Poll(star, 0)
    for k, wishes, wished, checks, next_ in (
        (1, 0.0, False, 1, 2),
        (2, 0.0, False, 2, 6),
        (6, 1.0, True, 2, 10),  # a wish: no further check has begun
        (10, 1.0, False, 3, 14),
    ):
        others = np.array([wishes, 4.0])
        assert poll.wished(k, False) == wished and (len(begun), poll.next) == (checks, next_), k
    assert poll.finish() and not poll.finish()
