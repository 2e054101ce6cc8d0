"""The log of an undisturbed run."""

import pytest

from tests.helpers import run_tables
from tests.runs.support import tables


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """Of `tests.runs.support.tables`."""
    path = tmp_path_factory.mktemp("full") / "log.h5"
    run_tables(tables(), path)
    return path
