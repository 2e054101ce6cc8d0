"""Python does what the command line does."""

import dataclasses
import shutil

import h5py
import numpy as np
import pytest
import tomli_w

import mpisim
from mpisim.analysis.rows import all_rows
from mpisim.cli import main
from tests.helpers import table

TABLES = table({"name": "diana", "stepsize": 0.1}, {"name": "randk", "k": 3}, workers=4, rounds=12)
GRID = TABLES | {"sweep": {"method": {"stepsize": [0.01, 0.1]}, "run": {"seed": [1, 2]}}}


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The folder of a grid, run in two processes."""
    folder = tmp_path_factory.mktemp("grid")
    assert {point.status for point in mpisim.sweep(GRID, folder, jobs=2)} == {"done"}
    return folder


def printed(capsys, *words):
    assert main([*map(str, words)]) == 0
    return capsys.readouterr().out.rstrip("\n")


def test_jobs_are_not_for_a_job_of_mpirun(monkeypatch):
    monkeypatch.setattr("mpisim.runs.api.launched", lambda: True)
    with pytest.raises(mpisim.InputError, match="jobs: is for one process"):
        mpisim.sweep(GRID, jobs=2)


def test_tune_is_the_command(grid, tmp_path, capsys):
    tuned = mpisim.tune(GRID, grid, criterion="final")
    assert len(tuned) == 1 and tuned[0].best.step == 0.1
    assert repr(tuned).startswith("best step by the smallest log10")
    file = tmp_path / "grid.toml"
    file.write_text(tomli_w.dumps(GRID))
    text = printed(capsys, "tune", file, "--out", grid, "--criterion", "final")
    assert text.endswith(repr(tuned))
    theory = TABLES | {"method": {"name": "diana", "stepsize": "theory"}}
    [setting] = mpisim.tune(theory, tmp_path / "m", multiples=[0.5, 1.0])
    assert setting.theory and [one.step for one in setting.candidates] == [0.5, 1.0]


def test_verify_is_the_command(grid, capsys):
    path = sorted(grid.glob("*.h5"))[0]
    checks = mpisim.verify(path, rerun=True)
    assert checks and checks[-1].text.startswith("every row of a second run on 1 ranks")
    lines = printed(capsys, "verify", path, "--rerun").splitlines()
    assert "\n".join(lines[1:-1]) == repr(checks)


def test_verify_finds_an_edited_loss(grid, tmp_path):
    path = shutil.copy(sorted(grid.glob("*.h5"))[0], tmp_path / "edited.h5")
    with h5py.File(path, "r+") as file:
        file["rounds/loss"][3] *= 2
    checks = mpisim.verify(path)
    assert not checks and any(check.problems for check in checks)


def test_report_is_the_command(grid, tmp_path):
    written = mpisim.report(grid, tmp_path / "a.html", title="T", where=["seed == 1"])
    words = ["plot", grid, "-o", tmp_path / "b.html", "--title", "T", "--where", "seed == 1"]
    assert main([*map(str, words)]) == 0
    assert written.read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "2 runs: 2 done" in written.read_text()


def test_card_is_the_command(capsys):
    text = printed(capsys, "card", "randk", "--set", "compressor.k=3", "--d", "30")
    card = mpisim.card("randk", d=30, k=3)
    clocks = ("encode", "decode", "link", "pays", "ns")

    def steady(lines):
        return [line for line in lines.splitlines() if not any(word in line for word in clocks)]

    assert steady(card) == steady(text) and len(steady(card)) > 5


def test_study_and_claims(tmp_path, capsys):
    folder = tmp_path / "mine"
    assert main(["new", "study", str(folder)]) == 0
    drawn = mpisim.study(folder, "fig1", jobs=2)
    assert drawn.picture.axes and drawn.claims
    capsys.readouterr()
    assert main(["study", str(folder), "fig1", "--out", str(tmp_path / "out")]) == 0
    judged = mpisim.claims(tmp_path / "out")
    assert judged["mine"]["fig1"] == drawn.claims
    with pytest.raises(mpisim.InputError, match="no figure 'fig9'"):
        mpisim.study(folder, "fig9")


def test_a_result_is_short_and_drawn():
    result = mpisim.run(mpisim.Experiment.from_dict(TABLES))
    assert len(repr(result)) < 300 and repr(result).startswith("<Result status done, method diana")
    assert np.array_equal(result.bits_per_worker, result.rows["bits_up"] / 4)
    figure = result.plot("round", "loss")
    assert np.array_equal(figure.axes[0].lines[0].get_ydata(), result.rows["loss"])
    over_bits = result.plot().axes[0]
    assert over_bits.get_xlabel() == "bits sent per worker"
    assert over_bits.lines[0].get_xdata()[-1] == result.bits_per_worker[-1]
    html = result._repr_html_()
    assert "<table>" in html and "bits_per_worker" in html and html.count("\n") < 30


def test_experiments_and_tables_in_a_notebook(grid):
    experiment = mpisim.Experiment.from_dict(TABLES | {"title": "a < b"})
    assert repr(experiment).startswith("<Experiment a < b: diana + randk on nonconvex-loss")
    assert "a &lt; b" in experiment._repr_html_() and "[method]" in experiment._repr_html_()
    runs, costs = mpisim.load(grid), mpisim.table(grid, 10.0)
    for shown in (runs, costs):
        assert shown._repr_html_().count("<tr>") >= 3 and "<table>" in shown._repr_html_()
    assert len(repr(runs).splitlines()) == 5
    assert {"bits_per_worker"} <= set(all_rows(runs.logs))


def test_every_command_about_logs_has_a_function():
    for name in ("tune", "report", "verify", "study", "claims", "card", "sweep", "table", "plot"):
        assert name in mpisim.__all__
    fields = [field.name for field in dataclasses.fields(mpisim.Result)]
    assert fields == ["status", "x", "rows", "attributes", "log"]
