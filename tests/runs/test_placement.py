"""Which runs have more ranks than cores."""

import h5py
import pytest

from mpisim.runs.host import Place, here, hosts, oversubscribed
from tests.helpers import run_tables, table

FOUR = {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("places", "more"),
    [
        ([("a", "a", {0})], False),
        ([("a", "a", FOUR)] * 4, False),
        ([("a", "a", FOUR)] * 5, True),
        ([("a", "a", {i}) for i in range(4)], False),  # each bound to a core of its own
        ([("a", "a", {0})] * 2, True),  # bound to the same
        ([("a", "a", {0, 1})] * 2 + [("b", "b", {0, 1})] * 2, False),
        ([("a", "a", {0, 1})] * 3 + [("b", "b", FOUR)], True),  # of one of two machines
        ([(name, "m", {0, 1}) for name in "abc"], True),  # containers on one machine
    ],
)
def test_ranks_and_cores(places, more):
    assert oversubscribed([Place(h, m, frozenset(c)) for h, m, c in places]) == more


def test_the_log_says_so(tmp_path):
    place = here()
    assert place.cores and not oversubscribed([place])
    assert oversubscribed([place] * (len(place.cores) + 1))
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=2), tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["oversubscribed"] == 0 and file.attrs["hosts"] == hosts([place])
