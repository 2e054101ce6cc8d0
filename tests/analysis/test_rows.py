"""Rows and tables in each form: columns, and what each form would take for its own signs."""

import csv
import io
import itertools
import re
import sys

import numpy as np
import pytest

from mpisim.analysis.costs import Costs, parse
from mpisim.analysis.formatting import columns, escaped, table
from mpisim.analysis.log_files import all_rows, selected
from mpisim.runs.log.reader import read, read_all


def test_rows_of_several_logs(make_log):
    other = {"suboptimality": np.full(3, 0.5)}
    paths = [make_log(rounds=1), make_log(rounds=2, method="diana", seed=7, columns=other)]
    rows = all_rows(read_all(paths))
    first = ["log", "method.name", "compressor.name", "seed", "label", "n", "status", "stepsize"]
    assert list(rows)[:10] == [*first, "run.rounds", "bits_down"]
    assert list(rows)[-3:] == ["seconds", "bits_total", "mean_grad_norm_sq"]
    assert rows["log"].tolist() == ["log1.h5"] * 2 + ["log2.h5"] * 3
    assert rows["run.rounds"].tolist() == [1, 1, 2, 2, 2] and set(rows["n"]) == {5}
    assert rows["method.name"].tolist() == ["marina"] * 2 + ["diana"] * 3
    assert rows["round"].tolist() == [0, 1, 0, 1, 2] and rows["round"].dtype.kind == "i"
    assert rows["suboptimality"][2:].tolist() == [0.5] * 3
    assert np.isnan(rows["suboptimality"][:2]).all()
    assert rows["seconds"].tolist() == pytest.approx([0, 0.036, 0, 0.036, 0.072])


@pytest.mark.parametrize(
    ("condition", "seeds"),
    [  # a number and a text are in no order
        *(("method.stepsize > 0.6", [3]), ("method.stepsize <= 2", [2, 3])),
        *(("method.stepsize == theory", [0]), ("method.stepsize != 2.00", [0, 1, 2])),
        *(("method.stepsize < u", [0, 1]), ("compressor.k < 11", [0, 1, 2, 3])),
        *(("method.name != 'diana'", [1, 2, 3]), ("seed=2", [2]), ("status == done", [1, 2, 3])),
    ],
)
def test_where(condition, seeds, make_log):
    steps = ['"theory"', "{ theory = 4.0 }", "0.5", "2.0"]
    logs = [make_log(stepsize=step, seed=i) for i, step in enumerate(steps) if i]
    logs.append(make_log("diana", stepsize=steps[0], seed=0, attrs={"status": "diverged"}))
    found = [log.attrs["seed"] for log in selected(read_all(logs), [condition])]
    assert sorted(found) == seeds


def test_the_best_step_is_that_of_the_longest_runs(make_log):
    """Logs of a smaller budget are beside those that went on from them."""
    rates = {"{ theory = 1.0 }": 0.1, "{ theory = 2.0 }": 0.2, "{ theory = 4.0 }": 0.05}
    pairs = itertools.product((20, 50), rates.items())
    paths = [make_log(stepsize=s, rounds=rounds, rate=rate) for rounds, (s, rate) in pairs]
    (one,) = selected(read_all(paths), best=True)
    assert (one.rows, one.config["method"]["stepsize"]) == (51, {"theory": 2.0})


def test_the_best_step_has_all_seeds_on_whatever_ranks_network_and_layout(make_log):
    places = [{}, {"ranks": 4}, {"network": "1gbit"}, {"layout": "dedicated"}]
    logs = []
    for attrs, step, seed in itertools.product(places, (0.1, 0.2), (1, 2)):
        log = read(make_log(stepsize=step, rate=step, seed=seed, attrs=attrs))
        log.config["run"]["layout"] = attrs.get("layout", "shared")
        logs.append(log)
    assert [cost.runs for cost in Costs(selected(logs, best=True), [parse("loss=0.5")])] == [2] * 4
    assert len(selected(logs, best=True, by_ranks=False)) == 2 * 2  # the layout is a setting


def test_csv_has_all_digits(make_log, command):
    path = make_log(rounds=3, columns={"loss": np.array([1 / 3, 1e-300, np.nan, -np.inf])})
    out = path.with_suffix(".csv")
    assert command("export", path, "--csv").strip() == str(out)
    with out.open(newline="") as file:
        result = list(csv.DictReader(file))
    log = read(path)
    assert [row["round"] for row in result] == ["0", "1", "2", "3"]
    for name, values in log.columns.items():
        shown = np.array([float(row[name]) for row in result])
        assert np.array_equal(shown, values.astype(float), equal_nan=True), name


@pytest.mark.parametrize("written", ["pyarrow", "polars"])
def test_parquet(make_log, written, monkeypatch, command):
    """A column with steps that are numbers and texts has texts."""
    library = pytest.importorskip("pyarrow.parquet" if written == "pyarrow" else written)
    if written == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    paths = [make_log(rounds=4, stepsize=step, seed=1) for step in ("0.5", '"theory"')]
    out = paths[0].with_name("out.parquet")
    command("export", *paths, "-o", out)
    if written == "pyarrow":
        columns = library.read_table(out).to_pydict()
    else:
        columns = library.read_parquet(out).to_dict(as_series=False)
    expected = all_rows(read_all(paths))
    assert list(columns) == list(expected)
    assert columns["method.stepsize"] == ["0.5"] * 5 + ["theory"] * 5
    assert columns["log"] == ["log1.h5"] * 5 + ["log2.h5"] * 5 and columns["seed"] == [1] * 10
    for name in ("round", "bits_up", "grad_norm_sq", "seconds"):
        assert columns[name] == expected[name].tolist()


HEAD, ROWS = ["name", "n", "x"], [["a_b | c", 7, 1 / 3], ["", None, 12345678.0]]


def test_text_has_columns_and_numbers_flush_right():
    assert table(HEAD, ROWS).splitlines() == [
        "name     n            x",
        "a_b | c  7     0.333333",
        "         -  1.23457e+07",
    ]
    assert columns([("a", "bb"), ("ccc", "d")], right=(1,)) == "  a    bb\n  ccc   d"


def test_markdown_and_latex_show_signs_as_they_are():
    row = table(HEAD, ROWS, "markdown").splitlines()[2]
    assert row == r"| a_b \| c | 7 | 0.333333 |"
    assert escaped("`a` <b> $c *d \\") == r"\`a\` \<b> \$c \*d \\"
    lines = table(["γ & ω"], [[r"50% #1 {x} ~ ^ \ a_b ≤ 3 | <"]], "latex").splitlines()
    assert lines[0] == r"\begin{tabular}{l}  % needs \usepackage{booktabs}"
    assert lines[1] == r"\toprule" and lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert r"$\gamma$ \& $\omega$" in lines[2] and lines[4].isascii()
    assert r"50\% \#1 \{x\}" in lines[4] and r"a\_b $\le$ 3 $|$ $<$" in lines[4]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@a", "\t=1"])
def test_csv_is_no_formula(cell):
    text = table([cell, "y"], [[cell, -1.5], [None, 1 / 3]], "csv")
    escaped = [[f"'{cell}", "y"], [f"'{cell}", "-1.5"], ["", "0.3333333333333333"]]
    assert list(csv.reader(io.StringIO(text))) == escaped


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
    lines = table(["x", "y"], [[text, "1"]], "markdown").split("\n")
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
