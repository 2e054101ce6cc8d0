"""What is run, resumed, skipped and recorded; larger budgets continue earlier logs."""

import json
import os
import tomllib
from pathlib import Path

import h5py
import pytest

from mpisim.analysis.study import complete_logs
from mpisim.core.errors import InputError
from mpisim.problems.glm import Glm
from mpisim.runs import checkpoint
from mpisim.runs.log import reader
from mpisim.runs.sweep.plan import ATTRIBUTES
from mpisim.runs.sweep.points import read_summary
from tests.helpers import before_row, calls_of, run_tables, some_of, without_rehearsal
from tests.resumes import differences
from tests.runs.support import Killed, at_round, die
from tests.runs.sweep.support import BASE, count_runs, run, write

OWN = 'data = "rows"\ntest = "./test"\nsplit = "natural"\nclient_ids = "ids"'
DATA = BASE.replace('data = "sample"', OWN)
TWO_METHODS = """
[[sweep.methods]]
method = { name = "marina" }
[[sweep.methods]]
method = { name = "diana" }
"""


def test_adding_seeds_and_methods_repeats_nothing(tmp_path, monkeypatch):
    ran = count_runs(monkeypatch)
    logs = tmp_path / "logs"
    first = run(write(tmp_path, "run.seed = [1, 2]"), logs)
    assert [p.status for p in first] == ["done", "done"] and len(ran) == 2

    file = write(tmp_path, "run.seed = [2, 3, 1]\n" + TWO_METHODS)
    more = run(file, logs)
    assert len(more) == len(ran) == len(set(ran)) == 6
    before = {p.name: p.seconds for p in more if p.before}
    assert before == {p.name: p.seconds for p in first}

    (logs / ".side-by-side-0").mkdir()  # left by a sweep that was killed after its last point
    assert all(point.before for point in run(file, logs)) and len(ran) == 6
    assert not list(logs.glob(".side*"))


def test_a_killed_run_is_gone_on_with(tmp_path, monkeypatch):
    """A log that is not the one that was written stays as it is."""
    file, logs = write(tmp_path, "run.checkpoint_seconds = [1e-9]"), tmp_path / "parts"
    [reference] = run(file, tmp_path / "full")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        at_round(patch, 8, die)
        run(file, logs)
    log, rows = logs / f"{reference.name}.h5", []
    with h5py.File(log, "r+") as opened:
        opened.attrs["status"] = "running"  # as kill -9 leaves it
    content = log.read_bytes()
    without_rehearsal(monkeypatch)
    before_row(monkeypatch, rows.append)
    log.write_bytes(b"rubbish")
    [point] = run(file, logs)
    assert point.status == "skipped" and point.reason.startswith(f"{log}: ")
    assert point.reason.endswith("; move it away") and log.read_bytes() == b"rubbish"
    log.write_bytes(content)
    [point] = run(file, logs)
    assert point.status == "done" and rows == list(range(7, 13))
    assert differences(Path(reference.log), log) == []


@some_of(2, file=["rows", "test", "ids", "both"])
def test_a_log_of_data_that_has_changed_is_not_complete(file, tmp_path, monkeypatch):
    """Nor is a longer run's beginning; what is registered under its name cannot change."""
    monkeypatch.chdir(tmp_path)
    texts = {"rows": ROWS, "test": ROWS.replace("2:3", "2:4"), "ids": "a\nb\nc\n" * 4}
    for name, text in texts.items():
        Path(name).write_text(text)
    grid, logs = write(tmp_path, "compressor.k = [1]", DATA), Path("logs")
    assert [point.before for point in (*run(grid, logs), *run(grid, logs))] == [False, True]
    if file == "both":  # exchanged
        Path("rows").rename("ids.old"), Path("test").rename("rows"), Path("ids.old").rename("test")
    else:
        Path(file).write_text(texts[file].replace("1:1", "1:2").replace("a", "d"))
    [point] = run(grid, logs)
    assert point.status == "skipped" and point.reason.startswith(f"{point.log}: ")
    assert point.reason.endswith("is of data that has changed since; move it away")
    with pytest.raises(InputError, match="no complete log"):
        complete_logs(logs)
    [longer] = run(grid, logs, "run.rounds=20")
    assert longer.status == "done" and longer.earlier == ""
    Path("rows").unlink()  # without it nothing can be compared, or run
    assert [point.before for point in run(grid, logs, "run.rounds=20")] == [True]


