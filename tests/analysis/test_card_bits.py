"""What bits are for: against counts from definitions."""

from math import comb, log2

import numpy as np
import pytest

from mpisim.analysis.card_bits import entropies
from mpisim.compressors import make
from mpisim.testing import SINGLE
from tests.compressors.cases import draw

D, M = 64, 50
V = np.random.default_rng(0).standard_normal((M, D))


def bits_of(**table) -> dict[str, float]:
    return entropies(make(table).bind(D, M, SINGLE).compress(V, draw(M)))


def test_values_and_indices():
    assert bits_of(name="randk", k=6) == {"values": 192}
    topk = bits_of(name="topk", k=6)
    assert topk["values"] == 192 and topk["indices"] == pytest.approx(log2(comb(D, 6)))


def test_signs_and_scales():
    assert bits_of(name="scaled-sign") == {"norms": 32, "signs": D}
    assert bits_of(name="drive") == {"norms": 32, "signs": D}


@pytest.mark.parametrize("table", [{"name": "qsgd", "s": 3}, {"name": "natural"}])
def test_no_code_takes_less_than_the_entropy(table):
    for codec in ("paper", "entropy"):
        message = make(table | {"codec": codec}).bind(D, M, SINGLE).compress(V, draw(M))
        assert message.payload_bits.mean() > sum(entropies(message).values())


def test_parts_add_up():
    """A worker of PermK keeps D / M coordinates: natural's codes of them."""
    outer, inner = {"name": "permk"}, {"name": "qsgd", "s": 3}
    table = {"name": "compose", "outer": outer, "inner": inner}
    bits = entropies(make(table).bind(D, 8, SINGLE).compress(V[:8], draw(8)))
    assert bits["norms"] == 32 and 0 < bits["levels"] <= 8 * log2(4)
