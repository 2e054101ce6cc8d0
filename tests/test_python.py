"""`import mpisim`: what it offers and costs, and that it does what the command line does."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import tomli_w

import mpisim
from mpisim.analysis.log_files import all_rows
from mpisim.runs.log.reader import last_iterate
from tests.comm.jobs import python
from tests.helpers import columns, settings, table

TABLES = table({"name": "diana", "stepsize": 0.1}, {"name": "randk", "k": 3}, workers=4, rounds=12)
ROOT = Path(__file__).parents[1]
GRID = TABLES | {"sweep": {"method": {"stepsize": [0.01, 0.1]}, "run": {"seed": [1, 2]}}}


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The folder of a grid, run in two processes."""
    folder = tmp_path_factory.mktemp("grid")
    assert {point.status for point in mpisim.sweep(GRID, folder, jobs=2)} == {"done"}
    return folder


def test_jobs_are_not_for_a_job_of_mpirun(monkeypatch):
    monkeypatch.setattr("mpisim.runs.sweep.executor.launched", lambda: True)
    with pytest.raises(mpisim.InputError, match="jobs: is for one process"):
        mpisim.sweep(GRID, jobs=2)


@pytest.mark.parametrize("jobs", [0, 2])
def test_python_prints_progress_on_request(tmp_path, capfd, jobs):
    wrong = {"compressor": {"k": [3, 999]}}  # 999 > d: skipped
    for progress in (False, True):
        folder = tmp_path / str(progress)
        mpisim.sweep(TABLES | {"sweep": wrong}, folder, jobs=jobs, progress=progress)
        output, errors = capfd.readouterr()
        assert ("[1/2]" in output) == progress and (output + errors != "") == progress


def test_a_run_takes_what_a_sweep_takes(tmp_path):
    (tmp_path / "x.toml").write_text(tomli_w.dumps(TABLES))
    first, second = mpisim.run(tmp_path / "x.toml"), mpisim.run(TABLES)
    assert first.attributes["config"] == second.attributes["config"]
    with pytest.raises(mpisim.InputError, match=r"^log: .*x\.txt' does not end in \.h5$"):
        mpisim.run(TABLES, log=tmp_path / "x.txt")


def experiment(**changes) -> mpisim.Experiment:
    return mpisim.Experiment.from_dict(TABLES | changes)


def test_a_run_returns_what_its_log_holds(tmp_path):
    """Also one that is resumed, and one that was complete before."""
    log = tmp_path / "log.h5"
    for rounds in (7, 12, 12):
        result = mpisim.run(experiment(run={"rounds": rounds}), log=log, resume=True)
        assert result.status == "done" and result.log == log
        assert result.attributes["stepsize"] == 0.1 and result.attributes["workers"] == 4
        assert np.array_equal(result.x, last_iterate(log))
        logged = columns(log)
        assert result.rows.keys() == logged.keys()
        for name, values in result.rows.items():
            assert np.array_equal(values, logged[name]) and values.dtype == logged[name].dtype, name


def test_tune_is_the_command(grid, tmp_path, command):
    tuned = mpisim.tune(GRID, grid, criterion="final")
    assert len(tuned) == 1 and tuned[0].best.step == 0.1
    assert repr(tuned).startswith("best step by the smallest log10")
    file = tmp_path / "grid.toml"
    file.write_text(tomli_w.dumps(GRID))
    text = command("tune", file, "--out", grid, "--criterion", "final")
    assert text.endswith(f"{tuned!r}\n")
    theory = TABLES | {"method": {"name": "diana", "stepsize": "theory"}}
    [setting] = mpisim.tune(theory, tmp_path / "m", multiples=[0.5, 1.0])
    assert setting.theory and [one.step for one in setting.candidates] == [0.5, 1.0]


def test_verify_is_the_command(grid, command):
    path = sorted(grid.glob("*.h5"))[0]
    checks = mpisim.verify(path, rerun=True)
    assert checks and checks[-1].text.startswith("every row of a second run on 1 rank,")
    lines = command("verify", path, "--rerun").splitlines()
    assert "\n".join(lines[1:-1]) == repr(checks)


def test_report_is_the_command(grid, tmp_path, command):
    options = {"title": "T", "where": ["seed == 1"], "fleets": "mlab:US"}
    written = mpisim.report(grid, tmp_path / "a.html", **options)
    words = ["--title", "T", "--where", "seed == 1", "--fleet", "mlab:US"]
    command("plot", grid, "-o", tmp_path / "b.html", *words)
    assert written.read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "2 runs: 2 done" in written.read_text()


def test_runs_that_were_read_are_as_good_as_their_paths(grid, tmp_path):
    runs, expected = mpisim.load(grid), mpisim.table(grid, 1e-2)
    assert mpisim.table(runs, 1e-2) == mpisim.table(list(runs), 1e-2) == expected
    for several, path in ((runs, grid), (runs[0], runs[0].path)):
        one, other = (mpisim.plot(given).axes[0].lines[0] for given in (several, path))
        assert np.array_equal(one.get_xydata(), other.get_xydata())
        assert one.get_label() == other.get_label()
    modelled = mpisim.plot(runs, x="seconds", network="100mbit,1ms")
    assert "100mbit" in modelled.axes[0].get_xlabel()
    pages = [mpisim.report(logs, tmp_path / "page.html").read_text() for logs in (runs, [grid])]
    assert pages[0].count("<section") == pages[1].count("<section") > 0


