"""Curves, bars, legends and frames of figures."""

import io
import sys
from itertools import product

import numpy as np
import pytest

from mpisim.analysis import style
from mpisim.analysis.api import plot
from mpisim.analysis.curves import Axis, Epochs, over_seeds, points
from mpisim.analysis.plot import draw_bars, per_round
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read, read_all
from tests.handmade_logs import PHASES
from tests.helpers import some_of

ROUND = Axis("round", log=False)
Y = Axis("grad_norm_sq", log=True)


def test_mean_is_geometric_and_band_one_deviation_of_the_log(make_log):
    logs = [read(make_log(seed=i, rate=r)) for i, r in enumerate((0.1, 0.2, 0.6))]
    curve = over_seeds(logs, ROUND, Y)
    k = np.arange(51)
    np.testing.assert_allclose(curve.y, np.exp(-0.3 * k), rtol=1e-12)
    deviation = np.exp(np.std([0.1, 0.2, 0.6], ddof=1) * k)
    for ratio in (curve.high / curve.y, curve.y / curve.low):
        np.testing.assert_allclose(ratio, deviation, rtol=1e-10)


def test_runs_with_other_x_meet_on_a_common_grid(make_log):
    """y = x^-2 whatever x a run was logged at: the mean must be the same law where both are."""
    bits = [5 * factor * 100 * np.arange(1, 52) for factor in (1.0, 1.7)]
    columns = [{"bits_up": b, "grad_norm_sq": (b / 5) ** -2.0} for b in bits]
    logs = [read(make_log(seed=seed, columns=values)) for seed, values in enumerate(columns)]
    curve = over_seeds(logs, Axis("bits_up", log=True), Y)
    assert curve.x[0] == pytest.approx(100) and curve.x[-1] == pytest.approx(5100)
    np.testing.assert_allclose(curve.y, 1 / (curve.x * np.maximum(curve.x, 170)), rtol=1e-9)


def test_the_mean_begins_with_the_run_that_begins_first(make_log):
    """Seconds before row 0 are 1, 3 and 9. Until then a run is at its start; later it falls by 1
    every second, so each is max(0, x - start) below its start of 100."""
    starts, k = np.array([1.0, 3.0, 9.0]), np.arange(21)
    drop = [f"time_{phase}" for phase in PHASES if phase != "other"]
    columns = [{"grad_norm_sq": 100.0 - k, "time_other": start + k} for start in starts]
    paths = [make_log(seed=i, rounds=20, columns=c, drop=drop) for i, c in enumerate(columns)]
    logs = read_all(paths)
    for log_x in (True, False):
        curve = over_seeds(logs, Axis("seconds", log=log_x), Axis("grad_norm_sq", log=False))
        assert (curve.x[0], curve.x[-1]) == (pytest.approx(1), pytest.approx(21))
        fallen = np.maximum(0, curve.x[:, None] - starts)
        atol = 0.1 if log_x else 1e-9  # between rows, curves are straight in log x
        np.testing.assert_allclose(curve.y, 100 - fallen.mean(axis=1), atol=atol)
        assert curve.y[0] == curve.high[0] == 100


