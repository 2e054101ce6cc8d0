"""What the user of a figure chooses: limits, labels, title, size, files."""

import sys

import pytest

from mpisim.analysis.api import plot
from mpisim.cli import main
from mpisim.core.errors import InputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xlim": (0, 1)}, r"--xlim: '0 1' is not allowed.* --linear-x"),
        ({"xlim": (2, 1)}, r"--xlim: .*the smaller one first"),
        ({"ylim": (None, float("nan")), "linear_y": True}, r"--ylim: 'auto nan'"),
        ({"size": (0, 3)}, r"--size: '0 3' is not allowed.* between 1 and 100 inches"),
        ({"size": (float("nan"), 3)}, r"--size"),
        ({"title": r"$\nothing$"}, r"--title: .*mathtext"),
        ({"ylabel": r"$x^"}, None),  # one dollar sign is text
    ],
)
def test_what_cannot_be_drawn_is_one_line(make_log, options, message):
    if message is None:
        assert plot([make_log()], **options).axes[0].get_ylabel() == options["ylabel"]
        return
    with pytest.raises(InputError, match=message):
        plot([make_log()], **options)


def test_the_command_takes_them_all(make_log, tmp_path, capsys):
    output = tmp_path / "f.pdf"
    flags = ["--xlim", "auto", "1e5", "--ylim", "1e-3", "1", "--xlabel", "x", "--ylabel", "y"]
    flags += ["--title", "t", "--size", "4", "3", "--svg", "--out", str(output)]
    assert main(["plot", str(make_log()), *flags]) == 0
    assert capsys.readouterr().out.split() == [str(output), str(tmp_path / "f.svg")]
    assert output.read_bytes().startswith(b"%PDF")
    picture = (tmp_path / "f.svg").read_text()
    assert 'width="288pt"' in picture and 'height="216pt"' in picture


def test_without_matplotlib_there_is_one_line(make_log, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", str(make_log()), "-o", str(tmp_path / "f.png")]) == 2
    assert "a figure needs matplotlib: pip install 'mpisim[plot]'" in capsys.readouterr().err
