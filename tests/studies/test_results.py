"""Results on record: files, settings, provenance, pages, and the gallery."""

import dataclasses
import io
import json
import os
import re
import signal
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing
from PIL import Image

from mpisim.analysis import labels as settings_of_runs
from mpisim.analysis import results as files
from mpisim.analysis import results_page as page
from mpisim.analysis.claims import Claim, Verdict, comparisons, of_seeds, state, undecided_at_edge
from mpisim.analysis.claims.judging import again, moved_by
from mpisim.analysis.repeat import Comparison, repeat
from mpisim.analysis.results import Provenance, provenance_of
from mpisim.analysis.study import load
from mpisim.cli.study import _verify
from mpisim.comm.communicators import OneProcess
from mpisim.core.errors import InputError
from mpisim.runs.sweep.plan import plan
from mpisim.runs.sweep.points import Point, write_summary
from tests.helpers import before_row, some_of
from tools.gallery import GALLERY, gallery

ROOT = Path(__file__).parents[2]
SECONDS = 12.0  # that the runs of a comparison took
LONG = {"fleet-seconds", "fleet-countries"}  # the runs with five seeds take 15 s, the others one
FIVE = r"([<>] )?\S+ times \(95%: \S+ to \S+, [5-9] seeds"
HOLDS, FAILS, CROSSES, TIE, UNDECIDED = Verdict
CLAIM = Claim("A beats B", "A is better", "Section 1", "2 times", HOLDS)
OF = Provenance(
    **{"study": "mine", "study_title": "A title.", "figure": "fig1", "title": "A against B"},
    scale="quick",
    runs={"done": 5, "diverged": 1},
    seconds=7300.0,
    settings=settings_of_runs.Settings({"run.seed": [1, 2]}, {"run.rounds": 10, "compressor.k": 1}),
    machines=["2 cores, haswell"],
    run_commits=["0123456789ab"],
    commit="0123456789ab with changes",
)


def result(claims=(CLAIM,), **changes):
    return files.Result(dataclasses.replace(OF, **changes), claims)


@pytest.fixture
def study(tmp_path, monkeypatch, command):
    """The template's study; its logs are here."""
    monkeypatch.chdir(tmp_path)
    command("new", "study", "mine")
    grid = Path("mine/fig1.toml")
    grid.write_text(grid.read_text().replace("logs/mine-fig1", "."))
    return load(Path("mine"))


