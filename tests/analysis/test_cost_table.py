"""`mpisim table`: costs of targets, with the spread over seeds."""

import csv
import io

import numpy as np
import pytest

from mpisim.analysis import latex
from mpisim.analysis.link_model import parse as links
from mpisim.analysis.modelled import ModelledSeconds
from mpisim.analysis.targets import parse
from mpisim.cli import main
from mpisim.compressors import COMPRESSORS
from mpisim.core.errors import InputError
from mpisim.methods.names import METHODS
from mpisim.problems import PROBLEMS
from mpisim.runs.labels import PARAMETERS
from mpisim.runs.log.reader import read

K = np.arange(51)


def output(capsys, *arguments):
    assert main(["table", *map(str, arguments)]) == 0
    return capsys.readouterr().out.rstrip("\n")


@pytest.fixture
def logs(make_log):
    """MARINA with two seeds, which reach 0.01 after 24 and 47 rounds, and DIANA, which does not."""
    return [
        make_log(rate=0.2),
        make_log(rate=0.1, seed=2),
        make_log(method="diana", rate=0.05),
    ]


def test_means_and_deviations_over_seeds(logs, capsys):
    text = output(capsys, *logs, "--target", "grad_norm_sq=1e-2", "--csv")
    marina, diana = csv.DictReader(io.StringIO(text))
    assert marina["name"] == "MARINA" and (marina["runs"], marina["reached"]) == ("2", "2")
    rounds = np.array([24, 47])
    for name, values in {
        "round": rounds,
        "bits_per_worker": 320 * rounds + 4000,
        "seconds": 0.036 * rounds,
    }.items():
        assert float(marina[name]) == pytest.approx(values.mean())
        assert float(marina[f"{name}_deviation"]) == pytest.approx(values.std(ddof=1))
    assert (diana["runs"], diana["reached"], diana["round"]) == ("1", "0", "")
    assert float(diana["worst_end"]) == pytest.approx(np.exp(-2.5))


def test_a_mean_needs_all_seeds(logs, capsys):
    text = output(capsys, *logs, "--target", "grad_norm_sq=1e-3")  # after 35 rounds, and never
    assert "1 of 2 runs reach it: ended at 0.0067" in text
    assert "not reached: ended at 0.082" in text


def test_text_for_a_terminal(logs, capsys):
    lines = output(capsys, *logs, "--target", "grad_norm_sq=1e-2", "--target", "loss=0.5")
    lines = lines.splitlines()
    assert lines[:2] == ["RandK (K = 10)", "non-convex loss on mushrooms, 5 workers"]
    assert lines[3].startswith("MARINA  grad_norm_sq ≤ 0.01     2  ")
    assert lines[3].endswith("  35.5 ± 16.26  15.36 ± 5.204  1.278 ± 0.5855")
    assert lines[6].split()[:6] == ["DIANA", "loss", "≤", "0.5", "1", "1"]


def test_seconds_on_a_network(logs, capsys):
    flags = ["--target", "grad_norm_sq=1e-2", "--network", "1mbit,2ms"]
    text = output(capsys, logs[0], *flags, "--csv")
    [row] = csv.DictReader(io.StringIO(text))
    axis = ModelledSeconds("seconds", True, links=links("1mbit,2ms"))
    assert row["network"] == "1mbit,2ms" and row["round"] == "24.0"
    assert float(row["seconds"]) == pytest.approx(axis.values(read(logs[0]))[24])
    assert "modelled seconds, 1mbit,2ms" in output(capsys, logs[0], *flags)


def test_a_run_that_diverged_ends_at_no_number(make_log, capsys):
    paths = [make_log(), make_log(seed=2, columns={"loss": np.full(51, np.nan)})]
    text = output(capsys, *paths, "--target", "loss=0.5")
    assert "1 of 2 runs reach it: ended at nan" in text


def test_markdown(logs, capsys):
    head, rule, *rows = output(
        capsys, *logs, "--target", "grad_norm_sq=1e-2", "--markdown"
    ).splitlines()
    assert head == "|  | until | runs | rounds | kbit/worker | seconds |"
    assert set(rule) == set("|- ") and len(rows) == 2 and rows[0].startswith("| MARINA |")


def test_latex_is_ascii(make_log, capsys):
    logs = [make_log(stepsize=step) for step in ("0.5", "{ theory = 4.0 }")]
    text = output(capsys, *logs, "--target", "grad_norm_sq=1e-2", "--latex")
    assert r"$\gamma$ = 4 $\times$ theory & grad\_norm\_sq $\le$ 0.01 & 1 & 47" in text
    assert text.startswith("% MARINA, RandK (K = 10)\n% non-convex loss")
    assert r"\begin{tabular}{lrrrrr}" in text
    body = "".join(line for line in text.splitlines() if not line.startswith("%"))
    assert body.isascii()


def test_latex_has_every_letter_of_our_names():
    texts = [*PARAMETERS.values(), *(pair.label for pair in METHODS.values())]
    for kind in COMPRESSORS.values():
        texts += [kind.title, *(kind.letters or {}).values()]
    texts += [kind.title for kind in PROBLEMS.values()]
    for text in [*texts, "a_b & 50% of $5 #1 {x} ~ ^ \\"]:
        assert latex.escaped(text).isascii(), text
    assert latex.escaped("a_b\\") == r"a\_b\textbackslash{}"


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--latex"]])
def test_seconds_of_runs_on_too_few_cores_have_a_note(make_log, capsys, form):
    log = make_log(attrs={"oversubscribed": 1})
    text = output(capsys, log, "--target", "loss=0.5", *form)
    assert "the runs had more ranks than cores" in text


@pytest.mark.parametrize("text", ["", "loss", "=1", "loss=", "loss=a", "loss=nan", "loss=1=2"])
def test_targets_that_are_none(text):
    with pytest.raises(InputError, match="it must be COLUMN=LEVEL, such as grad_norm_sq=1e-3"):
        parse(text)


def test_a_column_that_is_not_there(make_log, capsys):
    assert main(["table", str(make_log()), "--target", "accuracy=1"]) == 2
    assert "no column 'accuracy'; columns here: " in capsys.readouterr().err
