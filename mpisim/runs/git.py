"""The commit of the source that runs and draws, where it lies in a git repository."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

SECONDS = 10.0  # far more than git takes


@cache
def commit(package: Path) -> dict[str, str | bool]:
    """``git_commit`` and ``git_dirty``, or nothing where git does not keep ``package``.

    git_dirty : whether tracked files of the package differ from the commit
    """
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        said = _git(package, "status", "--porcelain=v2", "--branch", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = said.splitlines()
    head = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    dirty = any(not line.startswith("#") for line in lines)
    return {"git_commit": head[0], "git_dirty": dirty} if head else {}


def is_committed(folder: Path) -> bool:
    """Whether git keeps the modules and grids of a study in ``folder`` as they are."""
    try:
        _git(folder, "ls-files", "--error-unmatch", ".")
        words = ("status", "--porcelain", "--untracked-files=all", "--", "*.py", "*.toml")
        return not _git(folder, *words)
    except (OSError, subprocess.SubprocessError):
        return False


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout
