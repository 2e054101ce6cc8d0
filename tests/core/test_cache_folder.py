"""Where the cache of the user lies."""

from __future__ import annotations

from mpisim.core.home import cache_folder


def test_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MPISIM_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert str(cache_folder()) == "/one"
    monkeypatch.delenv("MPISIM_CACHE")
    assert str(cache_folder()) == "/two/mpisim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/three")
    assert str(cache_folder()) == "/three/.cache/mpisim"
