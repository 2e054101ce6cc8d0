"""What the table of benchmarks says of bounds."""

import pytest

from benchmarks.table import verdict


@pytest.mark.parametrize(
    ("ratios", "bound", "expected"),
    [
        ([0.9], "<= 1", "ok"),
        ([1.1] * 5, "<= 1", "cannot tell"),
        ([1.1] * 6, "<= 1", "MISSED"),
        ([1.1] * 6 + [0.9], "<= 1", "cannot tell"),
        ([70.0], ">= 60", "ok"),
        ([50.0] * 6, ">= 60", "MISSED"),
        ([50.0] * 5 + [70.0], ">= 60", "cannot tell"),
        ([50.0], "", ""),
    ],
)
def test_noise_is_no_missed_bound(ratios, bound, expected):
    assert verdict(ratios, bound) == expected


def test_one_disturbed_run_of_many_does_not_hide_a_missed_bound():
    assert verdict([1.1] * 40 + [0.9], "<= 1") == "MISSED"
