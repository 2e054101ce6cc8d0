"""Users without a home, or with one that cannot be written."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from mpisim.core import home


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A user id that the system does not know, without HOME; temporary files lie in tmp_path."""

    def unknown(_):
        raise KeyError("uid not found")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "MPISIM_CACHE", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda place, mode: str(place).startswith(str(tmp_path)))
    home.private.cache_clear()
    yield
    for name in ("HOME", "NUMBA_CACHE_DIR"):
        os.environ.pop(name, None)
    home.private.cache_clear()


def test_an_unknown_user(nobody, tmp_path):
    home.provide()
    mine = tmp_path / f"mpisim-{os.getuid()}"
    assert os.environ["HOME"] == home.NONE
    assert os.environ["NUMBA_CACHE_DIR"] == str(mine / "numba")
    assert home.cache_folder() == mine / "mpisim"
    assert mine.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_a_folder_that_others_can_enter_is_not_used(mode, nobody, tmp_path):
    taken = tmp_path / f"mpisim-{os.getuid()}"
    taken.mkdir()
    taken.chmod(mode)
    found = home.private()
    assert found != taken and found.stat().st_mode & 0o777 == 0o700


def test_nor_is_a_link(nobody, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"mpisim-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert home.private().parent == tmp_path and not home.private().is_symlink()


def test_what_there_is_stays(nobody, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    home.provide()
    assert "NUMBA_CACHE_DIR" not in os.environ
    assert home.cache_folder() == tmp_path / "me" / ".cache" / "mpisim"
    monkeypatch.setenv("HOME", "/root-only")
    home.provide()
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_relative_to(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "mine")
    home.provide()
    assert os.environ["NUMBA_CACHE_DIR"] == "mine" and os.environ["HOME"] == "/root-only"


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MPISIM_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert str(home.cache_folder()) == "/one"
    monkeypatch.delenv("MPISIM_CACHE")
    assert str(home.cache_folder()) == "/two/mpisim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/three")
    assert str(home.cache_folder()) == "/three/.cache/mpisim"
