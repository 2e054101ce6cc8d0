"""Tables in each form: columns, and what each form would take for its own signs."""

import csv
import io
import re

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
    text = table([cell, "y"], [[cell, -1.5], [None, 1 / 3]], "csv")
    assert list(csv.reader(io.StringIO(text))) == [
        [f"'{cell}", "y"],
        [f"'{cell}", "-1.5"],
        ["", "0.3333333333333333"],
    ]


HOSTILE = (
    "[x](javascript:alert(1))",
    "![x](http://127.0.0.1/pixel.png)",
    "[x]: http://127.0.0.1",
    "<script>alert(1)</script>",
    "_x_ __x__ (_x_) ~x~ ~~x~~ &lt;b&gt; &#60;",
    "a |\n\n# A heading\n\n| b",
    "`code` $\\input{x}$ **bold**",
    "a\r\n% b\x0b\x1b[31m\u2028c",
    "\\input{/etc/passwd} \\write18{id} ^^5cinput{x} % & # _ ~ {",
    "} \\\\ \\end{tabular} \\input x",
    "$\\input{/etc/passwd}$ $x ^^5cinput{y}$ $a & b$ $\\alphabet$ $%$",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_is_not_injected(text):
    lines = table(["x", "y"], [[escaped(text), "1"]], "markdown").split("\n")
    assert len(lines) == 3
    plain = re.sub(r"\\.", "", lines[2])  # what is escaped is gone
    assert plain.count("|") == 3 and not re.search(r"[<`$*~]|\][(\[:]|[\x00-\x1f\u2028]", plain)
    assert not re.search(r"(?<![^\W_])_|&#?\w+;", plain)


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_is_not_injected(text):
    lines = table([text, "y"], [[text, "1"]], "latex").split("\n")
    assert len(lines) == 7
    for cells in (lines[2], lines[4]):
        commands = set(re.findall(r"\\([a-zA-Z]+|.)", cells.removesuffix(r"\\")))
        text = {"textbackslash", "textasciitilde", "textasciicircum"}
        assert commands <= {*"%&#_{}$"} | text
        assert not re.search(r"(?<!\\)[%#]|\^\^|[\x00-\x1f]", cells)
        assert cells.replace(r"\&", "").count("&") == 1 and cells.lstrip()[0] not in "[*"
