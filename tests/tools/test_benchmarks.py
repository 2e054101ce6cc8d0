"""What the table of benchmarks says of bounds."""

import pytest

from benchmarks.table import verdict


@pytest.mark.parametrize(
    ("ratios", "bound", "expected"),
    [
        *(([0.9], "<= 1", "ok"), ([1.1] * 5, "<= 1", "cannot tell"), ([1.1] * 6, "<= 1", "MISSED")),
        ([1.1] * 6 + [0.9], "<= 1", "cannot tell"),
        ([1.1] * 40 + [0.9], "<= 1", "MISSED"),  # a disturbed run of many does not hide it
        *(([70.0], ">= 60", "ok"), ([50.0] * 6, ">= 60", "MISSED"), ([50.0], "", "")),
        ([50.0] * 5 + [70.0], ">= 60", "cannot tell"),
    ],
)
def test_noise_is_no_missed_bound(ratios, bound, expected):
    assert verdict(ratios, bound) == expected
