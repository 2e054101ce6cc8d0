"""Report cards: against exactly known errors, and counts of bits from definitions."""

import re
from math import comb, log2

import numpy as np
import pytest

from mpisim.analysis import card
from mpisim.analysis.card_bits import entropies
from mpisim.compressors import make
from mpisim.testing import SINGLE
from tests.compressors.cases import draw


def test_randk_on_ones_errs_by_omega_exactly():
    """Each draw keeps k equal entries times d / k: |C(v) - v|^2 = (d/k - 1) |v|^2."""
    row = card.measure(card.bound_to({"name": "randk", "k": 40}, 400), "ones")
    np.testing.assert_allclose(row.errors, 9.0, rtol=1e-6)
    np.testing.assert_allclose(row.scaled, 0.9, rtol=1e-6)
    assert np.all(row.bits == 32 * 40 / 400)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("spec", [spec for specs in card.CHART.values() for spec in specs], ids=str)
def test_no_compressor_is_below_the_bound_on_the_sphere(spec):
    """The uncertainty principle, of which normal vectors are the typical case."""
    row = card.measure(card.bound_to(spec, 400), "normal")
    assert row.above_bound > 1 and row.above_sphere > 1


def test_the_sphere_against_arcs_and_caps():
    """Arcs: area t / pi, mean sin(t) / t. Caps in space: (1 - cos t) / 2 and (1 + cos t) / 2."""
    for d, area, mean in (
        (2, lambda t: t / np.pi, lambda t: np.sin(t) / t),
        (3, lambda t: (1 - np.cos(t)) / 2, lambda t: (1 + np.cos(t)) / 2),
    ):
        t = np.array([0.001, 0.1, 0.5, 1.0, 1.5])
        bits, least = card.sphere(d)
        least = np.exp(np.interp(-np.log2(area(t)) / d, bits, np.log(least)))
        np.testing.assert_allclose(least, 1 - mean(t) ** 2, rtol=1e-3)


def test_a_card_is_printed_and_drawn(tmp_path, command, monkeypatch):
    """Also of vectors in a file, and as a page."""
    monkeypatch.setattr(card, "CHART", {"RandK": [{"name": "randk", "k": 0.1}]})
    vectors, out = tmp_path / "v.npy", tmp_path / "card.html"
    np.save(vectors, np.random.default_rng(0).standard_normal((7, 33)).astype(np.float32))
    words = ["card", "topk", "--set", "compressor.k=5", "--d", "60", "--vectors", vectors]
    text = command(*words, "--d", "80", "-o", out)
    assert "topk (k = 5): 64 workers" in text and "alpha: 0.0833333 claimed" in text
    assert "d = 80" in text and "pays on links below" in text
    assert re.search("33 +given", text)
    page = out.read_text()
    assert "data:image/png;base64,iVBOR" in page and "topk (k = 5): 64 workers" in page
    np.save(vectors, np.zeros((7, 33)))
    assert "finite and not zero" in command(*words, code=2)
    for nowhere in (vectors / "card.html", vectors / "card.png"):
        line = command(*words[:-2], "-o", nowhere, code=2).splitlines()[-1]
        assert line.startswith(f"mpisim: {nowhere}: ")


def test_the_mean_of_equal_vectors_and_its_slope(command):
    """Natural compression of each worker errs independently; PermK's parts add up to the vector."""
    permk = command("card", "permk", "--d", "128")
    assert re.search(r"A: 1, B: 1, A - B: 0 claimed of 64 workers, \d\.?\d*e-1\d measured", permk)
    assert not re.search(r"\(n = 64\); slope", permk)
    natural = command("card", "natural", "--d", "128")
    assert re.search(r"A - B: 0\.00195312 claimed of 64 workers, 0\.00\d+ measured", natural)
    assert re.search(r"\(n = 64\); slope -(0\.9|1\.0)\d\n", natural)


def test_a_compressor_that_may_be_fitted_has_a_card_without_a_problem(command):
    text = command("card", "rank-k", "--set", "compressor.k=1", "--d", "36")
    assert "alpha: 0.166667 claimed" in text


def test_one_coordinate_has_no_distance_to_the_sphere(command):
    text = command("card", "identity", "--d", "1")
    assert " nan\n" in text and "messages are shorter" not in text


D, M = 64, 50
V = np.random.default_rng(0).standard_normal((M, D))


def bits_of(**table) -> dict[str, float]:
    return entropies(make(table).bind(D, M, SINGLE).compress(V, draw(M)))


def test_bits_by_hand():
    assert bits_of(name="randk", k=6) == {"values": 192}
    assert bits_of(name="topk", k=6) == pytest.approx({"values": 192, "indices": log2(comb(D, 6))})
    assert bits_of(name="scaled-sign") == {"norms": 32, "signs": D} == bits_of(name="drive")


@pytest.mark.parametrize(
    "table", [{"name": "qsgd", "s": 3}, {"name": "natural"}, {"name": "rank-k", "k": 2}], ids=str
)
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
