"""What the command line answers to common mistakes, and what lists say there is."""

from __future__ import annotations

import shlex
from pkgutil import resolve_name

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mpisim.cli import main
from mpisim.cli.entry import parser_for
from mpisim.cli.parser import COMMANDS
from mpisim.compressors import COMPRESSORS
from mpisim.core import terminal
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from tests.helpers import settings

FIRST = """
[problem]
name = "logistic"
data = "sample"
workers = 4
[method]
name = "marina"
stepsize = 0.1
[compressor]
name = "randk"
k = 10
[run]
rounds = 3
"""


@pytest.fixture
def first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.toml").write_text(FIRST)
    return tmp_path


def test_a_file_with_letters_swapped(first, command):
    line = command("run", "frist.toml", code=2)
    assert "No such file or directory; did you mean 'first.toml'?" in line


@pytest.mark.parametrize("stepsize", ["0.1", "1e-9"])
def test_a_biased_compressor_is_warned_of(stepsize, first, capsys):
    words = ["run", "first.toml", "--set", f"method.stepsize={stepsize}", "--force"]
    for method, compressor, warned in (
        *(("marina", "topk", True), ("marina", "randk", False)),
        *(("dcgd", "topk", True), ("ef21", "topk", False)),
    ):
        terminal._reported.clear()
        names = ["--set", f"method.name={method}", "--set", f"compressor.name={compressor}"]
        assert main([*words, *names]) == 0
        err = capsys.readouterr().err
        assert (f"'{compressor}' is biased, and '{method}'" in err) == warned


def test_lists_have_a_line_for_each_name(command):
    kinds = {"methods": METHODS, "compressors": COMPRESSORS, "problems": PROBLEMS}
    for word, names in kinds.items():
        lines = command(word).splitlines()
        assert sorted(line.split()[0] for line in lines) == sorted(names)
        assert all(len(line.split()) > 2 for line in lines)
    everything = command("data")
    assert command("data", "list") == everything and "a9a" in everything


def programs(parser, words=()):
    yield parser, words
    for action in parser._actions:
        for name, child in (action.choices or {}).items() if action.nargs == "A..." else ():
            yield from programs(child, (*words, name))


def test_every_help_ends_with_two_commands_that_exist():
    for name in COMMANDS:
        for parser, words in programs(parser_for([name])):
            if words and words[0] != name:
                continue
            first, *lines = parser.format_help().splitlines()[-3:]
            assert first == "examples:", parser.prog
            for line in lines:
                argv = shlex.split(line.partition("mpisim ")[2])
                args = parser_for(argv).parse_args(argv)
                assert callable(resolve_name(f"mpisim.cli.{args.call}"))
                assert parser.prog.split()[:2][-1] in ("mpisim", *argv)


def test_convert_makes_the_same_rows_of_csv_and_of_indices_from_zero(first, command):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(7, 4)).round(3), rng.choice([-1.0, 1.0], 7)
    x[2, 1] = 0.0
    dump_svmlight_file(x, y, "zero.svm", zero_based=True)
    cells = np.column_stack([x[:, :2], y, x[:, 2:]])
    lines = ["a,b,label,c,d", *(",".join(map(str, row)) for row in cells)]
    (first / "rows.csv").write_text("\n".join(lines))
    line = command("run", "first.toml", "--set", "problem.data=zero.svm", code=2)
    assert "`mpisim data convert FILE OUT --zero-based`" in line
    (first / "plain.csv").write_text("\n".join(lines[1:]))
    plain = ["run", "first.toml", "--out", "plain.h5", "--set", "problem.data=plain.csv"]
    line = command(*plain, code=2)  # its labels are not in the first column
    assert "plain.csv: 7 distinct labels" in line and "problem.label names the column" in line
    command(*plain, *settings("problem.label=3", "problem.workers=2", "compressor.k=2"))
    for name, words in (("one", "rows.csv {} --label 3"), ("two", "zero.svm {} --zero-based")):
        words = words.format(f"{name}.svm")
        output = command("data", "convert", *words.split())
        assert output == f"{name}.svm: 7 rows, 4 features\n"
        read, labels = load_svmlight_file(f"{name}.svm", n_features=4, zero_based=False)
        assert np.array_equal(read.toarray(), x) and np.array_equal(labels, y)


@pytest.mark.parametrize(
    ("text", "words", "answer"),
    [
        ("a,b\n", [], "no row of numbers"),
        ("1,2\n1,b\n", [], ":2: could not convert string to float: 'b'"),
        ("1,2\n1,2,3\n", [], ":2: 3 cells; allowed: 2"),
        ("1,2\n", ["--label", "3"], "--label: 3 is not allowed; it must be an integer from 1 to 2"),
        ("1 x\n", ["--zero-based"], "allowed: LABEL INDEX:VALUE"),
    ],
)
def test_what_cannot_be_converted(text, words, answer, first, command):
    (first / "bad.csv").write_text(text)
    assert answer in command("data", "convert", "bad.csv", "out.svm", *words, code=2)
    assert not (first / "out.svm").exists()
