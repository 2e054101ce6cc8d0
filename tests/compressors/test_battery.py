"""What every compressor must do; what is refused; and that tests of moments can fail."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from mpisim.compressors import COMPRESSORS, make
from mpisim.compressors.base import compressor
from mpisim.compressors.sparse import RandK
from mpisim.core.errors import InputError
from mpisim.core.numerics.sums import ordered_sum
from mpisim.testing import assert_all, compressor_checks
from mpisim.testing.compressor import alike, charged, form_sizes, round_trip, stateless
from mpisim.testing.moments import vectors
from mpisim.wire import SeededForm
from tests.compressors.cases import CASES, SINGLE, draw, name_of
from tests.helpers import sampled
from tests.wire.messages import PRECISIONS, contents

SHAPES = [(3, 3), (4, 50), (0, 5), (2, 1000)]  # workers, d
each_case = pytest.mark.parametrize("case", CASES, ids=[name_of(case.table) for case in CASES])


def test_every_compressor_has_a_row():
    # need a problem, a list for each worker, or the triangle of a matrix
    elsewhere = {"smooth", "permuted-subsets", "permuted-mappings", "symmetric-rank-k"}
    built_in = {name for name, kind in COMPRESSORS.items() if kind.__module__.startswith("mpisim.")}
    assert {case.table["name"] for case in CASES} >= built_in - elsewhere


@each_case
def test_round_trip_and_bits_against_an_independent_count(case):
    for precision, (m, d) in sampled(itertools.product(PRECISIONS, SHAPES), 4):
        compressor, v, b = case.bind(d, 5, precision), vectors(m, d, precision), precision.bits
        message, form = compressor.compress(v, draw(m)), compressor.form(draw(m))
        packed = message.encode()
        again = form.decode(packed.data, packed.sizes)
        assert contents(again) == contents(message)
        assert message.total().tobytes() == ordered_sum(message.decoded()).tobytes()
        rows = list(enumerate(again.decoded()))
        payload = [case.payload(x, b, message, i) for i, x in rows]
        assert packed.payload_bits.tolist() == again.payload_bits.tolist() == payload
        framing = 8 * packed.sizes - payload
        most = 48 if case.table["name"] == "quic-fl" else 8  # a part's length, and two paddings
        assert np.all(framing >= 0) and np.all(framing <= most)
        paper = [case.paper(x, b, again, i) for i, x in rows]
        assert compressor.paper_bits(again).tolist() == paper


@pytest.mark.parametrize("name", ["d", "n", "precision"])
def test_a_key_may_not_be_what_a_run_sets(name):
    made = type("Mine", (type(make({"name": "identity"})),), {"__annotations__": {name: int}})
    with pytest.raises(InputError, match=rf"^compressor\.{name}: the run sets it; rename the key"):
        dataclasses.dataclass(made)(3).bind(5, 2, SINGLE)


@each_case
def test_what_mpisim_check_checks(case):
    """Round trips, ranks, values that are not finite; unbiasedness, omega, alpha and zeta."""
    assert_all(compressor_checks(make(case.table)))


@dataclasses.dataclass  # as authors may write one
class Alike(RandK):
    """All workers of a round send the same coordinates."""

    correlated, factor = True, 1.0

    def form(self, drawn):
        rows = np.sort(np.argsort(drawn.shared_words(self.d))[: self.k])
        rows = np.tile(rows, (drawn.workers, 1))
        return SeededForm.of_rows(self.d, self.precision, rows, self.factor * self.d / self.k)


def test_workers_may_share_their_randomness(monkeypatch):
    compressor("alike")(Alike)
    assert_all(compressor_checks(Alike(k=3)))
    assert Alike(k=3).bind(12, 7, SINGLE).A == 3.0
    monkeypatch.setattr(Alike, "factor", 0.75)
    with pytest.raises(AssertionError, match=r"E C\(v\) = v .* the mean of coordinate"):
        assert_all(compressor_checks(Alike(k=3)))


def test_what_is_rarely_random_or_fits_few_dimensions_passes():
    for keys in (
        {"name": "bernoulli", "p": 0.995},
        {"name": "block-permutation", "blocks": [9, 3]},  # d = 12 alone
        {"name": "symmetric-rank-k", "k": 2},  # d = 300 alone
    ):
        assert_all(compressor_checks(make(keys)))


@pytest.mark.drawn(16)
@each_case
def test_zero_is_sent_as_zero_and_what_is_not_finite_reaches_the_sum(case):
    compressor, v = case.bind(20, 40), vectors(40, 20)
    zero = compressor.compress(np.zeros((40, 20)), draw(40)).decoded()
    assert np.all(zero == (case.table.get("scale") == "one"))  # sign(0) = 1
    for bad in (np.nan, np.inf, 1e300):
        v[:, 4] = bad
        assert not np.isfinite(compressor.compress(v, draw(40)).total()[4])


@pytest.mark.drawn(10)
@each_case
def test_a_client_that_draws_again(case):
    compressor, name = case.bind(40, 7), case.table["name"]
    # biased compressors draw nothing, but for a rotation and how many TopLEK sends
    drawing = name in ("drive", "eden", "spherical", "toplek")
    draws_again(compressor, drawing or compressor.omega not in (None, 0.0))


def like_every_compressor(compressor):
    """What `mpisim check` checks in a few dimensions, in this one, of seven workers."""
    for check in (round_trip, charged, form_sizes, alike, stateless):
        check(compressor, vectors(7, compressor.d))


def draws_again(compressor, drawing=True):
    """Messages of a client are independent; the others' do not change, in any block of workers."""
    clients = np.array([0, 2, 2, 2, 5, 5])
    v = np.tile(vectors(1, compressor.d)[0], (clients.size, 1))
    every = dataclasses.replace(draw(7), clients=clients)
    message = compressor.compress(v, every)
    packed, rows = message.encode(), message.decoded()
    assert contents(compressor.form(every).decode(packed.data, packed.sizes)) == contents(message)
    once = dataclasses.replace(every, clients=np.array([0, 2, 5]))
    dealt = compressor.name == "pattern"  # to those who send: a coordinate is with s of them
    assert dealt or np.array_equal(rows[[0, 1, 4]], compressor.compress(v[:3], once).decoded())
    parts = [
        compressor.compress(v[begin:end], every.block(first, count)).decoded()
        for first, count, begin, end in ((0, 2, 0, 1), (2, 1, 1, 4), (3, 4, 4, 6))
    ]
    assert np.array_equal(np.concatenate(parts), rows)
    again = [dataclasses.replace(every, round=r) for r in range(20)]
    drawn = [compressor.compress(v, one).decoded()[1:4] for one in again]
    unlike = sum(len({row.tobytes() for row in rows}) > 1 for rows in drawn)
    assert unlike > 5 if drawing else unlike == 0


REFUSED = Path(__file__).with_name("refused.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize("case", REFUSED)
def test_bad_tables_give_one_line(case):
    d, n, rest = case.split(maxsplit=2)
    table, line = rest.split(" -> ")
    with pytest.raises(InputError) as error:
        make(json.loads(table)).bind(int(d), int(n), SINGLE)
    assert str(error.value).startswith(line) and "\n" not in str(error.value)
