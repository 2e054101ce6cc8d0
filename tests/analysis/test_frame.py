"""What the user of a figure chooses: limits, labels, title, size, files."""

import sys

from mpisim.cli import main


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
