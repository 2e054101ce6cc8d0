"""Studies: loaded, listed, run, drawn, made from the template; and their grids of settings."""

import re
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w

from mpisim.analysis.curves import Axis
from mpisim.analysis.results import provenance_of
from mpisim.analysis.study import Grid, Grids, Job, Line, Lines, find, load, tuning
from mpisim.analysis.study.figure import studies
from mpisim.cli import main
from mpisim.comm.communicators import OneProcess
from mpisim.core.errors import InputError
from mpisim.problems.data import find as data_sets
from mpisim.runs.experiment import parse
from mpisim.runs.labels import flatten
from mpisim.runs.log.reader import read
from mpisim.runs.sweep.points import Point
from run.byzantine import figures as byzantine
from run.marina import fig1
from run.permk import autoencoder, comparison
from tests.comm.jobs import mpirun, needs_mpirun
from tests.helpers import some_of, table

ROOT = Path(__file__).parents[2]
FIGURE = "Figure('fig1', 'title', Grid('fig1'), print, list)"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A function that writes a study with this figures.py, and loads it."""

    def make(text, name="mine", **modules):
        folder = tmp_path / name
        folder.mkdir()
        imports = "from mpisim.analysis.study import Figure, Grid\n"
        (folder / "figures.py").write_text(f'"""A title.\n\nMore."""\n{imports}{text}')
        for module, content in modules.items():
            (folder / f"{module}.py").write_text(content)
        return load(folder)

    return make


def test_a_study_is_a_package(made):
    text = f"from . import values\nvalue = values.VALUE\nFIGURES = [{FIGURE}]"
    one = made(text, "one", values="VALUE = 1")
    two = made(text.replace("title", "two"), "two-2", values="VALUE = 2")
    assert (one.title, two.figure("fig1").title) == ("A title.", "two")
    assert one.full_name(one.figure("fig1")) == "one-fig1"
    with pytest.raises(InputError, match=r"one: no figure 'fig2'; known: fig1"):
        one.figure("fig2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FIGURES = [", r"figures\.py:5: '\[' was never closed"),
        ("from . import missing", r"figures\.py:5: cannot import name 'missing'"),
        ("", r"figures\.py: FIGURES: None; it must be a list of Figure"),
        ("FIGURES = []\nFIGURES = 3", r"FIGURES: 3; it must be a list of Figure"),
        ("FIGURES = ['fig1']", r"FIGURES: \['fig1'\]; it must be a list of Figure"),
        (f"FIGURES = [{FIGURE}, {FIGURE}]", r"figures\.py: FIGURES: two figures .* same name"),
        (f"{FIGURE.replace('fig1', 'Fig 1')}", r"figures\.py:5: a figure's name: 'Fig 1' is not"),
        (f"{FIGURE.replace('print', '3')}", r"figures\.py:5: figure fig1: draw: 3 is not allowed"),
        (f"{FIGURE.replace('Grid', 'str')}", r"source: 'fig1' is not allowed; it must be Grid"),
    ],
)
def test_what_is_wrong_is_one_line(made, text, message):
    with pytest.raises(InputError, match=message) as error:
        made(text)
    assert "\n" not in str(error.value)


def test_make_asks_the_study_for_ranks(command, monkeypatch):
    """As many as the largest run asks for, of the data at hand; most figures ask for none."""
    for there, study, figure, ranks in (
        (("svmguide3", "splice"), "saq", "fig4", "2\n"),
        (("svmguide3", "splice"), "saq", "seconds --scale paper", "6\n"),
        (("svmguide3", "a9a", "covtype"), "saq", "table2 --scale paper", ""),
        ((), "saq", "fig3", ""),  # a measurement
        (("mushrooms",), "marina", "fig1", ""),
    ):
        monkeypatch.setattr(data_sets, "available", there.__contains__)
        assert command("study", ROOT / "run" / study, *figure.split(), "--ranks") == ranks


@some_of(1, scale=["quick", "paper"])
def test_every_grid_is_read(scale):
    for study in studies(ROOT / "run"):
        for figure in study.figures.values():
            source = figure.source
            if isinstance(source, Grids):
                assert source.folder(study.folder).parent == Path("logs")
            elif isinstance(source, Grid) and scale in source.scales:
                folder, points = source.all_points(study.folder, scale)
                assert folder == source.folder(study.folder) and folder.parts[0] == "logs"
                assert points


def test_other_data_takes_its_place(monkeypatch):
    from mpisim.problems.torch import samples

    study, figure = find("cdadam-fig9")
    for there, used in ((True, "cifar10-part"), (False, "generated")):
        monkeypatch.setattr(samples, "available", lambda name, t=there: t or name == "generated")
        _, grid, gone = figure.source.points(study.folder, "quick")
        assert {point["problem"]["data"] for point in grid} == {used} and not gone


def test_a_new_study_runs(tmp_path, monkeypatch, command):
    """All scales of a grid have one folder, from which the figure is drawn: paper's is refused."""
    monkeypatch.chdir(tmp_path)
    study = "study", "papers/mine"
    assert "mpisim study papers/mine fig1" in command("new", *study)
    assert "papers/mine: exists already" in command("new", *study, code=2)
    grid, figures = Path("papers/mine/fig1.toml"), Path("papers/mine/figures.py")
    figures.write_text(figures.read_text().replace("run.rounds=2000", "sweep.folder=logs/big"))
    assert "never run" in command(*study)
    line = command(*study, "fig1", "--scale", "paper", code=2)
    assert "fig1, scale paper: sweep.folder: 'logs/big' is not allowed; it must be 'logs/" in line
    assert not Path("logs").exists()
    assert "mine-fig1: 2 hold\n" in command(*study, "fig1")
    assert Path("figures/mine-fig1.png").stat().st_size > 10_000
    assert "drawn, 2 hold; 10 of 10 runs done" in command(*study)
    grid.write_text(grid.read_text() + "multiples = [0.25, 1.0]\n")
    output = command(*study, "fig1")
    assert "10 of them complete before" in output and "mine-fig1: 2 not decided\n" in output
    claims = Path("figures/mine-fig1.claims.json")
    assert "edge of the grid" in claims.read_text()
    claims.write_text('[{"claim": "a", "holds": true}]')  # the study is listed all the same
    assert "drawn by an older version, draw it again; 15 of 15 runs" in command(*study)
    grid.write_text('[problem]\nname = "quadratic"\n')  # no method, and another folder
    assert "drawn by an older version, draw it again; never run" in command(*study)


