"""MARINA, Figure 1, from logs made by hand; its grid of runs; the commands."""

import importlib.util
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from mpisim.analysis.papers import marina_fig1

from mpisim.analysis import papers
from mpisim.cli import main
from mpisim.core.errors import InputError
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import read
from mpisim.runs.sweep.grid import read as read_grid

RATES = {"marina": 1.05, "diana": 0.1, "vr-marina": 0.1, "vr-diana": 0.2}
COUNTS = (1, 5, 10)


@pytest.fixture
def folder(make_log, tmp_path):
    """Logs of the four methods, K in {1, 5, 10}, two seeds: VR-MARINA alone is the slower one."""
    for method, rate in RATES.items():
        for k in COUNTS:
            for seed in (1, 2):
                _log(make_log, method, k, seed, rate * (1 + k / 10))
    return tmp_path


def _log(make_log, method, k, seed, rate):
    rounds = np.arange(51)
    columns = {
        "bits_up": 5 * 32 * k * rounds + 5 * 32 * 113 * (rounds > 0) * ("marina" in method),
        "oracle_calls": 5 * 1624 * (rounds + 1),
    }
    path = make_log(method, f'name = "randk"\nk = {k}', seed, rate=rate, columns=columns)
    with h5py.File(path, "a") as file:
        file["workers/rows"] = np.full(5, 1624)
    return path


def test_axes(folder):
    log = read(folder / "log1.h5")  # MARINA, K = 1
    assert marina_fig1.EPOCHS.values(log) == pytest.approx(np.arange(51) + 1)
    bits = marina_fig1.BITS.values(log)
    assert bits[2] == 32 * 113 + 2 * 32
    assert marina_fig1.LATER_BITS.values(log)[:3].tolist() == [0, 32, 64]


def test_claims(folder):
    logs, left = papers.logs_of(folder)
    assert not left
    claims = {claim.claim: claim for claim in marina_fig1.claims(logs)}
    assert len(claims) == 3 * 4 + 4
    for k in COUNTS:
        rounds = claims[f"mushrooms, K = {k}: MARINA needs fewer rounds than DIANA"]
        assert rounds.holds and rounds.details["median_ratio"] == pytest.approx(10, rel=0.25)
        calls = claims[f"mushrooms, K = {k}: VR-MARINA needs fewer sample gradients than VR-DIANA"]
        assert not calls.holds and calls.details["median_ratio"] == pytest.approx(0.5, rel=0.1)
    assert claims["mushrooms: MARINA needs fewer rounds the larger K"].holds
    assert claims["mushrooms: MARINA needs fewer bits the smaller K"].holds


def test_bits_that_only_the_first_gradient_costs_are_told(folder):
    claims = {claim.claim: claim for claim in marina_fig1.claims(papers.logs_of(folder)[0])}
    # The level is DIANA's at round 50: MARINA is there at round 5, for 5 * 32 + 32 * 113 bits.
    bits = claims["mushrooms, K = 1: MARINA needs fewer bits than DIANA"]
    assert not bits.holds and "without the 32 d bits of g^0: 10 times" in bits.measured
    assert bits.details["ratio_without_start"] == pytest.approx(10)
    assert bits.details["median_ratio"] == pytest.approx(50 * 32 / (32 * 113 + 5 * 32))
    late = claims["mushrooms, K = 1: VR-MARINA needs fewer bits than VR-DIANA"]
    assert not late.holds and "g^0" not in late.measured


def test_figure(folder):
    logs, _ = papers.logs_of(folder)
    figure = marina_fig1.draw(logs)
    assert len(figure.axes) == 4
    assert [panel.get_xlabel() for panel in figure.axes] == [
        "round",
        "bits sent per worker",
        "epochs",
        "bits sent per worker",
    ]
    for panel in figure.axes:
        assert len(panel.lines) == 6 and panel.get_yscale() == "log"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["K = 1", "K = 5", "K = 10", "(VR-)MARINA", "(VR-)DIANA"]
    ends = sorted(line.get_ydata()[-1] for line in figure.axes[0].lines)
    rates = [RATES[method] * (1 + k / 10) for method in ("marina", "diana") for k in COUNTS]
    assert ends == pytest.approx(sorted(np.exp(-50 * rate) for rate in rates))


