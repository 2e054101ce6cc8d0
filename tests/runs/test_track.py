"""What is shown while a run goes on, also by TensorBoard, Weights & Biases and MLflow."""

import io
import sys
from unittest.mock import MagicMock

import pytest

import mpisim
from mpisim.core import terminal
from mpisim.runs.progress import ERASE_LINE, Progress, StatusLine, duration
from tests.helpers import table
from tests.runs.support import GD

QUADRATIC = {"name": "quadratic", "dimension": 4, "workers": 2}
EXPERIMENT = table(GD, rounds=5) | {"problem": QUADRATIC}


@pytest.fixture
def tool(monkeypatch):
    """What stands for each library, and for the run that it starts."""
    tool = MagicMock()
    tool.init.return_value = tool.SummaryWriter.return_value = tool
    for module, *_ in TRACKERS.values():
        monkeypatch.setitem(sys.modules, module, tool)
    return tool


TRACKERS = {  # the module, and the functions that get a row or a value, and the end
    "tensorboard": ("tensorboardX", "add_scalar", "close"),
    "wandb": ("wandb", "log", "finish"),
    "mlflow": ("mlflow", "log_metrics", "end_run"),
}


@pytest.mark.parametrize("kind", TRACKERS)
def test_a_tracker_gets_every_row_and_the_end(kind, tool, monkeypatch):
    _, log, end = TRACKERS[kind]
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    result, rows = mpisim.run(EXPERIMENT, track=kind), {}
    for words, named in getattr(tool, log).call_args_list:
        if kind == "tensorboard":
            name, value, k = words
            rows.setdefault(k, {})[name] = value
        else:
            rows[named["step"]] = words[0]
    assert list(rows) == result.rows["round"].tolist() == list(range(6))
    for name in ("loss", "bits_up", "time_compute"):
        assert [row[name] for row in rows.values()] == result.rows[name].tolist()
    getattr(tool, end).assert_called_once()
    assert "quadratic" in str(tool.mock_calls[:4])
    if kind == "wandb":
        assert tool.init.call_args.kwargs["project"] == "mine"
        monkeypatch.delenv("WANDB_PROJECT")
        mpisim.run(EXPERIMENT, track=kind)
        assert tool.init.call_args.kwargs["project"] == "mpisim"


@pytest.mark.parametrize("failing", ["init", "log", "finish"])
def test_a_tracker_that_fails_does_not_end_the_run(failing, tool, capsys):
    getattr(tool, failing).side_effect = ConnectionError("no\nnetwork")
    result = mpisim.run(EXPERIMENT, track="wandb")
    assert result.status == "done" and len(result.rows["round"]) == 6
    output = capsys.readouterr().err
    assert output == "mpisim: --track wandb: stopped: no network; the run goes on\n"
    getattr(tool, failing).assert_called_once()  # it is left alone then


def test_a_run_that_cannot_start_is_shown_by_no_tracker(log, tool, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(mpisim.InputError, match=r"mlflow needs mlflow: pip install 'mpisim\[ml"):
        mpisim.run(EXPERIMENT, log=log, track="mlflow")
    with pytest.raises(mpisim.InputError, match="'tensorbored'; did you mean 'tensorboard'"):
        mpisim.run(EXPERIMENT, log=log, track="tensorbored")
    mpisim.run(EXPERIMENT, log=log)  # which is not there yet
    with pytest.raises(mpisim.InputError, match="exists already"):
        mpisim.run(EXPERIMENT, log=log, track="wandb")
    assert tool.mock_calls == []


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


def test_terminal_has_one_line_that_overwrites_itself(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    progress, written = drive(stream, 3, 0.01, 300)
    assert 10 <= len(written) <= 13 and "\n" not in stream.getvalue()
    progress.close("interrupted")
    assert stream.getvalue().count("\n") == 1
    assert "interrupted: round 300 of 300" in stream.getvalue()
    for line in stream.getvalue().replace("\n", ERASE_LINE).split(ERASE_LINE):
        assert len(line) < 60  # none wraps, or ends within a value
        assert not line or line.endswith(("f 0.5", "1.00e-03", "bit/worker", "rounds/s)"))


def test_durations():
    texts = {0: "0.0 s", 59.94: "59.9 s", 59.96: "1 min 00 s", 185: "3 min 05 s"}
    for seconds, text in (texts | {7620: "2 h 07 min", float("inf"): "?"}).items():
        assert duration(seconds) == text


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