@needs_mpirun
@pytest.mark.mpi
def test_a_study_under_mpirun(tmp_path):
    """All ranks run, one draws."""
    assert main(["new", "study", str(tmp_path / "mine")]) == 0
    few = (tmp_path / "mine" / "fig1.toml").read_text().replace("rounds = 200", "rounds = 20")
    (tmp_path / "mine" / "fig1.toml").write_text(few)
    job = mpirun(2, "-m", "mpisim", "study", "mine", "fig1", cwd=tmp_path)
    assert job.stdout.count("not decided\n") == 1
    assert (tmp_path / "figures" / "mine-fig1.pdf").is_file()


def test_a_figure_of_two_grids(made, monkeypatch, command):
    """Each grid has its own ranks and folder of logs; what one lacks is said."""
    style = "from matplotlib.figure import Figure as style\n"
    grids = "Grids((Grid('bits'), Grid('timed')))"
    figure = f"Figure('fig1', 'title', {grids}, lambda logs: style())"
    study = made(f"from mpisim.analysis.study import Grids\n{style}FIGURES = [{figure}]")
    monkeypatch.chdir(study.folder.parent)
    for name, ranks in (("bits", {}), ("timed", {"ranks": "workers"})):
        tables = table({"name": "gd", "stepsize": "theory"}, workers=1, rounds=2, **ranks)
        tables["sweep"] = {"folder": f"logs/mine/{name}", "run": {"seed": [1, 2]}}
        (study.folder / f"{name}.toml").write_text(tomli_w.dumps(tables))
    folder, source, logs = study.folder, study.figure("fig1").source, Path("logs/mine")
    assert source.ranks(folder, "quick") == 1 and source.extras(folder, "quick") == ""
    assert source.folder(folder) == logs
    assert source.state(folder, "quick", 1) == "bits: never run, timed: never run"
    with pytest.raises(InputError, match="logs/mine: no complete log"):
        source.read(logs)
    output = command("study", folder, "fig1", "--separate")
    assert output.count("2 points: 2 done") == 2
    assert "group 1 of 2 (bits)\n" in output and "group 2 of 2 (timed)\n" in output
    assert re.search(r"\[2/2\] GD seed 2, about \S+ s left\n", output)
    assert source.state(folder, "quick", 1) == "bits: 2 of 2 runs done, timed: 2 of 2 runs done"
    shutil.copytree(logs / "timed", logs / "another-figure")
    found, left = source.read(logs)
    assert [log.config["run"].get("ranks") for log in found] == [None, None, "workers", "workers"]
    assert left == [] and len(source.read(logs / "timed")[0]) == 2
    assert provenance_of(study, study.figure("fig1"), "quick", 0).runs == {"done": 4}
    shutil.rmtree(logs / "timed")
    (logs / "timed").mkdir()
    found, left = source.read(logs)
    assert len(found) == 2 and left == ["logs/mine/timed: no complete log of a run there"]


