"""What is shown while a run goes on, also by TensorBoard, Weights & Biases and MLflow."""

import io
import sys

import pytest

import mpisim
from mpisim.core import terminal
from mpisim.runs.progress import ERASE_LINE, Progress, StatusLine, duration
from tests.helpers import table
from tests.runs.support import GD

QUADRATIC = {"name": "quadratic", "dimension": 4, "workers": 2}
EXPERIMENT = table(GD, rounds=5) | {"problem": QUADRATIC}


class Calls:
    """A library that notes the calls of its functions, and fails in those of ``failing``."""

    def __init__(self, failing=()):
        self.calls, self.failing = [], failing

    def __getattr__(self, name):
        def call(*words, **named):
            self.calls.append((name, words, named))
            if name in self.failing:
                raise ConnectionError("no\nnetwork")
            return self

        return call

    def of(self, name):
        return [(words, named) for called, words, named in self.calls if called == name]


TRACKERS = {  # the module, and the functions that get a row or a value, and the end
    "tensorboard": ("tensorboardX", "add_scalar", "close"),
    "wandb": ("wandb", "log", "finish"),
    "mlflow": ("mlflow", "log_metrics", "end_run"),
}


@pytest.mark.parametrize("kind", TRACKERS)
def test_a_tracker_gets_every_row_and_the_end(kind, monkeypatch):
    tool, rows, (module, log, end) = Calls(), {}, TRACKERS[kind]
    monkeypatch.setitem(sys.modules, module, tool)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    result = mpisim.run(EXPERIMENT, track=kind)
    for words, named in tool.of(log):
        if kind == "tensorboard":
            name, value, k = words
            rows.setdefault(k, {})[name] = value
        else:
            rows[named["step"]] = words[0]
    assert list(rows) == result.rows["round"].tolist() == list(range(6))
    for name in ("loss", "bits_up", "time_compute"):
        assert [row[name] for row in rows.values()] == result.rows[name].tolist()
    assert len(tool.of(end)) == 1 and "quadratic" in str(tool.calls[:3])
    assert all(named["project"] == "mine" for _, named in tool.of("init"))


@pytest.mark.parametrize("failing", ["init", "log", "finish"])
def test_a_tracker_that_fails_does_not_end_the_run(failing, monkeypatch, capsys):
    tool = Calls([failing])
    monkeypatch.setitem(sys.modules, "wandb", tool)
    result = mpisim.run(EXPERIMENT, track="wandb")
    assert result.status == "done" and len(result.rows["round"]) == 6
    output = capsys.readouterr().err
    assert output == "mpisim: --track wandb: stopped: no network; the run goes on\n"
    assert len(tool.of(failing)) == 1  # it is left alone then


def test_a_run_that_cannot_start_is_shown_by_no_tracker(log, monkeypatch):
    tool = Calls()
    monkeypatch.setitem(sys.modules, "wandb", tool)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for kind, message in (
        ("mlflow", r"mlflow needs mlflow: pip install 'mpisim\[mlflow\]'$"),
        ("tensorbored", "'tensorbored'; did you mean 'tensorboard'"),
        ("wandb", "exists already"),
    ):
        if kind == "wandb":
            mpisim.run(EXPERIMENT, log=log)
        with pytest.raises(mpisim.InputError, match=message):
            mpisim.run(EXPERIMENT, log=log, track=kind)
        assert log.exists() == (kind == "wandb") and tool.calls == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drive(stream, seconds, step, rounds):
    """A run that logs a round every ``step`` seconds; returns the times at which it wrote."""
    now, written = 100.0, []
    progress = Progress(rounds, stream, clock=lambda: now)
    for k in range(int(seconds / step) + 1):
        now, before = 100.0 + k * step, stream.tell()
        progress.update(k, 0.5, 1e-3, 320.0 * k)
        if stream.tell() > before:
            written.append(now - 100.0)
    return progress, written


def test_batch_log_gets_few_lines():
    stream = io.StringIO()
    progress, written = drive(stream, 400, 0.5, 1000)
    assert written == [10, 20, 40, 80, 140, 200, 260, 320, 380]
    progress.close("done")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10 and "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()
    begin = "round 20/1000 (2%), 2/s, 8 min 10 s left, f 0.5, |grad f|^2 1.00e-03, 6.4 kbit/worker"
    assert lines[0] == begin
    assert lines[-1].startswith("done: round 800 of 1000 in 6 min 40 s (2 rounds/s), f 0.5")


def test_terminal_has_one_line_that_overwrites_itself():
    stream = Terminal()
    progress, written = drive(stream, 3, 0.01, 300)
    assert 10 <= len(written) <= 13
    assert "\n" not in stream.getvalue()
    assert all(len(part) <= 200 for part in stream.getvalue().split(ERASE_LINE))
    progress.close("interrupted")
    assert stream.getvalue().count("\n") == 1
    assert "interrupted: round 300 of 300" in stream.getvalue()


def test_durations():
    texts = {0: "0.0 s", 59.94: "59.9 s", 59.96: "1 min 00 s", 185: "3 min 05 s"}
    for seconds, text in (texts | {7620: "2 h 07 min", float("inf"): "?"}).items():
        assert duration(seconds) == text


def test_lines_do_not_wrap(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    progress = Progress(10**6, stream, True, clock=iter(range(1000)).__next__)
    for k in (0, 123456, 10**6):
        progress.update(k, 1.2345e-12, 9.87654e-123, 123456789.0)
    progress.close()
    for line in stream.getvalue().replace("\n", ERASE_LINE).split(ERASE_LINE):
        assert len(line) < 80 and not line.endswith(",")
    assert "done: round 1000000 of 1000000 in" in stream.getvalue()


def test_a_message_has_a_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    line = StatusLine(stream, True, 0.0)
    line.show("round 1/10", 0.0)
    terminal.report("mpisim: something")
    line.show("round 2/10", 1.0)
    terminal.PrintableStream(stream).write("a point\n")
    line.close("done")
    lines = [line.rpartition("\x1b[2K")[2] for line in stream.getvalue().split("\n")]
    assert lines == ["mpisim: something", "a point", "done", ""]
