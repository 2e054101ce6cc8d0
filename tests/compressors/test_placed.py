"""Compression of tensors on a device: the same messages, decoded there to the same vectors.

Tensors on the CPU stand for those on a device: nothing counts as the host's memory.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from mpisim.comm.network import compressed
from mpisim.wire.composed import Parts
from tests.compressors.cases import CASES, draw
from tests.compressors.test_battery import SHAPES, each_case, vectors
from tests.helpers import FALLBACKS, Crossings, sampled
from tests.wire.messages import PRECISIONS, contents

torch = pytest.importorskip("torch")
placed = pytest.importorskip("mpisim.wire.placed").placed
CPU = torch.device("cpu")
HOST_ONLY = ("rank-k", "drive", "eden", "quic-fl", "rotated", "sparse-dithering", "spherical")
HOST_ONLY += ("toplek",)


@pytest.fixture(autouse=True)
def crossings(monkeypatch):
    """A device with memory of its own."""
    return Crossings(monkeypatch)


@pytest.mark.drawn(10)
@each_case
def test_the_same_message_and_the_same_vectors(case):
    for precision, (m, d) in sampled(itertools.product(PRECISIONS, SHAPES), 6):
        compare(case, precision, m, d)


def on_host(message):
    """The message that crosses."""
    if isinstance(message, Parts):
        return Parts(message.form, tuple(map(on_host, message.parts)))
    return message.inner


def compare(case, precision, m, d):
    compressor, v = case.bind(d, max(m, 3), precision), vectors(m, d, precision)
    there = compressed(compressor, torch.from_numpy(v), draw(m))
    here = compressor.compress(v, draw(m))
    crossed = on_host(there)
    assert type(crossed) is type(here)
    beside = 2 * np.finfo(precision.wire).eps  # norms are added up in another order
    assert np.allclose(crossed.decoded(), here.decoded(), rtol=beside, atol=0)
    packed, paper = there.encode(), compressor.paper_bits(crossed)
    assert np.array_equal(paper, compressor.paper_bits(here))
    again = placed(compressor.form(draw(m)).decode(packed.data, packed.sizes), CPU)
    assert contents(on_host(again)) == contents(crossed)
    assert np.array_equal(again.payload_bits, there.payload_bits)
    rows = vectors(m, d, precision, seed=1)
    wanted = rows.copy()
    crossed.add_to(wanted)
    for message in (there, again):
        sums = torch.from_numpy(rows.copy())
        message.add_to(sums)
        assert same(sums, wanted) and same(message.decoded(), crossed.decoded())
        assert same(message.total(), crossed.total())


def same(tensor, array) -> bool:
    """Bit by bit, but for the sign of zero."""
    return tensor.numpy().dtype == array.dtype and np.array_equal(tensor.numpy(), array)


@pytest.mark.drawn(10)
@each_case
def test_only_what_is_packed_crosses(case, crossings):
    """Whole vectors cross for compressors, or messages, without kernels for a device alone."""
    compressor, v = case.bind(1000, 3), torch.from_numpy(vectors(3, 1000))
    message = compressed(compressor, v, draw(3))
    again = placed(on_host(message), CPU)
    [x.decoded() for x in (message, again)]
    outer = case.table.get("outer", {"name": ""})["name"]
    rounds = case.table.get("inner", {"name": ""})["name"] in ("qsgd", "natural", "identity")
    by_host = case.table["name"] in HOST_ONLY or "shared" in case.table
    if by_host or (outer and rounds):
        assert FALLBACKS & crossings.names
    else:
        assert not FALLBACKS & crossings.names
        # levels and codes cross as whole bytes, indices with 64 bits
        assert 0 < crossings.to_host.total() <= 3 * 8 * 1000


def test_special_numbers():
    """Infinities, NaN, zeros of both signs and ties are treated alike."""
    rows = [
        [np.nan, 1.0, -1.0, 0.0, -0.0, 2.0],
        [np.inf, 1.0, -np.inf, 0.0, 0.0, -3.0],
        [1.0, -1.0, 1.0, -1.0, 1.0, -1.0],
        [0.0, -0.0, 0.0, -0.0, 0.0, -0.0],
        [1e-40, -1e38, 1e-30, 3e38, -2.0, 1e-45],
    ]
    for dtype in ("float32", "float64"):
        v = np.array(rows, dtype)
        for case in CASES:
            if case.table["name"] == "rank-k":
                continue
            compressor = case.bind(6, 5, PRECISIONS[0 if dtype == "float32" else 1])
            with np.errstate(all="ignore"):
                here = compressor.compress(v, draw(5)).decoded()
                there = compressed(compressor, torch.from_numpy(v), draw(5))
                wanted = on_host(there).decoded()
            assert np.allclose(here, wanted, rtol=2e-7, atol=0, equal_nan=True), case.table
            assert np.array_equal(there.decoded().numpy(), wanted, equal_nan=True), case.table


def test_the_words_are_those_of_the_host():
    for first, count in ((0, 1), (3, 7), (1000, 12)):
        drawn = draw(4, round=99, seed=2**63 - 1, first=first)
        clients = np.array([first, first + 2, first + 2, first + 2, first + 3])
        some = dataclasses.replace(drawn, clients=clients, message=5)
        for each in (drawn, some):
            for i, row in enumerate(each.words(count)):
                assert np.array_equal(each.row_on(CPU, i, count).numpy().view(np.uint64), row)


def test_a_compressor_of_a_plugin_may_know_numpy_only(crossings):
    from mpisim.compressors.sparse import RandK

    class Halved(RandK):
        def compress(self, v, draw):
            return self.form(draw).take(np.multiply(v, 0.5))

    compressor, v = Halved(k=3).bind(40, 2, PRECISIONS[0]), vectors(2, 40, PRECISIONS[0])
    message = compressed(compressor, torch.from_numpy(v), draw(2))
    assert same(message.decoded(), compressor.compress(v, draw(2)).decoded())
    assert crossings.to_host == {"compressed": v.nbytes}