def test_commands(folder, tmp_path, capsys):
    out = tmp_path / "figures"
    assert main(["figure", "marina-fig1", "--logs", str(folder), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for suffix in (".png", ".pdf"):
        assert (out / f"marina-fig1{suffix}").stat().st_size > 10_000
    claims = json.loads((out / "marina-fig1.claims.json").read_text())
    assert f"{sum(c['holds'] for c in claims)} of {len(claims)} claims hold" in said
    assert main(["claims", str(out)]) == 0
    assert capsys.readouterr().out.strip() in said


def test_bad_commands(tmp_path, capsys):
    assert main(["figure", "marina-fig9"]) == 2
    assert "known: marina-fig1" in capsys.readouterr().err
    assert main(["figure", "marina-fig1", "--logs", str(tmp_path)]) == 2
    assert "no complete log" in capsys.readouterr().err
    assert main(["claims", str(tmp_path)]) == 2


def test_the_last_sweep_says_what_is_drawn(folder):
    paths = sorted(folder.glob("*.h5"))
    with h5py.File(paths[1], "a") as file:
        file.attrs["status"] = "diverged"
    rest = dict(settings={}, config="", status="done")
    points = [{"name": path.stem, "log": f"elsewhere/{path.name}", **rest} for path in paths[:3]]
    points.append({"name": "gone", "log": "elsewhere/gone.h5", **rest})
    (folder / "sweep.json").write_text(json.dumps({"points": points}))
    logs, left = papers.logs_of(folder)
    assert [log.path for log in logs] == [paths[0], paths[2]]
    assert len(left) == 2 and "diverged" in left[0] and "not run" in left[1]


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_grid(scale):
    """All four methods on all data sets, at least 5 seeds, with the published l2 = 1e-6 L."""
    file = Path(__file__).parents[2] / "run" / "marina-fig1.toml"
    folder, grid = read_grid(file, marina_fig1.SCALES[scale])
    assert folder == Path("logs/marina-fig1")
    assert {point["problem"]["data"] for point in grid} == set(marina_fig1.ORDER)
    assert {point["method"]["name"] for point in grid} == set(RATES)
    assert {point["compressor"]["k"] for point in grid} == set(COUNTS)
    assert len({point["run"]["seed"] for point in grid}) >= 5
    assert len(grid) == 7 * 4 * 3 * 5
    for point in grid:
        assert scale == "quick" or point["run"]["rounds"] == 40000
        assert parse(point).method.smoothness == "published"


@pytest.mark.real
@pytest.mark.parametrize("data", marina_fig1.ORDER)
def test_the_regulariser_is_the_published_one(data, need_data):
    need_data(data)
    file = Path(__file__).parents[2] / "run" / "marina-fig1.toml"
    point = next(p for p in read_grid(file, [])[1] if p["problem"]["data"] == data)
    problem = parse(point).problem
    problem.load(5, 0, 5, 1, np.dtype(np.float64))
    without = problem.published_norms().max() - problem.l2
    assert problem.l2 == pytest.approx(1e-6 * without, rel=1e-6)


@pytest.fixture
def runner(monkeypatch):
    """The module run/figure.py, in the folder that it is started from."""
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    spec = importlib.util.spec_from_file_location("figure", root / "run" / "figure.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_data_that_is_not_here_is_left_out(runner, monkeypatch, capsys):
    monkeypatch.setattr(runner, "here", lambda name: name in ("a9a", "duke"))
    folder, grid = runner.grid_of("marina-fig1", "paper")
    assert folder == Path("logs/marina-fig1")
    assert {point["problem"]["data"] for point in grid} == {"a9a", "duke"}
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all("left out" in line for line in lines)


def test_a_scale_that_does_not_exist(runner):
    with pytest.raises(InputError, match=r"SCALE=huge .* quick or paper"):
        runner.grid_of("marina-fig1", "huge")


def test_no_data_at_all(runner, monkeypatch):
    monkeypatch.setattr(runner, "here", lambda data: False)
    with pytest.raises(InputError, match=r"none of the data is here"):
        runner.grid_of("marina-fig1", "quick")
