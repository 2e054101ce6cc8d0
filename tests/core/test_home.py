"""Users without a home, or with one that cannot be written, and folders that others made first."""

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from mpisim.core import home, terminal


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A user id that the system does not know, without HOME; temporary files lie in tmp_path."""

    def unknown(_):
        raise KeyError("uid not found")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "MPISIM_CACHE", "NUMBA_CACHE_DIR"):
        monkeypatch.setenv(name, "")  # so that what a test sets itself is undone
        monkeypatch.delenv(name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda place, mode: str(place).startswith(str(tmp_path)))
    monkeypatch.setattr(terminal, "_reported", set())
    return tmp_path / f"mpisim-{os.geteuid()}"


def test_an_unknown_user(nobody):
    home.provide()
    assert os.environ["HOME"] == home.NONE
    assert os.environ["NUMBA_CACHE_DIR"] == str(nobody / "numba")
    assert home.cache_folder() == nobody / "mpisim"
    assert nobody.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["file", "dangling link", "link", "folder"])
def test_what_another_user_could_write_is_not_used(how, tmp_path, monkeypatch, capsys):
    place, later = tmp_path / "place", tmp_path / "later"
    if how == "file":
        place.touch()
    elif how == "folder":
        place.mkdir(mode=0o700)
    else:
        place.symlink_to(later)
    if how == "link":
        later.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(place, 4002, 4002, follow_symlinks=False)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("MPISIM_CACHE", str(place))
    assert home.cache_folder() == home.cache_folder() == home.OFF
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mpisim: nothing is cached in {place}: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_private_folder_that_others_can_enter_is_not_used(nobody):
    nobody.mkdir(mode=0o750)
    home.provide()
    assert home.OFF in Path(os.environ["NUMBA_CACHE_DIR"]).parents
    assert home.cache_folder() == home.OFF and not list(nobody.iterdir())


def test_a_folder_is_checked_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "cache"))
    assert home.cache_folder() == tmp_path / "cache"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache").chmod(0o777)
    assert home.cache_folder() == home.OFF
    (tmp_path / "cache").chmod(0o755)
    assert home.cache_folder() == tmp_path / "cache"


def test_cache_place(monkeypatch, tmp_path):
    monkeypatch.setenv("MPISIM_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert str(home.cache_place()) == "/one"
    monkeypatch.delenv("MPISIM_CACHE")
    assert str(home.cache_place()) == "/two/mpisim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/three")
    assert str(home.cache_place()) == "/three/.cache/mpisim"
