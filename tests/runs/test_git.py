"""The commit of a package is that of the repository which keeps it."""

import subprocess

from mpisim.runs.host import commit, is_committed


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


def test_a_study_is_committed(tmp_path):
    """Its modules and grids count, not what is recorded beside them."""
    study = tmp_path / "study"
    study.mkdir()
    (study / "figures.py").write_text("FIGURES = []")
    assert not is_committed(study)
    git(tmp_path, "init", "-q")
    assert not is_committed(study)
    git(tmp_path, "add", "study")
    git(tmp_path, "commit", "-qm", "one")
    assert is_committed(study)
    (study / "results").mkdir()
    (study / "results" / "fig1.png").write_text("")
    (tmp_path / "other.py").write_text("")
    assert is_committed(study)
    for name in ("new.py", "new.toml", "figures.py"):
        (study / name).write_text("changed")
        assert not is_committed(study)
        git(tmp_path, "add", "study")
        git(tmp_path, "commit", "-qm", name)
        assert is_committed(study)
