"""The bars of `mpisim plot --breakdown`."""

import numpy as np
import pytest

from mpisim.analysis import breakdown
from mpisim.analysis.breakdown import per_round
from mpisim.cli import main
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read, read_all
from tests.handmade_logs import PHASES

MS = 1e-3 * np.arange(1, 9)  # of each phase in a round of the hand-made log


def draw(logs, *options):
    return breakdown.draw(read_all(logs), *options)


def widths(figure):
    """Shape (phases, bars), in the unit of the figure."""
    return np.array([[bar.get_width() for bar in own] for own in figure.axes[0].containers])


def test_a_round_is_the_mean_over_rounds_without_what_is_before_round_0(make_log):
    start = {f"time_{p}": 5.0 + ms * np.arange(51) for p, ms in zip(PHASES, MS, strict=True)}
    for columns in ({}, start):
        assert per_round(read(make_log(columns=columns))) == pytest.approx(MS)
    every = {"round": np.array([0, 10, 20, 25]), "time_encode": np.array([0, 1.0, 1.5, 5.0])}
    others = {name: np.zeros(4) for name in start if name not in every}
    short = {n: np.ones(4, int) for n in ("bits_up", "bits_down", "loss", "grad_norm_sq")}
    found = per_round(read(make_log(rounds=3, columns=others | every | short)))
    assert found.tolist() == [0, 0, 5.0 / 25, 0, 0, 0, 0, 0]


def test_bars_are_stacked_means_over_seeds(make_log):
    slow = {f"time_{p}": 3 * ms * np.arange(51) for p, ms in zip(PHASES, MS, strict=True)}
    logs = [make_log(seed=1), make_log(seed=2, columns=slow), make_log(method="diana")]
    figure = draw(logs)
    panel, found = figure.axes[0], widths(figure)
    assert found == pytest.approx(np.array([2e3 * MS, 1e3 * MS]).T)
    ends = np.array([[bar.get_x() for bar in own] for own in panel.containers]) + found
    assert ends == pytest.approx(np.cumsum(found, axis=0))
    assert [own.get_label() for own in panel.containers] == list(PHASES)
    assert [label.get_text() for label in panel.get_yticklabels()] == ["MARINA", "DIANA"]
    assert panel.get_xlabel().startswith("ms ") and figure.get_supxlabel() == ""
    assert [text.get_text() for text in panel.texts] == ["72 ms", "36 ms"]
    assert len({own[0].get_facecolor() for own in panel.containers}) == len(PHASES)
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(PHASES)


def test_a_log_without_a_round_is_one_line(make_log):
    columns = {"round": np.zeros(1), "loss": np.ones(1)}
    with pytest.raises(InputError, match=r"log1\.h5: no round to draw; the log has 1 rows"):
        draw([make_log(rounds=0, columns=columns)])
    with pytest.raises(InputError, match="no column 'time_encode'"):
        draw([make_log(drop=("time_encode",))])


def test_command(make_log, tmp_path):
    log, output = str(make_log()), tmp_path / "b.png"
    assert main(["plot", log, "--breakdown", "-o", str(output)]) == 0
    assert output.read_bytes().startswith(b"\x89PNG")
