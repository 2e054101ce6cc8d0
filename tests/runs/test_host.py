"""What a run says of the software, the machine, its commit, and where its ranks are."""

import subprocess

import h5py
import pytest

from mpisim.runs.host import (
    Place,
    commit,
    here,
    hosts,
    oversubscribed,
)
from tests.helpers import run_tables, table

FOUR = {0, 1, 2, 3}


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_commit_and_dirty_flag(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")

    def found():
        commit.cache_clear()
        return commit(package)

    git(tmp_path, "init", "-q")
    assert found() == {}  # inside a repository that does not keep it, as an installed one may be
    git(tmp_path, "add", "package")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert found() == {"git_commit": head, "git_dirty": False}
    (tmp_path / "elsewhere").write_text("not the package")
    (package / "untracked.py").write_text("")
    assert found() == {"git_commit": head, "git_dirty": False}
    (package / "__init__.py").write_text("edited = 1\n")
    assert found() == {"git_commit": head, "git_dirty": True}


@pytest.mark.parametrize(
    ("places", "more"),
    [
        ([("a", "a", {0})], False),
        ([("a", "a", FOUR)] * 4, False),
        ([("a", "a", FOUR)] * 5, True),
        ([("a", "a", {i}) for i in range(4)], False),  # each bound to a core of its own
        ([("a", "a", {0})] * 2, True),  # bound to the same
        ([("a", "a", {0, 1})] * 2 + [("b", "b", {0, 1})] * 2, False),
        ([("a", "a", {0, 1})] * 3 + [("b", "b", FOUR)], True),  # of one of two machines
        ([(name, "m", {0, 1}) for name in "abc"], True),  # containers on one machine
    ],
)
def test_ranks_and_cores(places, more):
    assert oversubscribed([Place(h, m, frozenset(c)) for h, m, c in places]) == more


def test_the_log_says_so(tmp_path):
    place = here()
    assert place.cores and not oversubscribed([place])
    assert oversubscribed([place] * (len(place.cores) + 1))
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=2), tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["oversubscribed"] == 0 and file.attrs["hosts"] == hosts([place])
