"""`mpisim show`: costs of targets over seeds, and framing beside payload bits."""

import csv
import io
import re

import numpy as np
import pytest

import mpisim
from mpisim.analysis import formatting, panels
from mpisim.analysis.api import table
from mpisim.analysis.costs import Spread, parse
from mpisim.analysis.curves import Axis
from mpisim.analysis.curves import about_framing as note
from mpisim.analysis.run_groups import group_runs
from mpisim.compressors import COMPRESSORS
from mpisim.core.errors import InputError
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from mpisim.runs.labels import PARAMETERS
from mpisim.runs.log.reader import read, read_all

K = np.arange(51)


@pytest.fixture
def logs(make_log):
    """MARINA with two seeds, which reach 0.01 after 24 and 47 rounds, and DIANA, which does not."""
    diana = make_log(method="diana", rate=0.05)
    return [make_log(rate=0.2), make_log(rate=0.1, seed=2), diana]


@pytest.fixture
def rows(command):
    """rows(*words): of `mpisim show`."""
    return lambda *words: list(csv.DictReader(io.StringIO(command("show", *words, "--csv"))))


def test_means_and_deviations_over_seeds(logs, rows):
    marina, diana = rows(*logs, "--target", "grad_norm_sq=1e-2")
    assert (marina["name"], marina["runs"], marina["reached"]) == ("MARINA", "2", "2")
    k = np.array([24, 47])
    spent = {"round": k, "bits_per_worker": 320 * k + 4000, "seconds": 0.036 * k}
    for name, values in spent.items():
        assert float(marina[name]) == pytest.approx(values.mean())
        assert float(marina[f"{name}_deviation"]) == pytest.approx(values.std(ddof=1))
    assert (diana["runs"], diana["reached"], diana["round"]) == ("1", "0", "")
    assert float(diana["worst_end"]) == pytest.approx(np.exp(-2.5))
    marina, _ = rows(*logs, "--target", "grad_norm_sq=1e-5")
    assert float(marina["worst_end"]) == pytest.approx(np.exp(-5))


def test_equal_values_deviate_by_0():
    """The mean of equal shares of a second is rounded."""
    values = np.array([0.1, 0.1, 0.1])
    assert np.std(values, ddof=1) > 0 and str(Spread.of(values)) == "0.1 ± 0"
    assert Spread.of(np.array([0.1, 0.1, 0.1 + 1e-9])).deviation > 1e-10


def test_a_row_has_no_setting_in_which_its_runs_differ(make_log, rows):
    """Here the number of rounds, which sets no runs apart."""
    logs = [make_log(rounds=50 + 10 * s, seed=s, rate=0.2) for s in (1, 2)]
    marina, _ = rows(*logs, make_log("diana"), "--target", "grad_norm_sq=1e-2")
    assert marina["runs"] == "2" and "run.rounds" not in marina and "run.seed" not in marina


def test_a_run_that_has_no_row_yet_does_not_reach_the_target(logs, make_log, rows, command):
    logs += [make_log(seed=3, rounds=-1, attrs={"status": "running"})]
    page = logs[0].with_name("page.html")
    command("plot", *logs, "-o", page, "--target", "grad_norm_sq=1e-2")
    cells = re.findall(r"<td>(.*?)</td>", page.read_text())
    assert "2 of 3 runs reach it: ended at nan, 1 not complete" in cells
    marina, _ = rows(*logs, "--target", "grad_norm_sq=1e-2")
    assert (marina["runs"], marina["reached"], marina["at_start"]) == ("3", "2", "0")


def test_latex_has_every_letter_of_our_names():
    texts = [*PARAMETERS.values(), *(pair.label for pair in METHODS.values())]
    for kind in COMPRESSORS.values():
        texts += [kind.title, *(kind.letters or {}).values()]
    texts += [kind.title for kind in PROBLEMS.values()]
    for text in [*texts, "a_b & 50% of $5 #1 {x} ~ ^ \\"]:
        assert formatting.table([""], [[text]], "latex").isascii(), text
    assert r"a\_b\textbackslash{}" in formatting.table([""], [["a_b\\"]], "latex")


