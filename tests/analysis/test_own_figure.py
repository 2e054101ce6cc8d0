"""One's own figure: existing axes, labels, colours, chosen runs; and LaTeX for a paper."""

import re

import numpy as np
import pytest

import mpisim
from mpisim.analysis import formatting
from mpisim.analysis.select import selected
from mpisim.cli import main
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read_all

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture
def grid(make_log):
    """Two methods with three steps and two seeds each; the larger, the faster, but for the last."""
    for method in ("marina", "diana"):
        for step, rate in (("0.1", 0.05), ("0.4", 0.3), ("1.6", 0.01)):
            for seed in (1, 2):
                path = make_log(method=method, stepsize=step, rate=rate, seed=seed)
    return path.parent


def axes_of(**rc):
    from matplotlib.figure import Figure

    with matplotlib.rc_context(rc):
        return Figure(figsize=(5, 4)).subplots(1, 2)


def test_axes_that_exist_keep_their_look(grid):
    before = dict(matplotlib.rcParams)
    left, right = axes_of(**{"axes.facecolor": "#eeeeee", "axes.spines.top": True})
    with matplotlib.rc_context({"lines.linewidth": 5.0}):
        figure = mpisim.plot(grid, "round", ax=right, best=True, labels=["A", "B"])
    assert figure is right.figure and not left.lines
    assert [line.get_label() for line in right.lines] == ["A", "B"]
    assert {line.get_linewidth() for line in right.lines} == {5.0}
    assert matplotlib.colors.to_hex(right.get_facecolor()) == "#eeeeee"
    assert right.spines["top"].get_visible() and right.get_title() == ""
    assert dict(matplotlib.rcParams) == before
    mpisim.plot(grid, "round")
    assert dict(matplotlib.rcParams) == before


def test_labels_and_colours_by_name(grid):
    panel = mpisim.plot(
        grid, best=True, labels={"DIANA": "theirs"}, colors={"DIANA": "#123456"}
    ).axes[0]
    looks = {line.get_label(): line.get_color() for line in panel.lines}
    assert looks.keys() == {"MARINA", "theirs"} and looks["theirs"] == "#123456"
    with pytest.raises(InputError, match="colors: unknown name 'DIANNA'; did you mean 'DIANA'"):
        mpisim.plot(grid, best=True, colors={"DIANNA": "red"})
    with pytest.raises(InputError, match=r"labels: .* it must be 2 values"):
        mpisim.plot(grid, best=True, labels=["one"])


def pixels(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].reshape(-1, 3)


def test_legend_and_band_follow_a_recoloured_line(grid):
    figure = mpisim.plot(grid, "round", best=True)
    panel = figure.axes[0]
    old = np.array(matplotlib.colors.to_rgb(panel.lines[0].get_color())) * 255
    assert (np.abs(pixels(figure) - old).max(axis=1) < 2).any()
    for line in panel.lines:
        line.set_color("#00ff00")
    shown = pixels(figure)
    assert not (np.abs(shown - old).max(axis=1) < 2).any()
    entries = panel.get_legend().legend_handles
    dashes = [line._unscaled_dash_pattern for line in panel.lines]
    assert [entry._unscaled_dash_pattern for entry in entries] == dashes
    assert {entry.get_color() for entry in entries} == {"#00ff00"}
    bands = list(panel.collections)
    assert bands and all(
        matplotlib.colors.to_hex(band.get_facecolor()[0]) == "#00ff00" for band in bands
    )


def test_best_keeps_the_best_step_of_each_setting(grid):
    logs = selected(read_all(sorted(grid.glob("*.h5"))), best="mean")
    assert {(log.attrs["method"], log.config["method"]["stepsize"]) for log in logs} == {
        ("marina", 0.4),
        ("diana", 0.4),
    }
    assert len(logs) == 4  # with all seeds


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("method.name == diana", 6),
        ("method.name != 'diana'", 6),
        ("method.stepsize >= 0.4", 8),
        ("seed=2", 6),
        ("compressor.k < 11", 12),
        ("status == done", 12),
        ("method.stepsize == 0.40", 4),
    ],
)
def test_where(grid, condition, count, capsys):
    assert len(selected(read_all(sorted(grid.glob("*.h5"))), [condition])) == count
    assert main(["show", str(grid), "--where", condition]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count + 1


def test_conditions_are_met_together(grid, tmp_path, capsys):
    where = ["--where", "seed == 1", "--where", "method.stepsize > 1"]
    assert main(["show", str(grid), *where]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    out = tmp_path / "rows.csv"
    assert main(["export", str(grid), *where, "-o", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 1 + 2 * 51
    page = tmp_path / "page.html"
    assert main(["plot", str(grid), "--best", "-o", str(page)]) == 0
    assert "4 runs: 4 done" in page.read_text()


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("compressor.K == 10", "no run has compressor.K; did you mean 'compressor.k'?"),
        ("compressor.k == 11", "no run meets it; compressor.k is 10"),
        ("compressor.k", "must be KEY SIGN VALUE"),
        ("method.name < 5", "no run meets it"),
    ],
)
def test_conditions_that_make_no_sense(grid, condition, said, capsys):
    assert main(["show", str(grid), "--where", condition]) == 2
    assert said in capsys.readouterr().err


def test_steps_that_are_out_are_named(make_log, capsys):
    for step in ("0.1", "0.2"):
        path = make_log(stepsize=step, attrs={"status": "diverged"})
    with pytest.raises(InputError, match="every step of every setting is out"):
        mpisim.plot(path.parent, best=True)
    assert "no step is left, seed 1 diverged" in capsys.readouterr().err


def test_many_curves_say_how_to_have_fewer(make_log, capsys):
    for i in range(15):
        path = make_log(stepsize=str(0.1 * (i + 1)))
    mpisim.plot(path.parent)
    assert capsys.readouterr().err == (
        "mpisim: 15 curves: --best keeps the best steps, --where some runs\n"
    )
    assert len(mpisim.plot(path.parent, best="final").axes[0].lines) == 1
    assert capsys.readouterr().err == ""


def test_latex_has_formulas_and_rules(grid, capsys):
    words = ["show", str(grid / "*.h5"), "--target", "grad_norm_sq=1e-2", "--latex"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert r"$\|\nabla f(x^k)\|^2 \le 10^{-2}$" in text and r"$\gamma = 0.4$" in text
    assert r"\toprule" in text and r"usepackage{booktabs}" in text and text.isascii()
    assert re.search(r"& \$16 \\pm 0\$ &", text)
    assert main([*words, "--siunitx"]) == 0
    text = capsys.readouterr().out
    assert r"\num{16+-0}" in text and "usepackage{booktabs,siunitx}" in text
    assert main([*words[:-1], "--siunitx"]) == 2
    assert "--siunitx: is not allowed without --latex" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("2.5e-07", r"$2.5 \cdot 10^{-7}$"),
        ("1e-07 ± 2e-08", r"$10^{-7} \pm 2 \cdot 10^{-8}$"),
        ("RandK (K = 10)", "RandK ($K = 10$)"),
        ("a_b & 50%", r"a\_b \& 50\%"),
        ("β₁ = 0.9", r"$\beta _1 = 0.9$"),
        ("version 1.2.3", "version 1.2.3"),
        (r"$f(x^k)$ over", "$f(x^k)$ over"),
    ],
)
def test_texts_in_latex(text, plain):
    assert formatting.tex(text) == plain
