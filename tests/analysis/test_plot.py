"""The picture itself: what is on it, and which files can be written."""

import sys
import warnings

import numpy as np
import pytest

from mpisim.analysis import style
from mpisim.analysis.api import plot
from mpisim.cli import console, main


def panel(logs, **options):
    """The axes that are drawn."""
    return plot(logs, **options).axes[0]


def test_axes_labels_scales_and_legend(make_log):
    axes = panel([make_log(), make_log(method="diana"), make_log(method="diana", seed=2)])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "bits sent per worker"
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["MARINA", "DIANA"]
    assert axes.get_title() == "RandK (K = 10)\nnon-convex loss on mushrooms, 5 workers"
    assert len(axes.lines) == 2 and len(axes.collections) == 1  # one band, of the two seeds


def test_where_methods_cross_compressors_colour_says_the_compressor(make_log):
    paths = [
        make_log(method=method, compressor=f'name = "randk"\nk = {k}')
        for method in ("marina", "diana")
        for k in (1, 5, 10)
    ]
    lines = panel(paths).lines
    assert [line.get_color() for line in lines] == [*style.COLOURS[:3]] * 2
    assert len({line.get_linestyle() for line in lines[:3]}) == 1
    assert lines[0].get_linestyle() != lines[3].get_linestyle()


@pytest.mark.parametrize(
    ("name", "magic"), [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_files_are_written_and_repeat_exactly(make_log, tmp_path, name, magic):
    logs, output = [make_log(), make_log(method="ef21")], tmp_path / "new" / name
    plot(logs, output=output)
    first = output.read_bytes()
    plot(logs, output=output)
    assert first.startswith(magic) and output.read_bytes() == first


def test_a_text_of_a_log_that_is_no_formula_is_a_text(make_log, tmp_path):
    evil = r"$\input{x}^^$"
    logs = make_log(compressor=f"name = '{evil}'"), make_log(method="diana")
    assert main(["plot", *map(str, logs), "-o", str(tmp_path / "labels.png")]) == 0
    assert main(["plot", *map(str, logs), "--breakdown", "-o", str(tmp_path / "bars.png")]) == 0
    assert main(["plot", str(make_log(attrs={"title": evil})), "-o", str(tmp_path / "x.png")]) == 0
    assert style.with_formulas(evil) == r"\$\input{x}^^\$" and style.with_formulas("$x$") == "$x$"


def test_numbers_in_logs_give_no_warnings_of_numpy(make_log, tmp_path, monkeypatch):
    odd = np.array([np.nan, np.inf, -np.inf, 1.7e308])
    columns = {"loss": odd, "grad_norm_sq": odd, "time_compute": np.full(4, np.inf)}
    log = str(make_log(rounds=3, columns=columns))
    plot = ["plot", log, "-o", str(tmp_path / "x.html")]
    for words, code in (["show", log], 0), (plot, 0), (["verify", log], 1):
        monkeypatch.setattr(sys, "argv", ["mpisim", *words])
        with warnings.catch_warnings(), pytest.raises(SystemExit) as end:
            console()
        assert end.value.code == code
