"""Shared fixtures."""

from __future__ import annotations

import pytest

from mpisim.core.numerics import kernel_cache
from mpisim.problems.data.find import available

pytest_plugins = ["tests.handmade_logs"]


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Tests never touch the user's cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MPISIM_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks():
    """Thousands of small runs would wait minutes; jobs in processes of their own do sync."""
    patch = pytest.MonkeyPatch()
    patch.setattr("os.fsync", lambda descriptor: None)
    yield
    patch.undo()


@pytest.fixture
def need_data():
    """need_data(name) skips the test where the data set is not here."""

    def need(name: str) -> None:
        if not available(name):
            pytest.skip(f"{name} is not here (MPISIM_DATA)")

    return need


def pytest_collection_modifyitems(items):
    """Tests that start real jobs are `mpi`, tests on data that may not be here are `real`."""
    kernel_cache.refresh()
    for item in items:
        jobs = {"comm", "tools", "trials"} & set(item.path.parts)
        if jobs and item.path.name.startswith("test_"):
            item.add_marker(pytest.mark.mpi)
        if "need_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real)
