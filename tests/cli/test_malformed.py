"""Every bad input: one line, exit code 2, on one rank."""

import pytest

from mpisim.cli import main
from tests.malformed import CASES, prepare


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
    code, said = one_line(main([a.replace("{d}", str(folder)) for a in arguments]), capfd)
    assert code in (1, 2)
    for words in line:
        assert words in said.replace(str(folder), "")
    assert sorted(folder.rglob("*")) == before


def one_line(code, capfd):
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return code, lines[0]


def test_a_rank_that_is_left_alone_does_not_run_the_job(tmp_path, capfd, monkeypatch):
    prepare(tmp_path)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    code = main(["run", str(tmp_path / "good.toml"), "--out", str(tmp_path / "log.h5")])
    code, line = one_line(code, capfd)
    assert code == 2 and "mpirun started 3 ranks, but this one is alone" in line
    assert not (tmp_path / "log.h5").exists()


def test_too_little_memory_is_one_line(tmp_path, capfd, monkeypatch):
    def load(*_):
        raise MemoryError("Unable to allocate 745 GiB")

    prepare(tmp_path)
    monkeypatch.setattr("mpisim.runs.setup.ProblemCache.problem", load)
    code = main(["run", str(tmp_path / "good.toml"), "--out", str(tmp_path / "log.h5")])
    code, line = one_line(code, capfd)
    assert code == 1 and "out of memory: Unable to allocate 745 GiB" in line