def test_the_mean_has_every_row_also_where_x_stands_still(make_log):
    """Rounds in which nobody sends are rows, too."""
    columns = {"bits_up": 5000 * (np.arange(51) // 3 + 1)}
    logs = [read(make_log(seed=s, rate=0.1 * s, columns=columns)) for s in (1, 3)]
    curve = over_seeds(logs, Axis("bits_up", log=True), Y)
    np.testing.assert_allclose(curve.y, np.exp(-0.2 * np.arange(51)), rtol=1e-12)


def test_runs_have_no_mean_over_a_column_that_falls(make_log, tmp_path, command):
    logs = [make_log(seed=s, columns={"loss": 1 / (1 + s * np.arange(51))}) for s in (1, 2)]
    line = command("plot", *logs, "--x", "loss", "-o", tmp_path / "f.png", code=2)
    assert "--x: loss falls, so runs have no mean over it; draw one seed, or over a" in line
    loss = Axis("loss", log=True)
    assert len(over_seeds(read_all(logs[:1]), loss, Y).x) == 51


def test_points_that_cannot_be_shown_are_left_out(make_log):
    values = np.array([1.0, 0.0, np.nan, -1.0, np.inf, 0.5])
    log = read(make_log(rounds=5, columns={"grad_norm_sq": values}))
    assert points(log, ROUND, Y)[0].tolist() == [0, 5]
    assert points(log, ROUND, Axis("grad_norm_sq", False))[0].tolist() == [0, 1, 3, 5]


def test_epochs(make_log):
    """8,120 gradients a round, of five workers with 200 rows each."""
    epochs = Epochs("oracle_calls", log=False, text="epochs").values(read(make_log()))
    assert epochs == pytest.approx(8.12 * np.arange(1, 52))


def test_a_mean_is_over_seeds_alone(make_log):
    logs = [read(make_log(seed=1)), read(make_log(seed=3, attrs={"ranks": 7}))]
    assert np.array_equal(over_seeds(logs * 2, ROUND, Y).high, over_seeds(logs, ROUND, Y).high)
    with pytest.raises(InputError, match="differ in ranks: 2 and 7"):
        over_seeds(logs, Axis("seconds", log=True), Y)


def panel(logs, **options):
    """The axes that are drawn."""
    return plot(logs, **options).axes[0]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_axes_labels_scales_and_legend(make_log):
    axes = panel([make_log(), make_log(method="diana"), make_log(method="diana", seed=2)])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "bits sent per worker"
    assert texts(axes.get_legend()) == ["MARINA", "DIANA"]
    assert axes.get_title() == "RandK (K = 10)\nnon-convex loss on mushrooms, 5 workers"
    assert len(axes.lines) == 2 and len(axes.collections) == 1  # one band, of the two seeds
    attacked = make_log(compressor='name = "randk"\nk = 10\n[attack]\nshare = 0.2')
    shown = texts(panel([make_log(), attacked]).get_legend())
    assert shown == ["MARINA + RandK (K = 10)", "share = 0.2"]


def test_where_methods_cross_compressors_colour_says_the_compressor(make_log):
    pairs = product(("marina", "diana"), (1, 5, 10))
    paths = [make_log(method, f'name = "randk"\nk = {k}') for method, k in pairs]
    lines = panel(paths).lines
    assert [line.get_color() for line in lines] == [*style.COLOURS[:3]] * 2
    assert len({line.get_linestyle() for line in lines[:3]}) == 1
    assert lines[0].get_linestyle() != lines[3].get_linestyle()


@pytest.mark.parametrize(
    ("name", "magic"), [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_files_are_written_and_repeat_exactly(make_log, tmp_path, name, magic):
    log, outputs = make_log(), [tmp_path / folder / name for folder in ("one", "two")]
    first, second = (plot(log, output=one) and one.read_bytes() for one in outputs)
    assert first.startswith(magic) and first == second


def test_a_text_of_a_log_that_is_no_formula_is_a_text(make_log, tmp_path, command):
    evil = r"$\input{x}^^$"
    logs = make_log(compressor=f"name = '{evil}'"), make_log(method="diana")
    command("plot", *logs, "-o", tmp_path / "labels.png")
    command("plot", *logs, "--breakdown", "-o", tmp_path / "bars.png")
    command("plot", make_log(attrs={"title": evil}), "-o", tmp_path / "x.png")
    assert style.with_formulas(evil) == r"\$\input{x}^^\$" and style.with_formulas("$x$") == "$x$"


UNLIKE = (
    ("marina", 'name = "randk"\nk = 10'),
    ("diana", 'name = "qsgd"\ns = 4'),
    ("ef21", 'name = "topk"\nk = 10'),
    ("gd", 'name = "identity"'),
    ("cd-adam", 'name = "scaled-sign"'),
    ("dcgd", 'name = "natural"'),
    ("pp-marina", 'name = "block-quant-plus"\nblocks = 7\ncodec = "entropy"'),
    ("ef21-2way", 'name = "permk"'),
    ("vr-marina-online", 'name = "bernoulli"\np = 0.25'),
)


CONDITION = '{{ theory = {}.0, condition = "Theorem 2 with all of the constants of the problem" }}'


@some_of(2, size=[None, (8.0, 6.0)], long=[False, True], count=[2, 5, 9])
def test_unlike_curves_are_on_the_page(make_log, count, long, size):
    """All of the legend, and a panel that is worth looking at; with long names, of one method."""
    logs = []
    for i, (method, compressor) in enumerate(UNLIKE[:count]):
        how = {"stepsize": CONDITION.format(i + 1)} if long else {"method": method}
        logs.append(make_log(compressor=compressor, rate=0.1 + 0.02 * i, **how))
    figure = plot(logs, size=size)
    figure.draw_without_rendering()
    legend = figure.axes[0].get_legend() or figure.legends[0]
    assert len(texts(legend)) == count
    box, page = legend.get_window_extent(), figure.bbox
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1
    area = figure.axes[0].get_window_extent()
    assert area.width >= 0.3 * page.width and area.height >= 80
    content = io.BytesIO()
    figure.savefig(content, format="raw", dpi=100)
    width, height = (int(side) for side in figure.bbox.size)
    pixels = np.frombuffer(content.getvalue(), np.uint8).reshape(height, width, 4)
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 255).all()  # nothing is cut off there


def test_a_page_without_room_is_refused(make_log):
    logs = [make_log(rounds=5, stepsize=1 / (i + 1)) for i in range(30)]
    with pytest.raises(InputError, match="--size 2 2: has no room for a legend of 30 curves"):
        plot(logs, size=(2, 2))


def test_the_command_takes_them_all(make_log, tmp_path, command):
    output = tmp_path / "f.pdf"
    flags = ["--xlim", "auto", "1e5", "--ylim", "1e-3", "1", "--xlabel", "x", "--ylabel", "y"]
    flags += ["--title", "t", "--size", "4", "3", "--svg", "--out", output]
    assert command("plot", make_log(), *flags).split() == [str(output), str(tmp_path / "f.svg")]
    assert output.read_bytes().startswith(b"%PDF")
    picture = (tmp_path / "f.svg").read_text()
    assert 'width="288pt"' in picture and 'height="216pt"' in picture


def test_without_matplotlib_there_is_one_line(make_log, tmp_path, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = command("plot", make_log(), "-o", tmp_path / "f.png", code=2)
    assert "a figure needs matplotlib: pip install 'mpisim[plot]'" in line


MS = 1e-3 * np.arange(1, 9)  # of each phase in a round of the hand-made log


def draw(logs, *options):
    return draw_bars(read_all(logs), *options)


def widths(figure):
    """Shape (phases, bars), in the unit of the figure."""
    return np.array([[bar.get_width() for bar in bars] for bars in figure.axes[0].containers])


def test_a_round_is_the_mean_over_rounds_without_what_is_before_round_0(make_log):
    start = {f"time_{p}": 5.0 + ms * np.arange(51) for p, ms in zip(PHASES, MS, strict=True)}
    for columns in ({}, start):
        assert per_round(read(make_log(columns=columns))) == pytest.approx(MS)
    rare = read(make_log(rounds=3, columns=dict.fromkeys(start, np.zeros(4))))
    rare.columns["round"] = np.array([0, 10, 20, 25])
    rare.columns["time_encode"] = np.array([0, 1.0, 1.5, 5.0])
    assert per_round(rare).tolist() == [0, 0, 5.0 / 25, 0, 0, 0, 0, 0]


def test_bars_are_stacked_means_over_seeds(make_log):
    slow = {f"time_{p}": 3 * ms * np.arange(51) for p, ms in zip(PHASES, MS, strict=True)}
    logs = [make_log(seed=1), make_log(seed=2, columns=slow), make_log(method="diana")]
    figure = draw(logs)
    panel, result = figure.axes[0], widths(figure)
    assert result == pytest.approx(np.array([2e3 * MS, 1e3 * MS]).T)
    ends = np.array([[bar.get_x() for bar in bars] for bars in panel.containers]) + result
    assert ends == pytest.approx(np.cumsum(result, axis=0))
    assert [bars.get_label() for bars in panel.containers] == list(PHASES)
    assert [label.get_text() for label in panel.get_yticklabels()] == ["MARINA", "DIANA"]
    assert panel.get_xlabel().startswith("ms ") and figure.get_supxlabel() == ""
    assert [text.get_text() for text in panel.texts] == ["72 ms", "36 ms"]
    assert len({bars[0].get_facecolor() for bars in panel.containers}) == len(PHASES)
    [legend] = figure.legends
    assert texts(legend) == list(PHASES)


def test_a_run_that_has_not_begun_is_left_out(make_log, capfd):
    """It may have sent nothing, which no logarithmic axis can show."""
    waiting = make_log(seed=3, rounds=0, columns={"bits_up": np.zeros(1)})
    logs = [make_log(), make_log(seed=2), waiting]
    for x in ("bits_up", "round"):
        assert len(panel(logs, x=x).lines[0].get_xdata()) == 51
    assert widths(draw(logs)).shape == (8, 1)
    line = f"mpisim: passed over: {waiting}: has no round to draw\n"
    assert capfd.readouterr().err == 3 * line


def test_a_log_without_a_round_is_one_line(make_log):
    columns = {"round": np.zeros(1), "loss": np.ones(1)}
    with pytest.raises(InputError, match=r"log1\.h5: no round to draw; the log has 1 rows"):
        draw([make_log(rounds=0, columns=columns)])
    with pytest.raises(InputError, match="no column 'time_encode'"):
        draw([make_log(drop=("time_encode",))])
