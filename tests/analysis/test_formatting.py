"""Tables in each form: columns, and what each form would take for its own signs."""

import csv
import io

import pytest

from mpisim.analysis.formatting import columns, escaped, table

HEAD, ROWS = ["name", "n", "x"], [["a_b | c", 7, 1 / 3], ["", None, 12345678.0]]


def test_text_has_columns_and_numbers_flush_right():
    text = table(HEAD, ROWS)
    assert text.splitlines() == [
        "name     n            x",
        "a_b | c  7     0.333333",
        "         -  1.23457e+07",
    ]
    assert columns([("a", "bb"), ("ccc", "d")], right=(1,)) == "  a    bb\n  ccc   d"
    assert columns([("a", ""), ("b", "c")]) == "  a\n  b  c"


def test_markdown_and_latex_show_signs_as_they_are():
    cells = [[escaped(str(cell)) for cell in row] for row in ROWS]
    assert (
        table(HEAD, cells, "markdown").splitlines()[2] == r"| a_b \| c | 7 | 0.3333333333333333 |"
    )
    assert escaped("`a` <b> $c *d \\") == r"\`a\` \<b> \$c \*d \\"
    latex = table(["γ & ω"], [[r"50% #1 {x} ~ ^ \ a_b ≤ 3 | <"]], "latex")
    assert latex.isascii() and r"$\gamma$ \& $\omega$" in latex
    row = next(line for line in latex.splitlines() if "50" in line)
    assert r"50\% \#1 \{x\}" in row and r"a\_b $\le$ 3 $|$ $<$" in row
    lines = table(HEAD, ROWS, "latex").splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}  % needs \usepackage{booktabs}"
    assert lines[1] == r"\toprule" and lines[-2:] == [r"\bottomrule", r"\end{tabular}"]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@a", "\t=1"])
def test_csv_is_no_formula(cell):
    text = table(["x", "y"], [[cell, -1.5], [None, 1 / 3]], "csv")
    assert list(csv.reader(io.StringIO(text))) == [
        ["x", "y"],
        [f"'{cell}", "-1.5"],
        ["", "0.3333333333333333"],
    ]
