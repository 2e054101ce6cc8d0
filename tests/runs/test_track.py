"""Rows for TensorBoard, Weights & Biases and MLflow."""

import sys
from types import SimpleNamespace

import pytest

import mpisim
from mpisim.cli import main
from tests.helpers import table

EXPERIMENT = table({"name": "gd", "stepsize": 0.1}, rounds=5) | {
    "problem": {"name": "quadratic", "dimension": 4, "workers": 2}
}


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


def rows_of(tool, kind):
    """{round: values} that the library got."""
    if kind == "tensorboard":
        rows = {}
        for (name, value, k), _ in tool.of("add_scalar"):
            rows.setdefault(k, {})[name] = value
        return rows
    name = {"wandb": "log", "mlflow": "log_metrics"}[kind]
    return {named["step"]: words[0] for words, named in tool.of(name)}


@pytest.mark.parametrize(
    ("kind", "module", "end"),
    [
        ("tensorboard", "tensorboardX", "close"),
        ("wandb", "wandb", "finish"),
        ("mlflow", "mlflow", "end_run"),
    ],
)
def test_a_tracker_gets_every_row_and_the_end(kind, module, end, monkeypatch):
    tool = Calls()
    monkeypatch.setitem(sys.modules, module, tool)
    result = mpisim.run(mpisim.Experiment.from_dict(EXPERIMENT), track=kind)
    rows = rows_of(tool, kind)
    assert list(rows) == result.rows["round"].tolist() == list(range(6))
    for name in ("loss", "bits_up", "time_compute"):
        assert [row[name] for row in rows.values()] == result.rows[name].tolist()
    assert len(tool.of(end)) == 1 and "quadratic" in str(tool.calls[:3])


@pytest.mark.parametrize("failing", ["init", "log", "finish"])
def test_a_tracker_that_fails_does_not_end_the_run(failing, monkeypatch, capsys):
    tool = Calls([failing])
    monkeypatch.setitem(sys.modules, "wandb", tool)
    result = mpisim.run(mpisim.Experiment.from_dict(EXPERIMENT), track="wandb")
    assert result.status == "done" and len(result.rows["round"]) == 6
    said = capsys.readouterr().err
    assert said == "mpisim: --track wandb: stopped: no network; the run goes on\n"
    assert len(tool.of(failing)) == 1  # it is left alone then


def test_without_the_library_there_is_one_line_and_no_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    settings = ["problem.name=quadratic", "problem.dimension=4", "problem.workers=2"]
    settings += ["method.name=gd", "method.stepsize=0.1", "run.rounds=3"]
    words = [word for setting in settings for word in ("--set", setting)]
    log = tmp_path / "log.h5"
    assert main(["run", *words, "--track", "mlflow", "--out", str(log)]) == 2
    assert capsys.readouterr().err.endswith("mlflow needs mlflow: pip install 'mpisim[mlflow]'\n")
    assert not log.exists()
    with pytest.raises(mpisim.InputError, match="'tensorbored'; did you mean 'tensorboard'"):
        mpisim.run(mpisim.Experiment.from_dict(EXPERIMENT), track="tensorbored")


def test_tensorboard_itself_reads_the_rows(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.chdir(tmp_path)
    result = mpisim.run(mpisim.Experiment.from_dict(EXPERIMENT), track="tensorboard")
    events = accumulator.EventAccumulator(str(tmp_path / "runs" / "gd")).Reload()
    seen = SimpleNamespace(step=[], value=[])
    for event in events.Scalars("loss"):
        seen.step.append(event.step), seen.value.append(event.value)
    assert seen.step == list(range(6))
    assert seen.value == pytest.approx(result.rows["loss"], rel=1e-6)
