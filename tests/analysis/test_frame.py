"""What the user of a figure chooses: limits, labels, title, size, files."""

import sys

import pytest

from mpisim.analysis.api import plot
from mpisim.cli import main
from mpisim.core.errors import InputError


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"xlim": (1e4, 1e5)}, {"xlim": (1e4, 1e5)}),
        ({"ylim": (0.01, 2)}, {"ylim": (0.01, 2)}),
        ({"ylim": (-1, 2), "linear_y": True}, {"ylim": (-1, 2)}),
        ({"xlabel": "bits $b$", "ylabel": ""}, {"xlabel": "bits $b$", "ylabel": ""}),
        ({"title": "costs 5$"}, {"title": "costs 5$"}),
    ],
)
def test_choices_are_drawn(make_log, options, shown):
    panel = plot([make_log()], **options).axes[0]
    for name, value in shown.items():
        assert getattr(panel, f"get_{name}")() == pytest.approx(value)


def test_a_limit_may_be_left_to_the_data(make_log):
    free = plot([make_log()]).axes[0].get_ylim()
    assert plot([make_log()], ylim=(1e-9, None)).axes[0].get_ylim() == pytest.approx(
        (1e-9, free[1])
    )


def test_the_page_has_the_size_that_was_asked_for(make_log):
    logs = [make_log(), make_log(method="diana")]
    assert plot(logs, size=(5, 3)).get_size_inches().tolist() == [5, 3]


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


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--xlim", "a", "1"], "argument --xlim: invalid number or auto value: 'a'"),
        (["--size", "3"], "argument --size: expected 2 arguments"),
        (["--breakdown", "--xlim", "1", "2"], "--xlim: is not allowed with --breakdown"),
        (["--breakdown", "--size", "0", "2"], "--size: '0 2' is not allowed"),
    ],
)
def test_mistakes_on_the_command_line(make_log, tmp_path, capsys, flags, message):
    assert main(["plot", str(make_log()), *flags, "-o", str(tmp_path / "f.png")]) == 2
    assert message in capsys.readouterr().err


def test_bars_take_title_and_size(make_log, tmp_path):
    flags = ["--breakdown", "--size", "5", "3", "--title", "t", "-o", str(tmp_path / "f.svg")]
    assert main(["plot", str(make_log()), *flags]) == 0
    assert 'width="360pt"' in (tmp_path / "f.svg").read_text()


def test_help_says_what_the_band_is(capsys):
    with pytest.raises(SystemExit):
        main(["plot", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "band of one sample standard deviation of log y" in text


def test_without_matplotlib_there_is_one_line(make_log, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", str(make_log()), "-o", str(tmp_path / "f.png")]) == 2
    assert "a figure needs matplotlib: pip install 'mpisim[plot]'" in capsys.readouterr().err
