"""`mpisim show` of a folder: its runs, and the order in which logs are read."""

import csv
import io

import h5py
import numpy as np
import pytest

from mpisim.analysis.show import in_order
from mpisim.cli import main


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
    return lambda *flags: list(
        csv.DictReader(io.StringIO(command("show", folder, "--csv", *flags)))
    )


def test_rows_have_what_varies_and_how_runs_ended(rows):
    result = rows()
    assert [row["log"] for row in result] == ["below/deep.h5", "log1.h5", "log2.h5"]
    settings = ["method.stepsize", "run.seed"]
    ends = ["status", "round", "loss", "grad_norm_sq", "bits_per_worker", "seconds"]
    assert list(result[0]) == ["log", *settings, *ends, "label", "n", "seed", "stepsize"]
    deep = result[0]
    assert [deep[name] for name in settings + ends[:1]] == ["4 × theory", "3", "done"]
    assert (deep["round"], deep["bits_per_worker"]) == ("50", str(320.0 * 50 + 4000))
    assert float(deep["grad_norm_sq"]) == np.exp(-0.1 * 3 * 50)
    assert float(deep["seconds"]) == pytest.approx(1.8)


def test_order(rows):
    for flags, seeds in (
        *(("", "312"), ("--reverse", "213"), ("--sort=run.seed", "123")),
        *(("--sort=grad_norm_sq", "321"), ("--sort=grad_norm_sq --reverse", "123")),
        *(("--sort=status", "132"), ("--sort=method.stepsize", "321")),  # 4 before 16
    ):
        assert [row["run.seed"] for row in rows(*flags.split())] == list(seeds), flags


def test_order_of_cells_of_all_kinds():
    cells = ["b", None, 2.0, float("nan"), "16 × theory", "4 × theory", "a", 1]
    result = [row[0] for row in in_order(["x"], [[cell] for cell in cells], "x", False)]
    assert str(result) == str([1, 2.0, "4 × theory", "16 × theory", float("nan"), "a", "b", None])


def test_what_cannot_be_read_is_passed_over(folder, capsys):
    (folder / "broken.h5").write_bytes(b"nothing")
    (folder / "empty.h5").touch()
    assert main(["show", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert err.splitlines() == [
        f"mpisim: passed over: {folder}/broken.h5: not a log: not an HDF5 file",
        f"mpisim: passed over: {folder}/empty.h5: not a log: the file is empty",
    ]


def test_a_folder_without_any_good_log_is_a_mistake(tmp_path, command):
    (tmp_path / "broken.h5").write_bytes(b"nothing")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1.0
    for words in (["show"], ["plot", "-o", f"{tmp_path}/a.html"], ["show", "--target=loss=1"]):
        lines = command(*words, tmp_path, code=2).splitlines()
        assert len(lines) == 3 and not (tmp_path / "a.html").exists()
        assert "broken.h5: not a log" in lines[0] and "other.h5: not an mpisim log" in lines[1]
        assert lines[-1] == "mpisim: none of the 2 files is a log that can be read"


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