def test_tables_take_conditions_as_figures_do(grid):
    [best] = mpisim.table(grid, 1e-2, best=True)
    assert best == mpisim.table(grid, 1e-2, where="method.stepsize == 0.1")[0]
    costs = mpisim.table(grid, 1e-2, where=["seed == 1", "method.stepsize < 1"])
    assert len(costs) == 2 and repr(costs) == costs.to_text("text")
    frame = costs.to_pandas()
    assert list(frame["runs"]) == [1, 1] and list(frame["method.stepsize"]) == [0.01, 0.1]


def test_fleet_is_the_command(grid, command):
    costs = mpisim.fleet(grid, ["10mbit,20ms", {"links": "mlab:US", "seed": 7}], draws=3)
    words = ["--draws", 3, "--set", "fleet.seed=7"]
    text = command("fleet", grid, "--fleet", "mlab:US", *words)
    one, other = (re.findall(".*mlab:US.*", shown) for shown in (text, repr(costs)))
    assert [line.split() for line in one] == [line.split() for line in other] and len(one) == 2
    assert costs[-1].target.level == 12 and min(costs[-1].levels) > 0
    assert list(costs.to_pandas()["draws"]) == [3] * 4 and "mlab:US" in costs._repr_html_()
    with pytest.raises(mpisim.InputError, match="no log has a table"):
        mpisim.fleet(grid)
    with pytest.raises(mpisim.InputError, match="draws: 0 is not allowed"):
        mpisim.fleet(grid, "mlab:US", draws=0)


def test_card_is_the_command(command):
    text = command("card", "randk", "--set", "compressor.k=3", "--d", "30")
    card = mpisim.card("randk", d=30, k=3)
    clocks = re.compile("encode|decode|link|pays|ns")
    one, other = (
        [line for line in t.splitlines() if not clocks.search(line)] for t in (card, text)
    )
    assert one == other and len(one) > 5


def test_study_and_claims(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)  # where the study's logs go
    folder = tmp_path / "mine"
    command("new", "study", folder)
    drawn = mpisim.study(folder, "fig1")
    assert drawn.picture.axes and drawn.claims
    command("study", folder, "fig1", "--out", tmp_path / "out")
    judged = mpisim.claims(tmp_path / "out")
    assert judged["mine"]["fig1"] == drawn.claims
    with pytest.raises(mpisim.InputError, match="no figure 'fig9'"):
        mpisim.study(folder, "fig9")


def test_a_result_is_short_and_drawn():
    result = mpisim.run(experiment())
    assert len(repr(result)) < 300 and repr(result).startswith("<Result status done, method diana")
    assert np.array_equal(result.bits_per_worker, result.rows["bits_up"] / 4)
    [line] = result.plot(y="loss").axes[0].lines
    points = np.column_stack([result.bits_per_worker, result.rows["loss"]])
    assert np.array_equal(line.get_xydata(), points[1:])  # no 0 on an axis of logarithms
    html = result._repr_html_()
    assert "<table>" in html and "bits_per_worker" in html and html.count("\n") < 30


def test_experiments_and_tables_in_a_notebook(grid):
    one = experiment(title="a < b")
    assert repr(one).startswith("<Experiment a < b: diana + randk on nonconvex-loss")
    assert "a &lt; b" in one._repr_html_() and "[method]" in one._repr_html_()
    runs, costs = mpisim.load(grid), mpisim.table(grid, 10.0)
    for shown in (runs, costs):
        assert shown._repr_html_().count("<tr>") >= 3 and "<table>" in shown._repr_html_()
    assert len(repr(runs).splitlines()) == 5
    assert {"bits_per_worker"} <= set(all_rows(runs.logs))


def test_the_import_loads_nothing_heavy():
    heavy = "{'numpy', 'numba', 'h5py', 'scipy', 'mpi4py', 'matplotlib', 'sklearn'}"
    assert python(f"import sys, mpisim; print(sorted({heavy} & set(sys.modules)))") == "[]\n"


def test_every_name_is_there_and_has_a_docstring():
    for name in mpisim.__all__:
        assert getattr(mpisim, name).__doc__, name
    assert set(mpisim.__all__) <= set(dir(mpisim)) and mpisim.__version__


def test_no_module_inside_imports_the_root():
    for path in (ROOT / "mpisim").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert "mpisim" not in names, path


def test_a_run_without_a_log_is_the_same_and_quiet(tmp_path, capfd):
    logged = mpisim.run(experiment(), log=tmp_path / "log.h5")
    kept = mpisim.run(experiment())
    assert capfd.readouterr() == ("", "")
    assert kept.log is None and np.array_equal(kept.x, logged.x)
    assert np.array_equal(kept.rows["bits_up"], logged.rows["bits_up"])
    mpisim.run(experiment(), quiet=False)
    assert "done: round 12 of 12" in capfd.readouterr().err


def test_guarantees_are_what_the_command_prints(command):
    given = [f"{t}.{k}={v}" for t, keys in TABLES.items() for k, v in keys.items()]
    text = command("theory", *settings(*given))
    assert text.strip() == mpisim.guarantees(experiment()).strip()