ROWS = "+1 1:1 2:3\n-1 1:2\n+1 2:1\n" * 4
DEEP = "[" * 100_000
POINT = {"name": "a", "log": "a.h5", "settings": {}, "config": ""}
SUMMARIES = ["[]", "{", DEEP, f'{{"points": {DEEP}', '{"points": 3}', '{"points": [[3]]}']
BAD = {"name": []}, {"status": 3}, {"x": 1}
SUMMARIES += [json.dumps({"points": [POINT | bad]}) for bad in BAD]


def test_points_without_a_round(tmp_path):
    points = run(write(tmp_path, "run.rounds = [0, 1]"), tmp_path / "logs")
    assert [point.status for point in points] == ["done", "done"]


def test_a_damaged_summary_is_one_line(tmp_path):
    for text in SUMMARIES:
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(InputError, match="not the summary of a sweep; run"):
            read_summary(tmp_path)


def test_impossible_points_are_skipped_with_their_reason(tmp_path, command):
    sweep = """
    compressor.k = [5, 1000]
    problem.data = ["nowhere", "sample"]
    [[sweep.methods]]
    method = { name = "marina" }
    [[sweep.methods]]
    method = { name = "marina", alpha = 0.5 }
    [[sweep.methods]]
    method = { name = "ef" }
    """
    logs = tmp_path / "logs"
    output = command("sweep", write(tmp_path, sweep), "--out", logs)
    points = read_summary(logs)
    skipped = [p.reason for p in points if p.status == "skipped" and p.exit_code == 2]
    assert [p.exit_code for p in points if p.status == "done"] == [0] and len(skipped) == 11
    for reason in (
        "compressor.k: 1000 is not allowed",
        "method.alpha: unknown key",
        "no theorem for 'ef'",
        "data 'nowhere': not found",
    ):
        assert any(reason in one for one in skipped)
    assert output.count("data 'nowhere'") == 1 and "for the same reason" in output
    assert "12 points: 11 skipped, 1 done" in output
    assert len(list(logs.glob("*.h5"))) == 1


def test_problems_are_loaded_once_and_give_the_same_logs(tmp_path, monkeypatch):
    loads = calls_of(monkeypatch, Glm, "load")
    sweep = "run.seed = [1, 2]\nproblem.split = ['contiguous', 'shuffled']\n" + TWO_METHODS
    points = run(write(tmp_path, sweep), tmp_path / "logs")
    assert len(points) == 8 and len(loads) == 3  # contiguous, and shuffled by each seed

    alone = tmp_path / "alone.h5"
    for point in points:
        run_tables(tomllib.loads(point.config), alone, force=True)
        assert differences(alone, Path(point.log)) == []


MESSAGE = 10 * 32  # bits of RandK's message
DIANA = BASE.replace('"marina"', '"diana"')
SIGN = DIANA.replace('"randk"\nk = 10', '"scaled-sign"').replace('"theory"', "0.01")
WARMUP = SIGN.replace('"diana"', '"1bit-adam"\nwarmup = 0.5')
BITS = "run.stop.bits_up={}".format


def raised(tmp_path, first, then, base=DIANA):
    """A sweep with the settings ``first`` and then with ``then``; the last one's point."""
    file, logs = write(tmp_path, base=base), tmp_path / "logs"
    [one] = run(file, logs, *first)
    before = content(one.log)
    [two] = run(file, logs, *then)
    assert content(one.log) == before and two.status == "done"
    [full] = run(file, tmp_path / "full", *then)
    assert full.name == two.name != one.name
    assert differences(Path(full.log), Path(two.log)) == []
    return one, two


def content(log):
    """The bytes of a log and of its checkpoint."""
    return [Path(path).read_bytes() for path in (log, checkpoint.path_for(Path(log)))]