def test_a_signal_ends_a_figure_of_several_grids(monkeypatch):
    """Each of these grids has one point, which ends as the grid's file says."""
    monkeypatch.setattr(Grid, "complete", lambda grid, _: [Point("", "", {}, "", grid.file)])
    monkeypatch.setattr(Grid, "folder", lambda grid, study: study / grid.file)

    def completed(*statuses):
        job = Job(Path("mine"), "quick", OneProcess())
        return [point.status for point in Grids([Grid(one) for one in statuses]).complete(job)]

    assert completed("done", "diverged", "done") == ["done", "diverged", "done"]
    assert completed("done", "interrupted", "done") == ["done", "interrupted"]


@pytest.mark.parametrize("done", ["AB", "A", ""])
def test_a_panel_without_a_step_that_went_well_is_not_decided(done, monkeypatch):
    """It stays in the claim, also where all runs diverged: the other panels do not decide alone."""

    class OneSide(Lines):
        def best(self, _):
            return {("panel", "A"): SimpleNamespace(logs=[], step=1.0, edge="")} if done else {}

    a, b, absent = (Line(name, "k", {"method.name": name}) for name in "ABC")
    lines = OneSide((a, b), Axis("bits_up", log=False), lambda log: "panel")
    every = {name: SimpleNamespace(config={"method": {"name": name}}) for name in "AB"}
    logs = [every.pop(name) for name in done]
    monkeypatch.setattr(tuning, "diverged", lambda _: [*every.values()])
    (evidence,) = lines.fewer(logs, a, b).evidence
    assert evidence.verdict == "not decided"
    assert evidence.measured == f"no step of {'B' if done else 'A'} went well on all seeds"
    assert not lines.fewer(logs, a, absent).evidence


def test_a_line_of_two_settings_is_one_line(make_log):
    """The last one would stand for the line, without a word."""
    logs = [read(make_log(compressor=f'name = "randk"\nk = {k}')) for k in (1, 30)]
    line = Line("MARINA", "k", {"method.name": logs[0].attrs["method"]})
    lines = Lines([line], Axis("round", log=False), lambda log: "sample")
    both = r"RandK \(K = 1\) \(.*\.h5\) and RandK \(K = 30\) \(.*\.h5\)"
    with pytest.raises(InputError, match=rf"^sample, MARINA: has two settings, {both}; "):
        lines.draw(logs)