@pytest.mark.parametrize(
    ("text", "shown", "formula"),
    [
        ("grad_norm_sq=1e-6", "grad_norm_sq ≤ 1e-06", r"$\|\nabla f(x^k)\|^2 ≤ 1e-06$"),
        (" loss >= 0.5", "loss ≥ 0.5", "$f(x^k) ≥ 0.5$"),
        ("mean_grad_norm_sq=0.5", "mean_grad_norm_sq ≤ 0.5", "$j < k$ $≤ 0.5$"),
        ("test_accuracy=0.9", "test_accuracy ≥ 0.9", None),
        ("train_accuracy<=0.9", "train_accuracy ≤ 0.9", None),
        ("bits_up>=1e6", "bits_up ≥ 1e+06", None),
    ],
)
def test_a_column_has_a_direction(text, shown, formula):
    """A label may be a formula, or a text with formulas."""
    assert str(parse(text)) == shown
    assert formula is None or parse(text).formula().endswith(formula)
    assert parse(shown.replace("≤", "<=").replace("≥", ">=")) == parse(text)


def test_an_accuracy_is_met_from_above(make_log, rows, command):
    rising = [{"test_accuracy": np.minimum(0.9, k * K)} for k in (0.1, 0.05)]
    logs = [make_log(seed=s, columns=values) for s, values in enumerate(rising)]
    [row] = rows(*logs, "--target", "test_accuracy=0.8")
    assert (row["reached"], row["round"]) == ("2", "12.0")  # 8 and 16
    assert (row["target"], row["sign"], row["at_start"]) == ("0.8", ">=", "0")
    logs.append(make_log(seed=3, columns={"test_accuracy": 0.01 * K}))
    text = command("show", *logs, "--target", "test_accuracy=0.8")
    assert "test_accuracy ≥ 0.8" in text and "2 of 3 runs reach it: ended at 0.5" in text
    [cost] = table(logs[:2], 0.8, "test_accuracy")
    assert cost.costs["round"].mean == 12 and cost.runs == 2
    [cost] = table(logs[:2], "test_accuracy<=0.04")
    assert cost.costs["round"].mean == 0
    with pytest.raises(InputError, match="bits_up grows with the rounds: it must be bits_up>=1000"):
        table(logs, 1e6, "bits_up")
    with pytest.raises(InputError, match="simulated_seconds grows with the rounds"):
        parse("simulated_seconds=10")
    assert len(table(logs[:2], np.float32(0.1), "loss")) == 1


def test_a_target_met_at_the_start_is_stated(make_log, rows, command):
    show = ("show", make_log(), make_log(seed=2, columns={"loss": 2 / (1 + K)}), "--target")
    assert "  0 ± 0, met at the start  " in command(*show, "loss=3")
    assert "  0.5 ± 0.7071, met at the start by 1 of 2  " in command(*show, "loss=1")
    assert "at the start" not in command(*show, "loss=0.5")
    text = command(*show, "loss>=0.5", "--latex")
    assert r"$f(x^k) \ge 0.5$" in text and "met at the start" in text
    [row] = rows(*show[1:], "loss=1")
    assert (row["sign"], row["at_start"]) == ("<=", "1")


@pytest.fixture
def make(make_log):
    """A function that makes a log of 5 workers, each with 320 bits a round up and 4000 down."""

    def make(up, down=0, **options):
        per_worker = {"bits_up": 320, "bits_down": 4000}
        per_worker |= {"framing_bits_up": up, "framing_bits_down": down}
        return make_log(columns={name: 5 * b * K for name, b in per_worker.items()}, **options)

    return make


def test_the_note_names_the_worst(make):
    def groups(*paths):
        return group_runs(read_all(paths))

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


def test_table(make, rows, command):
    path = make(144)
    show = path, "--target", "grad_norm_sq=0.5"  # met after 7 rounds
    text = command("show", *show)
    end = "the bits sent by MARINA + RandK (K = 10); --framing includes it\n"
    assert "2.24" in text and text.endswith(end)
    assert "\n\nframing adds 45%" in command("show", *show, "--markdown")
    assert "% framing adds 45" in command("show", *show, "--latex")
    text = command("show", *show, "--framing")
    assert "kbit/worker with framing" in text and "3.248" in text and "adds" not in text
    [row] = rows(*show, "--framing")
    assert float(row["bits_per_worker_with_framing"]) == 7 * 464
    [cost] = mpisim.table(path, 0.5, framing=True)
    assert cost.costs["bits_per_worker"].mean == 7 * 464


@pytest.mark.parametrize(
    ("axis", "framing", "message"),
    [("bits_up", 144, True), ("bits_up", 16, False), ("paper_bits_up", 144, False)],
)
def test_a_panel_of_a_study_says_that_framing_is_left_out(make, axis, framing, message):
    _, [[panel]] = panels.grid(1, 1)
    axes = Axis(axis, True), Axis("grad_norm_sq", True)
    panels.curve(panel, read_all([make(framing)]), *axes, "red", "-")
    panels.dress(panel, *axes, "bits")
    assert panel.get_xlabel() == "bits" + "\nwithout framing (over 5%)" * message
