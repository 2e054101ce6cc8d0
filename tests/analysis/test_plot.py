"""The picture itself: what is on it, and which files can be written."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from mpisim.analysis import style
from mpisim.analysis.api import plot
from mpisim.cli import console, main
from mpisim.core.errors import InputError


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


def test_the_uniform_iterate_is_an_axis(make_log):
    axes = panel([make_log()], y="mean_grad_norm_sq")
    assert "mean of" in axes.get_ylabel() and "j < k" in axes.get_ylabel()
    assert axes.lines[0].get_ydata()[2] == pytest.approx((1 + np.exp(-0.1)) / 2)


@pytest.mark.parametrize(
    ("options", "scales"),
    [
        ({"x": "round"}, ("linear", "log")),
        ({"x": "round", "linear_x": False}, ("log", "log")),
        ({"x": "seconds", "linear_x": True, "linear_y": True}, ("linear", "linear")),
    ],
)
def test_scales(make_log, options, scales):
    axes = panel([make_log()], **options)
    assert (axes.get_xscale(), axes.get_yscale()) == scales
    assert axes.get_legend() is None


def test_titles(make_log):
    path = make_log(title="MARINA on mushrooms")
    assert panel([path]).get_title() == "MARINA on mushrooms"
    other = make_log(method="gd", compressor='name = "identity"')
    assert panel([path, other]).get_title() == "non-convex loss on mushrooms, 5 workers"
    assert panel([path], title="mine").get_title() == "mine"


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jpg", r"must end in \.png or \.pdf or \.svg"),
        ("a", r"\.png or \.pdf"),
    ],
)
def test_bad_outputs_are_refused_before_reading(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        plot([tmp_path / "missing.h5"], output=tmp_path / name)


def test_unwritable_output_is_one_line(make_log, tmp_path):
    (tmp_path / "a.png").mkdir()
    (tmp_path / "file").touch()
    for output in (tmp_path / "a.png", tmp_path / "file" / "b.png"):
        with pytest.raises(InputError, match=r"\.png: cannot be written"):
            plot([make_log()], output=output)


def test_command(make_log, tmp_path, capsys):
    output = tmp_path / "f.png"
    flags = ["--x", "round", "--y", "loss", "--linear-y", "-o", str(output)]
    assert main(["plot", str(make_log()), *flags]) == 0
    assert output.is_file() and capsys.readouterr().out.strip() == str(output)


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


def test_matplotlib_and_mpi_load_only_when_needed():
    code = (
        "import sys, mpisim.cli.plot, mpisim.analysis.plot, mpisim.analysis.show;"
        "assert not {'matplotlib', 'mpi4py'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("limits", "labels"),
    [
        ((0.12, 5.0), ["0.3", "1", "3"]),
        ((2.0, 6.5), ["3", "6"]),
        ((2e6, 3e7), ["3M", "10M", "30M"]),
    ],
)
def test_short_logarithmic_axes_have_few_plain_labels(limits, labels):
    from matplotlib.figure import Figure

    panel = Figure().subplots()
    panel.set_xscale("log")
    panel.set_xlim(*limits)
    style.log_ticks(panel.xaxis, *limits)
    shown = [t.get_text() for t in panel.get_xticklabels() if limits[0] <= t.get_position()[0]]
    assert [text for text in shown if text in labels] == labels
    assert not any(t.get_text() for t in panel.get_xticklabels(minor=True))


def test_seconds_of_runs_with_more_ranks_than_cores_have_a_note(make_log):
    paths = [make_log(), make_log(method="diana", attrs={"oversubscribed": 1})]
    for x, noted in (("seconds", True), ("time_encode", True), ("bits_up", False)):
        figure = plot(paths, x=x)
        assert (figure.get_supxlabel() != "") == noted
    assert plot(paths, x="seconds").get_supxlabel().startswith("1 of 2 runs had more ranks than")
