"""Logs, x and step sizes have the same bits under the settings of other processors."""

import pytest

from tests.processors.experiments import digests, write_dense
from tests.processors.settings import NEHALEM, OTHERS


@pytest.mark.slow
def test_the_same_bits(tmp_path):
    """Under the setting that differs most, in two experiments; `make trial` has more of both."""
    if lacking := NEHALEM.lacks():
        pytest.skip(f"this processor lacks {', '.join(lacking)}")
    dense = tmp_path / "dense.txt"
    write_dense(dense)
    result, expected = NEHALEM.digests(dense, "usual", tmp_path), digests(str(dense), "usual")
    assert len(expected) > 15
    assert [name for name in expected if result[name] != expected[name]] == []


def test_results_of_a_setting_can_be_kept():
    assert {OTHERS[0], *OTHERS} == set(OTHERS)