BUDGETS = [
    (["run.rounds=12"], ["run.rounds=30"]),
    (["run.rounds=12", "method.name=marina"], ["run.rounds=30", "method.name=marina"]),
    (["run.rounds=12", "run.log_every=5"], ["run.rounds=31", "run.log_every=5"]),
    (["run.rounds=50", BITS(6 * MESSAGE)], ["run.rounds=50", BITS(9 * MESSAGE)]),
    (["run.rounds=50", BITS(6 * MESSAGE)], ["run.rounds=14"]),
    (["run.rounds=12"], ["run.rounds=40", BITS(15.5 * MESSAGE)]),
    (["run.rounds=12"], ["run.rounds=40", BITS(12 * MESSAGE)]),  # met where it ended
    (["run.log_every=3", BITS(7 * MESSAGE)], ["run.log_every=3", "run.stop.grad_norm_sq=1e-12"]),
]


SMALLER = [["run.rounds=8"], ["run.rounds=40", BITS(6 * MESSAGE)]]
OTHERS = [["run.rounds=30", other] for other in ("run.seed=2", "run.log_every=2")]
ANEW = [(["run.rounds=12"], then) for then in SMALLER + OTHERS]


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("first", "then"), BUDGETS + ANEW)
def test_it_is_as_from_scratch(first, then, tmp_path, capfd):
    """A larger budget goes on; a smaller one, or another experiment, starts anew."""
    one, two = raised(tmp_path, first, then, DIANA.replace("rounds = 12", "rounds = 40"))
    assert two.earlier == ("" if (first, then) in ANEW else one.log)
    line = f"continuing from {one.log}, round "
    assert (line in capfd.readouterr().err) == bool(two.earlier)
    assert [point.earlier for point in read_summary(tmp_path / "logs")] == [two.earlier]


SCHEDULE = DIANA.replace("[comp", "schedule = { at = [0.5] }\n[comp")
OPTIMIZER = SIGN.replace('"diana"', '"ef21"\noptimizer = "1bit-adam"\nwarmup = 0.5')
WHY = ("method.warmup = 6, this run has 15", "method.warmup = 6, this run", "method.schedule.at = ")
CHANGED = dict(zip(WHY, (WARMUP, OPTIMIZER, SCHEDULE), strict=True))


@pytest.mark.parametrize(("why", "base"), CHANGED.items())
def test_what_depends_on_the_rounds_starts_anew_with_a_line(why, base, tmp_path, capfd):
    raised(tmp_path, ["run.rounds=12"], ["run.rounds=30"], base)
    output = capfd.readouterr().err
    assert why in output and output.count("starting over") == 1


def test_complete_logs_that_have_not_changed_are_not_read_again(tmp_path, monkeypatch):
    """What wrote them is compared, too; a file that has changed, or has no stamp, is read."""
    calls = calls_of(monkeypatch, reader, "attributes_of")
    file, logs = write(tmp_path, "run.seed = [1, 2]"), tmp_path / "logs"
    first, second = (Path(point.log) for point in run(file, logs))

    def read_by_sweep(*before):
        calls.clear()
        assert [p.before for p in run(file, logs)] == list(before)
        return {Path(path) for paths, names in calls if names == ATTRIBUTES for path in paths}

    def edit(log, name, value):
        with h5py.File(log, "r+") as opened:
            opened.attrs[name] = value

    assert read_by_sweep(True, True) == set()
    first.write_bytes(first.read_bytes())
    assert read_by_sweep(True, True) == set()
    said, stat = {str(first): os.stat(first)}, os.stat
    edit(first, "note", "mine")
    with monkeypatch.context() as patch:  # inode, size and times are as they were
        patch.setattr(os, "stat", lambda path, **how: said.get(path) or stat(path, **how))
        assert read_by_sweep(True, True) == {first}
    assert read_by_sweep(True, True) == set()
    (logs / "sweep.json").unlink()
    assert read_by_sweep(True, True) == {first, second}
    edit(second, "code", json.dumps({"elsewhere": "0" * 12}))
    assert second in read_by_sweep(True, False)
    with h5py.File(first, "r+") as opened:
        opened["rounds/loss"][1] *= 1.01
    assert "its rows have changed" in run(file, logs)[0].reason
