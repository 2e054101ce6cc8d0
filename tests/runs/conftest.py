"""Where runs write their logs, and the log of an undisturbed one."""

import pytest

from tests.helpers import run_tables
from tests.runs.support import tables


@pytest.fixture
def log(tmp_path):
    """The path of a log that is not there yet."""
    return tmp_path / "log.h5"


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """Of `tests.runs.support.tables`."""
    path = tmp_path_factory.mktemp("full") / "log.h5"
    run_tables(tables(), path)
    return path