@pytest.mark.slow
def test_a_figure_goes_on_record_at_two_scales(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    command("new", "study", "papers/mine")
    for name, rounds, fewer in (("fig1.toml", " = 200", " = 2"), ("figures.py", "=2000", "=3")):
        path = Path("papers/mine", name)
        path.write_text(path.read_text().replace(f"rounds{rounds}", f"rounds{fewer}"))
    for scale in ("quick", "paper"):
        output = command("study", "papers/mine", "fig1", "--record", "--scale", scale)
    folder = Path("papers/mine/results")
    kinds = product(("quick", "paper"), ("png", "claims.json", "provenance.json"))
    names = {"README.md", *(f"fig1.{scale}.{suffix}" for scale, suffix in kinds)}
    assert {path.name for path in folder.iterdir()} == names
    assert str(folder / "fig1.paper.png") in output and str(folder / "README.md") in output
    quick, paper = (one.provenance for one in files.read(folder))
    assert (quick.scale, paper.scale, quick.runs) == ("quick", "paper", {"done": 10})
    assert [one.settings.fixed["run.rounds"] for one in (quick, paper)] == [2, 3]
    assert not any(str(tmp_path) in path.read_text() for path in folder.glob("*[!g]"))
    with Image.open(folder / "fig1.quick.png") as drawn, Image.open("figures/mine-fig1.png") as new:
        assert drawn.mode == "P" and drawn.size == new.size
    page = (folder / "README.md").read_text()
    assert "A verdict is firm if" in page and "docs/" not in page
    (folder / "README.md").unlink()
    command("study", "papers/mine", "--record")
    assert (folder / "README.md").read_text() == page
    one = folder / "fig1.quick.claims.json"
    name = re.findall(r'"(diana-[^"]*)": "', one.read_text())[0]
    one.write_text(re.sub(rf'("{name}": )"\w', r'\1"x', one.read_text()))
    output = command("study", "papers", "--verify", "2", "--seed", "7", code=1)
    assert "2 of 2 comparisons drawn by seed 7" in output and output.count("every digit as on") == 1
    assert f"{name}: other rows than on record" in output
    output = command("study", "--claims", "papers/mine/results", "figures")
    heads = [line for line in output.splitlines() if line.startswith("mine")]
    assert [head.partition(":")[0] for head in heads] == ["mine, quick", "mine, paper", "mine"]


@some_of(1, name=sorted(p.parent.name for p in ROOT.glob("run/*/results")))
def test_a_comparison_on_record_has_the_same_digits_again(name, seed, monkeypatch, tmp_path):
    """One that takes seconds, and is drawn anew each time."""
    monkeypatch.chdir(tmp_path)
    study = load(ROOT / "run" / name)
    try:
        lines, same, _ = repeat(study, 1, seed, OneProcess(), seconds=SECONDS)
    except InputError as error:  # data or PyTorch that is not here
        pytest.skip(str(error))
    if "0 of" in lines[0]:
        pytest.skip(lines[0])
    assert same, lines


@pytest.fixture
def on_record(tmp_path, monkeypatch):
    """on_record({name: ranks}): a study with a run for each, and the names of their logs."""

    def make(ranks):
        tables = {
            "problem": {"name": "quadratic", "dimension": 10, "workers": 4},
            "method": {"name": "gd", "stepsize": 0.1},
        }
        points = [tables | {"run": {"rounds": 3, "ranks": number}} for number in ranks.values()]
        names = {one: plan(tmp_path, [p], 2)[0].name for one, p in zip(ranks, points, strict=True)}
        grid = SimpleNamespace(points=lambda *_: (tmp_path, points, None))
        record = [Comparison(one, "fig1", "quick", {name: "x"}, 1.0) for one, name in names.items()]
        monkeypatch.setattr("mpisim.analysis.repeat.recorded", lambda _: record)
        figure = SimpleNamespace(source=SimpleNamespace(parts=lambda: [grid]))
        return SimpleNamespace(folder=tmp_path, figure=lambda _: figure), names

    return make


def test_comparisons_that_ask_for_more_ranks_are_not_drawn(on_record):
    """Two of three ask for two ranks; a job of one runs the third, whatever the seed."""
    study, names = on_record({"a": 2, "b": 1, "c": 2})
    for draw in range(4):
        lines, same, _ = repeat(study, 2, draw, OneProcess())
        assert "1 of 3 comparisons drawn" in lines[0] and not same
        assert lines[0].endswith("; 2 passed over, whose runs ask for more ranks")
        assert lines[1:] == [f"  b: {names['b']}: other rows than on record"]


def test_a_stopped_run_is_not_other_rows(on_record, monkeypatch, capsys):
    """A signal ends the command: nothing is said of the digits, and no other run starts."""
    study, _ = on_record({"a": 1, "b": 1})
    rows = []
    before_row(monkeypatch, lambda k: k == 2 and os.kill(os.getpid(), signal.SIGTERM))
    before_row(monkeypatch, rows.append)
    lines, same, stopped = repeat(study, 2, 1, OneProcess())
    assert stopped == "terminated" and same and len(lines) == 2
    assert lines[1] in ("  a: stopped", "  b: stopped") and rows.count(2) == 1
    monkeypatch.setattr("mpisim.cli.study._studies", lambda _: [study, study])
    arguments = SimpleNamespace(folder=None, seed=1, verify=2)
    assert _verify(arguments, OneProcess()) == 143
    assert capsys.readouterr().out.count("comparisons drawn") == 1


def test_of_a_long_comparison_some_runs_are_drawn(tmp_path, monkeypatch):
    runs, drawn = dict.fromkeys("abcdef", "x"), []
    record = [Comparison("long", "", "", runs, 25.0), Comparison("too long", "", "", runs, 61.0)]
    monkeypatch.setattr("mpisim.analysis.repeat.recorded", lambda _: record)
    tables = "mpisim.analysis.repeat._tables"
    monkeypatch.setattr(tables, lambda _, one, ranks: drawn.append(tuple(one.runs)) or {})
    for draw in range(9):
        lines, *_ = repeat(SimpleNamespace(folder=tmp_path), 2, draw, OneProcess())
        assert lines[0].endswith("; of 1 a run takes longer than 60 s")
    assert {len(names) for names in drawn} == {2} and len(set(drawn)) > 1


def test_what_cannot_be_recorded_is_one_line(command, study):
    for words, message in (
        ("study . --record", "--record: . holds studies; name one of them"),
        ("study mine --record", "mine/results: nothing is on record; `mpisim study mine F"),
        ("study mine --record --ranks", "--ranks: not allowed with argument --record"),
        ("study --claims mine/results", "mine/results: no *.claims.json there"),
    ):
        assert message in command(*words.split(), code=2)
    files.write(Path("mine/results"), result(), b"")
    damaged = Path("mine/results/fig1.quick.provenance.json")
    for text in ("{}", "[", '{"figure": "fig1"}'):
        damaged.write_text(text)
        message = "fig1.quick.provenance.json: not the provenance of a figure; record it again"
        assert message in command("study", "mine", "--record", code=2)


def test_provenance_of_runs(study, make_log):
    """All runs count, also those that are not drawn; the seconds of all starts are added up."""
    haswell = {"cores": 1, "cpu": "haswell", "git_commit": "0123456789abcdef", "host": "lab7"}
    one = make_log(attrs={"seconds_elapsed": 10.0, "seconds_before": 2.5, **haswell})
    other = make_log(attrs={"seconds_elapsed": 1.0, "status": "diverged"}, seed=2)
    killed = make_log(attrs={"seconds_elapsed": float("nan"), "status": "running"})
    names = [one.name, other.name, killed.name, "never.h5"]
    write_summary(Path(), [Point(name, name, {}, "", "done") for name in names])
    actual = dataclasses.asdict(provenance_of(study, study.figure("fig1"), "quick", 99.0))
    assert actual["runs"] == {"done": 1, "diverged": 1, "running": 1, "not run": 1}
    assert actual["seconds"] == 13.5
    settings, machines = actual["settings"], actual["machines"]
    assert settings["varied"] == {"run.seed": [1, 2]} and settings["fixed"]["run.rounds"] == 50
    assert "title" not in settings["fixed"] and "lab7" not in json.dumps(actual)
    assert "1 core, haswell" in machines and len(machines) == 2
    assert actual["run_commits"] == ["0123456789ab", "not known"]
    assert (actual["study"], actual["title"]) == ("mine", "MARINA against DIANA")
    assert actual["study_title"] == "One line on what the study shows."
    assert actual["commit"].endswith(("with changes", "not known"))  # git does not keep the study


def test_a_picture_is_small_and_the_same_again():
    drawing = Drawing(figsize=(1.5, 1))
    drawing.subplots().imshow(np.random.default_rng(1).random((30, 30, 3)))
    large = files.small_png(drawing)
    assert large == files.small_png(drawing) and len(large) <= files.LIMIT
    small = files.small_png(drawing, len(large) - 1)
    sizes = [Image.open(io.BytesIO(content)).size for content in (large, small)]
    assert sizes == [(300, 200), (240, 160)] and len(small) < len(large)
    with pytest.raises(InputError, match=r"at 100 dots an inch; it must have at most 1,000 to go"):
        files.small_png(drawing, 1000)


def test_the_page_shows_scales_side_by_side():
    second = dataclasses.replace(CLAIM, measured="0.5 | times", verdict=FAILS)
    third = dataclasses.replace(CLAIM, claim="C", verdict=TIE, measured="1.0 < 1.03")
    item = settings_of_runs.Settings({"run.seed": [1, 2]}, {"run.rounds": 99})
    text = page.page(
        [
            result(claims=[CLAIM, second]),
            result(scale="paper", claims=[second, third, CLAIM], settings=item, seconds=90.0),
            result(figure="fig2", claims=[]),
        ]
    )
    lines = [re.sub(" +", " ", line) for line in text.splitlines()]
    for row in (
        "| claims | quick | paper |",
        "| | ![fig1](fig1.quick.png) | ![fig1](fig1.paper.png) |",
        "| varied | `run.seed`: 1, 2 | as quick |",
        "| time | 2.0 h | 90 s |",
        "| runs | 5 done, 1 diverged | 5 done, 1 diverged |",
        # The first claim of this text stands beside the first one, the second beside the second.
        "| A beats B | **holds**: 2 times | **does not hold**: 0.5 \\| times |",
        "| A beats B | **does not hold**: 0.5 \\| times | **holds**: 2 times |",
        "| C | | **tie**: 1.0 \\< 1.03 |",
    ):
        assert row in lines
    assert "as quick, but `run.rounds`: 99; no `compressor.k` |" in text
    assert text.count('> "A is better" (Section 1)') == 1
    assert "\n## fig2\n" in text


def test_what_is_on_record_is_current():
    """The pages in run/ and the gallery are what the code makes of the files; else make gallery."""
    for folder in sorted((ROOT / "run").glob(f"*/{files.FOLDER}")):
        actual = files.of_study(folder.parent)
        assert (folder / page.PAGE).read_text() == page.page(actual), folder
        link = f"{files.FOLDER}/{page.PAGE}"
        assert link in (folder.parent / page.PAGE).read_text(), "the study's README links to it"
        for one in actual:
            assert one.provenance.study == folder.parent.name
            assert 0 < (folder / one.picture).stat().st_size <= files.LIMIT, one.picture
    assert (ROOT / GALLERY).read_text() == gallery(ROOT)


def test_ten_seeds_where_five_do_not_decide():
    """At quick, where a run takes less than ten seconds in the mean."""
    few = set()
    for file in ROOT.glob("run/*/results/*.quick.claims.json"):
        of = json.loads(file.with_name(file.name.replace("claims", "provenance")).read_text())
        if of["seconds"] < 10 * sum(of["runs"].values()):
            claims = json.loads(file.read_text())
            pieces = [piece for claim in claims for piece in claim["evidence"]]
            open_ = [one["measured"] for one in pieces if one["verdict"] == "not decided"]
            if any(re.match(FIVE, text) for text in open_):
                few.add(f"{of['study']}-{of['figure']}")
    assert few == LONG


def test_ratios_without_targets_are_comparisons_too():
    """They count, an edge stays on record, and alternatives move them."""
    ratios = [1.03, 1.04, 1.05, 1.04, 1.06]
    one = of_seeds("", ratios, "fewer")
    assert one.verdict is Verdict.HOLDS and again(one) == one
    assert len(comparisons([state("", "", "", [one])])) == 1
    assert moved_by(state("", "", "", [one])) == ["5% from 1", "10% from 1"]
    edge = undecided_at_edge(one, ["8 is the largest step"])
    assert edge.verdict is Verdict.UNDECIDED and again(edge) == edge
    long = of_seeds("", ratios[:3], "fewer", 3)
    assert long.verdict is again(long).verdict is Verdict.HOLDS
    assert of_seeds("", ratios[:3], "fewer").verdict is Verdict.UNDECIDED
