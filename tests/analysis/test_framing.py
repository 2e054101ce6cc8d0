"""Framing beside payload bits: told where it matters, and counted with --framing."""

import csv
import io

import numpy as np
import pytest

import mpisim
from mpisim.analysis import panels
from mpisim.analysis.curves import Axis
from mpisim.analysis.curves import about_framing as note
from mpisim.analysis.run_groups import group_runs
from mpisim.cli import main
from mpisim.runs.log.reader import read, read_all

K = np.arange(51)
TARGET = ("--target", "grad_norm_sq=0.5")  # met after 7 rounds


@pytest.fixture
def make(make_log):
    """A function that makes a log of 5 workers, each with 320 bits a round up and 4000 down."""

    def make(framing_up, framing_down=0, **options):
        bits = {"bits_up": 5 * 320 * K, "bits_down": 5 * 4000 * K}
        framing = {"framing_bits_up": 5 * framing_up * K, "framing_bits_down": 5 * framing_down * K}
        return make_log(columns=bits | framing, **options)

    return make


def groups(*paths):
    return group_runs(read_all(paths))


def test_the_note_names_the_worst(make):
    small, some, most = make(16), make(32, method="diana"), make(144, method="ef21")
    assert note(groups(small)) == ""  # exactly 5%
    one = "framing adds 45% to the bits sent by EF21; --framing includes it"
    assert note(groups(small, most)) == one
    text = note(groups(small, some, most))
    assert text == one.replace("adds", "adds up to").replace("by EF21", "(EF21)")
    assert note(groups(make(800))).startswith("framing adds 250% to the bits sent by MARINA")
    assert note(groups(make(144, drop=("bits_up", "framing_bits_down")))) == ""
    assert note(groups(make(144, drop=("framing_bits_up", "framing_bits_down")))) == ""


def test_an_axis_with_framing(make):
    log = read(make(144, 400))
    for name, bits in (("bits_up", 464), ("bits_down", 4400), ("bits_total", 4864)):
        axis = Axis(name, log=True, framing=True)
        assert np.array_equal(axis.values(log), bits * K)
        assert axis.label(log) == Axis(name, log=True).label(log) + ", with framing"
    total = Axis("bits_up", True, per_worker=False, framing=True)
    assert np.array_equal(total.values(log), 5 * 464 * K)


def test_table(make, capsys):
    path = make(144)

    def printed(*flags):
        assert main(["show", str(path), *TARGET, *flags]) == 0
        return capsys.readouterr().out

    text = printed()
    assert "2.24" in text and text.endswith(
        "the bits sent by MARINA + RandK (K = 10); --framing includes it\n"
    )
    assert "\n\nframing adds 45%" in printed("--markdown")
    assert "% framing adds 45" in printed("--latex")
    text = printed("--framing")
    assert "kbit/worker with framing" in text and "3.248" in text and "adds" not in text
    [row] = csv.DictReader(io.StringIO(printed("--csv", "--framing")))
    assert float(row["bits_per_worker_with_framing"]) == 7 * 464
    [row] = csv.DictReader(io.StringIO(printed("--csv")))
    assert float(row["bits_per_worker"]) == 7 * 320
    [cost] = mpisim.table(path, 0.5, framing=True)
    assert cost.bits_per_worker == 7 * 464


@pytest.mark.parametrize(
    ("axis", "framing", "told"),
    [("bits_up", 144, True), ("bits_up", 16, False), ("paper_bits_up", 144, False)],
)
def test_a_panel_of_a_study_says_that_framing_is_left_out(make, axis, framing, told):
    logs = read_all([make(framing)])
    _, [[panel]] = panels.grid(1, 1)
    for colour in ("red", "blue"):
        panels.curve(panel, logs, Axis(axis, True), Axis("grad_norm_sq", True), colour, "-")
    texts = [text.get_text() for text in panel.texts]
    assert texts == ["without framing, which adds over 5%"] * told
