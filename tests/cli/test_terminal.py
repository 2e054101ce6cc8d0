"""What reaches the terminal; every bad input is one line with exit code 2."""

import io
import os
import re
import subprocess
import sys

import h5py
import pytest

from mpisim.cli import main
from mpisim.core.terminal import one_line, printable
from tests.comm.jobs import ended
from tests.helpers import run_tables, table
from tests.malformed import CASES, prepare

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


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.h5"
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=3), path)
    return path


ATTRIBUTES = ("title", "command", "hosts", "stepsize_source", "mpi_library", "status", "start")


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_log_does_not_control_the_terminal(command, log, tmp_path, capfd):
    path = tmp_path / f"{EVIL.replace('/', '')}.h5"
    path.write_bytes(log.read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs.update(dict.fromkeys(ATTRIBUTES, EVIL))
        file.attrs["config"] = file.attrs["config"].replace("sample", "\\u001b[31m")
    main([command, str(path)])
    out, err = capfd.readouterr()
    assert "owned" in out and not CONTROL.search(out + err)


def test_nor_does_what_an_error_quotes(log, tmp_path, capfd):
    path = tmp_path / "x.h5"
    path.write_bytes(log.read_bytes())
    with h5py.File(path, "r+") as file:
        file["rounds"][EVIL] = "text"
    (tmp_path / "x.toml").write_text('"\\u001b[31m" = 1\n')
    for command in (["show", str(path)], ["show", f"{EVIL}.h5"], ["run", str(tmp_path / "x.toml")]):
        assert main([*command]) == 2
        out, err = capfd.readouterr()
        assert err.count("\n") == 1 and not CONTROL.search(out + err)


class Broken(io.StringIO):
    def write(self, text):
        raise OSError(28, os.strerror(28))


def test_output_that_cannot_be_written_is_one_line(capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Broken())
        code = main(["data", "list"])
    line = capsys.readouterr().err
    assert code == 1
    assert line == "mpisim: standard output: cannot be written: No space left on device\n"


def shell(command: str, **environment: str) -> subprocess.CompletedProcess:
    """``mpisim COMMAND`` by a shell, which may close and redirect its streams."""
    return ended("sh", "-c", f"{sys.executable} -m mpisim {command}", code=None, **environment)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help >&-", 0),
        ("data list | true", 0),
        ("data list >/dev/full", 1),
        ("data list >&- 2>&- <&-", 0),
    ],
)
def test_a_closed_standard_output(command, code, unbuffered):
    job = shell(command, PYTHONUNBUFFERED=unbuffered)
    assert job.returncode == code and job.stdout == ""
    assert len(job.stderr.splitlines()) == code and "Traceback" not in job.stderr


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
    code = main([a.replace("{d}", str(folder)) for a in arguments])
    code, output = malformed_one_line(code, capfd)
    assert code in (1, 2)
    for words in line:
        assert words in output.replace(str(folder), "")
    assert sorted(folder.rglob("*")) == before


def malformed_one_line(code, capfd):
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return code, lines[0]


def test_a_rank_that_is_left_alone_does_not_run_the_job(tmp_path, capfd, monkeypatch):
    prepare(tmp_path)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    code = main(["run", str(tmp_path / "good.toml"), "--out", str(tmp_path / "log.h5")])
    code, line = malformed_one_line(code, capfd)
    assert code == 2 and "mpirun started 3 ranks, but this one is alone" in line
    assert not (tmp_path / "log.h5").exists()


def test_too_little_memory_is_one_line(tmp_path, capfd, monkeypatch):
    def load(*_):
        raise MemoryError("Unable to allocate 745 GiB")

    prepare(tmp_path)
    monkeypatch.setattr("mpisim.runs.setup.ProblemCache.problem", load)
    code = main(["run", str(tmp_path / "good.toml"), "--out", str(tmp_path / "log.h5")])
    code, line = malformed_one_line(code, capfd)
    assert code == 1 and "out of memory: Unable to allocate 745 GiB" in line
