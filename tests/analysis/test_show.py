"""`mpisim show`: the page of a log, and the list of a folder's runs."""

import csv
import io
import re

import h5py
import numpy as np
import pytest

from mpisim.analysis import labels
from mpisim.analysis.show import in_order, show_text
from mpisim.cli import main
from mpisim.runs.log.reader import read
from tests.helpers import run_tables, table


def test_says_what_was_run_and_how_it_ended(make_log):
    text = show_text(make_log(title="a title"))
    for part in (
        *("a title", "mpisim run e.toml", "non-convex loss on mushrooms, d = 113", "MARINA"),
        *("0.125, MARINA, Theorem 2.1", "RandK (K = 10)", "5 on 2 ranks, shared layout"),
        "done; started 2020-01-01T00:00:00+00:00, took 1 min 05 s",
        *("50 of 50 (51 rows logged)", "82824 per worker"),
    ):
        assert part in text
    shares = [float(s) for s in re.findall(r"([\d.]+)%", text)]  # of the time, by phase
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert shares == sorted(shares, reverse=True)
    assert re.search(r"other +0\.400 s +22\.2%", text)


def test_says_who_lies_and_what_the_server_does(tmp_path):
    tables = table({"name": "gd", "stepsize": 0.1}, rounds=1)
    tables["server"] = {"aggregate": "median", "buckets": 2}
    tables["attack"] = {"name": "sign-flip", "share": 0.34}
    run_tables(tables, log := tmp_path / "x.h5")
    text = show_text(log)
    assert re.search("^server +median, buckets = 2$", text, re.M)
    assert re.search("^attack +sign-flip, share = 0.34; f is over the good workers$", text, re.M)


def elapsed(text):
    """The lines of the elapsed time: {name: seconds}."""
    block = text[text.index("\nelapsed") :]
    return {name: float(s) for name, s in re.findall(r"^  ([a-z-]+) +(-?[\d.]+) s ", block, re.M)}


def test_what_elapsed_is_the_sum_of_its_parts(make_log):
    parts = {"elapsed": 64.5, "setup": 2.25, "rehearsal": 0.25, "evaluation": 59.875}
    parts |= {"waiting": 0.5, "before": 0.0}
    text = show_text(make_log(attrs={f"seconds_{name}": s for name, s in parts.items()}))
    shown = {"set-up": 2.25, "rehearsal": 0.25, "method": 1.8, "evaluation": 59.875, "rest": 0.325}
    assert elapsed(text) == pytest.approx(shown) and sum(shown.values()) == 64.5
    assert "elapsed                     1 min 04 s" in text
    assert "waiting, 0.500 s of rank 0 for slower ranks, is not added" in text
    assert not re.search("^(server|attack) |resumed|more ranks than cores", text, re.M)


def test_the_parts_of_a_real_run_add_up(tmp_path):
    """On one rank, whose clock is the slowest path, to the last digit; also where it resumes."""
    log = tmp_path / "x.h5"
    sends_before_round_0 = {"name": "smooth", "inner": {"name": "randk", "k": 5}}
    logistic = {"name": "logistic", "l2": 1e-3}
    marina = {"name": "marina", "stepsize": 0.1, "p": 0.5}
    tables = table(marina, sends_before_round_0, problem=logistic)
    for resumed in (False, True):
        tables["run"]["rounds"] = 30 if resumed else 20
        run_tables(tables, log, resume=resumed)
        attrs = read(log).attrs
        parts = elapsed(show_text(log))
        assert parts["rest"] == 0 and min(parts.values()) >= 0
        assert sum(parts.values()) == pytest.approx(attrs["seconds_elapsed"], abs=3e-3)
        method = read(log).column("seconds")
        before = method[read(log).columns["round"] == 20][0] if resumed else 0.0
        assert attrs["seconds_before"] == pytest.approx(before, abs=1e-9)
        assert ("resumed" in attrs) == resumed


def test_a_log_without_rows_or_optional_columns(make_log):
    assert "no row yet" in show_text(make_log(rounds=-1))
    text = show_text(make_log(drop=("paper_bits_up", "oracle_calls", "time_other")))
    assert "paper" not in text.replace("paper's", "") and "oracle" not in text


@pytest.fixture
def folder(make_log):
    """Three runs, one of them in a folder below."""
    steps = ("{ theory = 16.0 }", "{ theory = 4.0 }", "{ theory = 4.0 }")
    for seed, step in enumerate(steps, start=1):
        status = "diverged" if seed == 1 else "done"
        path = make_log(seed=seed, stepsize=step, rate=0.1 * seed, attrs={"status": status})
    (path.parent / "below").mkdir()
    path.rename(path.parent / "below" / "deep.h5")
    return path.parent