def test_a_line_survives_an_attack_with_one_step_for_all_seeds(monkeypatch):
    """A step with which a seed diverged or rises does not count; where one is missing it may."""
    falls = np.exp(-0.1 * np.arange(101))
    rises = np.append(falls, np.full(20, 5.0))

    def claim(*runs):
        every = [
            SimpleNamespace(
                config={"problem": {"data": "a9a"}, "attack": {"name": "ipm"}},
                attrs={"seed": seed, "stepsize": step, "status": status},
                column=lambda _, y=y: y,
            )
            for step, seed, status, y in runs
        ]
        monkeypatch.setattr(byzantine, "diverged", lambda _: every[done:])
        done = sum(run[2] == "done" for run in runs)
        return byzantine.reaches(Line("mine", "k", {}), every[:done]).verdict

    first, second = (1.0, 1, "done", falls), (1.0, 2, "done", falls)
    assert claim(first, second) == "holds"
    assert claim(first, (1.0, 2, "done", rises)) == "does not hold"
    assert claim(first, (2.0, 2, "done", falls)) == "not decided"
    other = [(2.0, seed, "done", rises) for seed in (1, 2)]
    assert claim(first, *other, (1.0, 2, "diverged", falls)) == "does not hold"


def test_figure_2_of_permk_leaves_other_lambdas_in_its_folder_alone(monkeypatch):
    def ran(lambda_):
        problem = {"lambda": lambda_, "homogeneity": 0.5}
        return SimpleNamespace(config={"problem": problem, "compressor": {"name": "permk"}})

    monkeypatch.setattr(comparison, "diverged", lambda _: [ran(0.0), ran(2e-5)])
    monkeypatch.setattr(comparison, "best_steps", lambda *_: [])
    assert list(autoencoder.tuned([ran(0.0)], ("permk", "topk"))) == [(0.0, 0.5)]


GRIDS = tomllib.loads(Path(__file__).with_name("grids.toml").read_text())


def points_of(name, scale):
    study, figure = find(name)
    return figure.source.all_points(study.folder, scale)


@pytest.mark.parametrize(("name", "scale"), [(name, s) for name in GRIDS for s in GRIDS[name]])
def test_settings(name, scale):
    wanted = flatten(GRIDS[name][scale])
    folder, points = points_of(name, scale)
    assert wanted.pop("logs", str(folder)) == str(folder) and wanted.pop("points") == len(points)
    flat = list(map(flatten, points))
    for key, values in wanted.items():
        seen = {str(one[key]) for one in flat if key in one}
        seen = seen or {str(flatten(parse(point).table)[key]) for point in points}  # a default
        assert seen == {str(value) for value in values}, key


def test_settings_that_depend_on_each_other():
    for point in points_of("marina-fig1", "quick")[1]:  # the same bits for all
        assert point["run"]["rounds"] * 32 == point["run"]["stop"]["bits_up"]
    conditions = {"permk-fig1": None, "permk-fig3": "PL", "permk-table6": "PL"}  # Theorem 5's step
    for name, condition in conditions.items():
        steps = [point["method"]["stepsize"] for point in points_of(name, "paper")[1]]
        assert {dict(s).get("condition") for s in steps if s != "theory"} == {condition}
    for method in (point["method"] for point in points_of("cdadam-fig1", "quick")[1]):
        assert method["stepsize"] == (0.1 if method["name"] == "ef21-2way" else 1e-4)


@pytest.mark.real
@pytest.mark.parametrize("data", fig1.ORDER)
def test_the_regulariser_is_the_published_one(data, need_data):
    need_data(data)
    point = next(p for p in points_of("marina-fig1", "quick")[1] if p["problem"]["data"] == data)
    problem = parse(point).problem.loaded(5, 0, 5, 1, np.dtype(np.float64))
    without = problem.published_norms().max() - problem.l2
    assert problem.l2 == pytest.approx(1e-6 * without, rel=1e-6)
