"""One's own figure: existing axes, labels, colours, chosen runs; and LaTeX for a paper."""

import re

import pytest

import mpisim
from mpisim.analysis.log_files import selected
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


def test_best_keeps_the_best_step_of_each_setting(grid):
    logs = selected(read_all(sorted(grid.glob("*.h5"))), best="mean")
    assert {(log.attrs["method"], log.config["method"]["stepsize"]) for log in logs} == {
        ("marina", 0.4),
        ("diana", 0.4),
    }
    assert len(logs) == 4  # with all seeds


def test_where(grid, command):
    logs = read_all(sorted(grid.glob("*.h5")))
    for condition, count in (
        *(("method.name == diana", 6), ("method.name != 'diana'", 6), ("seed=2", 6)),
        *(("method.stepsize >= 0.4", 8), ("method.stepsize == 0.40", 4)),
        *(("compressor.k < 11", 12), ("status == done", 12)),
    ):
        assert len(selected(logs, [condition])) == count, condition
    lines = command("show", grid, "--where", "method.stepsize == 0.40").splitlines()
    assert len(lines) == 4 + 1


def test_latex_has_formulas_and_rules(grid, command):
    words = ["show", grid / "*.h5", "--target", "grad_norm_sq=1e-2"]
    text = command(*words, "--latex")
    assert r"$\|\nabla f(x^k)\|^2 \le 10^{-2}$" in text and r"$\gamma = 0.4$" in text
    assert r"\toprule" in text and r"usepackage{booktabs}" in text and text.isascii()
    assert re.search(r"& \$16 \\pm 0\$ &", text)
    text = command(*words, "--latex", "--siunitx")
    assert r"\num{16+-0}" in text and "usepackage{booktabs,siunitx}" in text
    line = command(*words, "--siunitx", code=2)
    assert "--siunitx: is not allowed without --latex" in line