@pytest.fixture
def rows(folder, command):
    """rows(*flags): those of the folder."""

    show = "show", folder, "--csv"
    return lambda *flags: list(csv.DictReader(io.StringIO(command(*show, *flags))))


def test_rows_have_what_varies_and_how_runs_ended(rows):
    deep, *others = rows()
    assert [row["log"] for row in (deep, *others)] == ["below/deep.h5", "log1.h5", "log2.h5"]
    ends = ["status", "round", "loss", "grad_norm_sq", "bits_per_worker", "seconds"]
    settings = ["method.stepsize", "run.seed"]
    assert list(deep) == ["log", *settings, *ends, "label", "n", "seed", "stepsize"]
    assert [deep[name] for name in settings + ends[:1]] == ["4 × theory", "3", "done"]
    assert (deep["round"], deep["bits_per_worker"]) == ("50", str(320.0 * 50 + 4000))
    assert float(deep["grad_norm_sq"]) == np.exp(-0.1 * 3 * 50)
    assert float(deep["seconds"]) == pytest.approx(1.8)


def test_a_key_that_only_some_runs_of_a_method_have_varies():
    some = {"method": {"name": "fedavg", "participants": 5}}
    every, other = ({"method": {"name": name}} for name in ("fedavg", "gd"))
    assert labels.columns([some, every, other]) == {
        "method.name": ["fedavg", "fedavg", "gd"],
        "method.participants": [5, None, None],
    }
    assert labels.settings([some, other]).fixed == {"method.participants": 5}
    attacked = some | {"attack": {"share": 0.2}, "run": {"wire": "float64"}}
    assert {*labels.settings([some, attacked]).varied} == {"attack.share", "run.wire"}


def test_order(rows):
    for flags, seeds in (
        *(("", "312"), ("--reverse", "213"), ("--sort=run.seed", "123")),
        *(("--sort=grad_norm_sq", "321"), ("--sort=grad_norm_sq --reverse", "123")),
        *(("--sort=status", "132"), ("--sort=method.stepsize", "321")),  # 4 before 16
    ):
        assert [row["run.seed"] for row in rows(*flags.split())] == list(seeds), flags


def test_order_of_cells_of_all_kinds():
    cells = ["b", None, 2.0, float("nan"), "16 × theory", "4.5 × theory", "2026.11.27 gd.h5", 1]
    result = [row[0] for row in in_order(["x"], [[cell] for cell in cells], "x", False)]
    first = [1, 2.0, "4.5 × theory", "16 × theory", float("nan")]
    assert str(result) == str([*first, "2026.11.27 gd.h5", "b", None])


def test_what_cannot_be_read_is_passed_over(folder, capsys):
    (folder / "broken.h5").write_bytes(b"nothing")
    (folder / "empty.h5").touch()
    assert main(["show", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    why = {"broken.h5": "not an HDF5 file", "empty.h5": "the file is empty"}
    lines = [f"mpisim: passed over: {folder}/{name}: not a log: {why[name]}" for name in why]
    assert err.splitlines() == lines


def test_a_folder_without_any_good_log_is_a_mistake(tmp_path, command):
    (tmp_path / "broken.h5").write_bytes(b"nothing")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1.0
    for words in (["show"], ["plot", "-o", f"{tmp_path}/a.html"], ["show", "--target=loss=1"]):
        *passed_over, last = command(*words, tmp_path, code=2).splitlines()
        assert "broken.h5: not a log" in passed_over[0] and len(passed_over) == 2
        assert "other.h5: not an mpisim log" in passed_over[1]
        assert last == "mpisim: none of the 2 files is a log that can be read"
        assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_list_fits_the_terminal(width, folder, monkeypatch, command):
    (folder / "log1.h5").rename(folder / f"{'long' * 10}.h5")
    monkeypatch.setattr("mpisim.cli.logs.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = command("show", folder).splitlines()
    assert max(map(len, lines)) <= width and len(lines) in (4, 5)
    assert lines[0].split()[:2] == ["log", "stepsize"] and "…" in "".join(lines)
    assert "grad_norm_sq" in lines[0]
    left_out = {"bits_per_worker", "loss", "seconds", "round", "seed"} - set(lines[0].split())
    assert ("--csv)" in lines[-1]) == bool(left_out) and (width < 80) <= bool(left_out)
