"""What reaches the terminal: answers to mistakes; every bad input is one line with exit code 2."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pkgutil import resolve_name

import h5py
import numpy as np
import pytest
import tomli_w
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mpisim.cli import main
from mpisim.cli.entry import parser_for
from mpisim.cli.parser import COMMANDS
from mpisim.compressors import COMPRESSORS
from mpisim.core import terminal
from mpisim.core.terminal import one_line, printable
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from tests.comm.jobs import ended
from tests.handmade_logs import write_log
from tests.helpers import run_tables, settings, some_of, table
from tests.malformed import CASES, prepare

LOGISTIC, RANDK = {"name": "logistic"}, {"name": "randk", "k": 10}
FIRST = table({"name": "marina", "stepsize": 0.1}, RANDK, workers=4, rounds=3, problem=LOGISTIC)


@pytest.fixture
def first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.toml").write_text(tomli_w.dumps(FIRST))
    return tmp_path


def test_a_file_with_letters_swapped(first, command):
    line = command("run", "frist.toml", code=2)
    assert "No such file or directory; did you mean 'first.toml'?" in line


@pytest.mark.parametrize(
    ("method", "compressor", "warned"),
    [
        *(("marina", "topk", True), ("marina", "randk", False)),
        *(("dcgd", "topk", True), ("ef21", "topk", False)),
    ],
)
def test_a_biased_compressor_is_warned_of(method, compressor, warned, capsys):
    terminal._reported.clear()
    run_tables(table({"name": method, "stepsize": 1e-9}, {"name": compressor, "k": 10}, rounds=1))
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
    kept = command("methods", "ef21").partition("kept between rounds\n")[2].splitlines()
    places = [" ".join(line.split()[:3]) for line in kept]
    assert places[:2] == ["g_i each worker", "g the server"]
    assert "kept between rounds" not in command("methods", "dcgd")
    assert "keys" not in command("compressors", "identity")


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
    for words in ("rows.csv one.svm --label 3", "zero.svm two.svm --zero-based"):
        out = words.split()[1]
        assert command("data", "convert", *words.split()) == f"{out}: 7 rows, 4 features\n"
        read, labels = load_svmlight_file(out, n_features=4, zero_based=False)
        assert np.array_equal(read.toarray(), x) and np.array_equal(labels, y)


@pytest.mark.parametrize(
    ("text", "words", "answer"),
    [
        ("a,b\n", [], "no row of numbers"),
        ("1,2\n", ["--label", "3"], "--label: 3 is not allowed; it must be an integer from 1 to 2"),
        ("1 x\n", ["--zero-based"], "allowed: LABEL INDEX:VALUE"),
        (
            "1 0:1\n",
            ["--zero-based", "--label", "1"],
            "--label: 1 is not allowed; it must be",
        ),
        ("", ["--zero-based"], "bad.csv: x (0, "),
        ("1 0:inf\n", ["--zero-based"], "bad.csv: a number is missing or not finite"),
        (f"1 {10**20}:1\n", ["--zero-based"], "allowed: LABEL INDEX:VALUE"),
        (f"1 0:1 {2**31 - 1}:1\n", ["--zero-based"], "d from 1 to 2147483646"),
    ],
)
def test_what_cannot_be_converted(text, words, answer, first, command):
    (first / "bad.csv").write_text(text)
    assert answer in command("data", "convert", "bad.csv", "out.svm", *words, code=2)
    assert not (first / "out.svm").exists()


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
EVIL = "a\x1b]0;owned\x07\x1b[31m\rb\x9b2J\u202ec\x7f\u2028d"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("Größe → 3\t4\n", "Größe → 3\t4\n"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\rb\x07\x00\x7f\x85\x9b", "a\\x0db\\x07\\x00\\x7f\\x85\\x9b"),
        ("\u202eabc\u2066\u2028", "\\u202eabc\\u2066\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_printable(text, safe):
    assert printable(text) == safe
    assert one_line(f"{text}\nx") == safe.replace("\n", " ") + " x"


ATTRIBUTES = ("title", "command", "hosts", "stepsize_source", "mpi_library", "status", "start")


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_log_does_not_control_the_terminal(command, tmp_path, capfd):
    path = tmp_path / f"{EVIL}.h5"
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=3), path)
    with h5py.File(path, "r+") as file:
        file.attrs.update(dict.fromkeys(ATTRIBUTES, EVIL))
        file.attrs["config"] = file.attrs["config"].replace("sample", "\\u001b[31m")
    main([command, str(path)])
    out, err = capfd.readouterr()
    assert "owned" in out and not CONTROL.search(out + err)


def test_nor_does_what_an_error_quotes(tmp_path, capfd):
    path = write_log(tmp_path / "x.h5")
    with h5py.File(path, "r+") as file:
        file["rounds"][EVIL] = "text"
    (tmp_path / "x.toml").write_text('"\\u001b[31m" = 1\n')
    for command in (["show", str(path)], ["show", f"{EVIL}.h5"], ["run", str(tmp_path / "x.toml")]):
        assert main([*command]) == 2
        out, err = capfd.readouterr()
        assert err.count("\n") == 1 and not CONTROL.search(out + err)


def shell(command: str, **environment: str) -> subprocess.CompletedProcess:
    """``mpisim COMMAND`` by a shell, which may close and redirect its streams."""
    return ended("sh", "-c", f"{sys.executable} -m mpisim {command}", code=None, **environment)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help >&-", 0),
        ("data list | true", 0),
        ("data list >/dev/full", 1),
        ("data list >&- 2>&- <&-", 0),
    ],
)
@some_of(3, unbuffered=["", "1"])
def test_a_closed_standard_output(command, code, unbuffered):
    job = shell(command, PYTHONUNBUFFERED=unbuffered)
    assert job.returncode == code and job.stdout == ""
    full = "mpisim: standard output: cannot be written: No space left on device\n"
    assert job.stderr == full * code


@pytest.mark.parametrize("command", ["run x.toml", "study run/permk"])
def test_an_mpi_that_cannot_be_loaded(command):
    job = shell(command, MPI4PY_LIBMPI="/nonexistent/libmpi.so", OMPI_COMM_WORLD_RANK="0")
    lines = job.stderr.splitlines()
    assert job.returncode == 2 and len(lines) == 1
    assert lines[0].startswith("mpisim: MPI cannot be loaded: cannot load MPI library /nonexistent")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the cases name; they share it, as they change nothing."""
    made = tmp_path_factory.mktemp("malformed")
    prepare(made)
    return made


@pytest.mark.parametrize(("name", "arguments", "line"), CASES, ids=[c[0] for c in CASES])
def test_one_line(name, arguments, line, folder, capfd, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    assert main([a.replace("{d}", str(folder)) for a in arguments]) in (1, 2)
    [output] = capfd.readouterr().err.splitlines()
    for words in line:
        assert words in output.replace(str(folder), "")
    assert sorted(folder.rglob("*")) == before


def test_a_rank_that_is_left_alone_does_not_run_the_job(first, capfd, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    assert main(["run", "first.toml", "--out", "log.h5"]) == 2
    [line] = capfd.readouterr().err.splitlines()
    assert "mpirun started 3 ranks, but this one is alone" in line
    assert not (first / "log.h5").exists()


def test_too_little_memory_is_one_line(first, capfd, monkeypatch):
    def load(*_):
        raise MemoryError("Unable to allocate 745 GiB")

    monkeypatch.setattr("mpisim.runs.setup.ProblemCache.problem", load)
    assert main(["run", "first.toml", "--out", "log.h5"]) == 1
    [line] = capfd.readouterr().err.splitlines()
    assert "out of memory: Unable to allocate 745 GiB" in line
