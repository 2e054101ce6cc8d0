"""Logs, x and step sizes have the same bits under the settings of other processors."""

import pytest

from tests.processors.experiments import digests, write_dense
from tests.processors.settings import NEHALEM, OTHERS


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    path = tmp_path_factory.mktemp("processors") / "dense.txt"
    write_dense(path)
    return path


@pytest.mark.slow
def test_the_same_bits(dense, tmp_path):
    """Under the setting that differs most, in two experiments; `make trial` has more of both."""
    if lacking := NEHALEM.lacks():
        pytest.skip(f"this processor lacks {', '.join(lacking)}")
    result, expected = NEHALEM.digests(dense, "usual", tmp_path), digests(str(dense), "usual")
    assert len(expected) > 15
    assert [name for name in expected if result[name] != expected[name]] == []


def test_results_of_a_setting_can_be_kept():
    assert {OTHERS[0], *OTHERS} == set(OTHERS)
