"""smooth(inner, L_i): what is sent before round 0, the messages, moments, and singular L_i."""

from itertools import product

import numpy as np
import pytest

from mpisim.testing.moments import biased, errors, exceeds, limit
from tests.compressors.cases import DOUBLE, SINGLE, chosen, draw
from tests.compressors.smooth_support import (
    SCHEMES,
    name_of,
    prepared,
    roots_of,
    smooth,
    spd,
    vectors,
)
from tests.theory.true_cal_l import true_cal_L
from tests.wire.messages import contents

each_scheme = pytest.mark.parametrize("inner", SCHEMES, ids=name_of)


@pytest.mark.drawn(8)
@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize(
    ("table", "values"),
    [
        (smooth({"name": "quant-plus"}), 81 + 9),
        (smooth({"name": "quant-plus", "steps": "fixed"}), 81),
        (smooth({"name": "block-quant-plus", "blocks": 4}), 81 + 4),
        (smooth({"name": "block-quant-plus", "blocks": 4, "steps": "fixed"}), 81),
        (smooth({"name": "block-quant", "blocks": 4, "s": 1}), 81),
        (smooth({"name": "rand-tau-plus"}), 81),
        (smooth({"name": "identity"}), 81),
        (smooth({"name": "quant-plus"}, rank=2), 2 * 9 + 1 + 9),
        ({"name": "quant-plus"}, 0),
    ],
    ids=lambda x: name_of(x) if isinstance(x, dict) else str(x),
)
def test_set_up_bits(table, values, precision):
    _, star = prepared(table, spd(3, 9), precision)
    totals = star.ledger.totals
    assert totals["bits_up"] == 3 * values * precision.bits
    assert totals["bits_up_max"] == values * precision.bits
    assert totals["paper_bits_up"] == 3 * values * 32
    assert totals["framing_bits_up"] == totals["bits_down"] == 0
    assert star.ledger.worker_bits_up.tolist() == [values * precision.bits] * 3


@pytest.mark.drawn(8)
@each_scheme
def test_the_message_is_the_inner_ones(inner):
    """decoded = L^{1/2} C(L^{†1/2} v), total in worker order, and the wire carries C's message."""
    L, v = spd(4, 9), vectors(4, 9)
    compressor, _ = prepared(smooth(inner), L)
    message = compressor.compress(v, draw(4))
    roots = roots_of(compressor)
    r = np.array([np.linalg.solve(root, row) for root, row in zip(roots, v, strict=True)])
    np.testing.assert_allclose(
        np.einsum("nij,njk,nk->ni", compressor._inverses, roots, v), v, rtol=1e-9, atol=1e-9
    )
    own = compressor.inner.compress(
        np.einsum("nij,nj->ni", compressor._inverses, v), draw(4)
    ).decoded()
    np.testing.assert_allclose(
        compressor.inner.compress(r, draw(4)).decoded(), own, rtol=1e-6, atol=1e-9
    )
    decoded = message.decoded()
    np.testing.assert_allclose(decoded, np.einsum("nij,nj->ni", roots, own), rtol=1e-9, atol=1e-12)
    packed = message.encode()
    again = compressor.form(draw(4)).decode(packed.data, packed.sizes)
    assert contents(again.message) == contents(message.message)
    assert again.decoded().tobytes() == decoded.tobytes()
    total = np.zeros(9)
    for row in decoded:
        total += row
    assert again.total().tobytes() == total.tobytes()
    assert np.array_equal(
        compressor.paper_bits(message), compressor.inner.paper_bits(again.message)
    )


@pytest.mark.drawn(8)
@pytest.mark.parametrize("seed", [0, 1])
@each_scheme
def test_moments(inner, seed):
    """E S(v) = v; E|C(r) - r|^2 <= shift_omega |r|^2 and E|S(v) - v|^2 <= cal-L |r|^2 for
    r = L^{†1/2} v; E|S(v) - v|^2 <= omega |v|^2. All n workers have the same L and v."""
    n = 3000
    compressor, _ = prepared(smooth(inner), np.repeat(spd(1, 6, seed), n, axis=0))
    v = vectors(1, 6, seed)[0]
    r = compressor._inverses[0] @ v
    message = compressor.compress(np.tile(v, (n, 1)), draw(n))
    c = message.decoded()
    assert not biased(c, v, compressor.omega)
    assert not exceeds(errors(c, v), compressor.omega, limit(6))
    assert not exceeds(errors(message.message.decoded(), r), compressor.shift_omega, limit(6))
    assert not exceeds(errors(c, v), compressor.cal_L_max * (r @ r) / (v @ v), limit(6))
    top = np.linalg.eigvalsh(roots_of(compressor)[0])[-1] ** 2
    assert compressor.cal_L_max <= compressor.shift_omega * top * (1 + 1e-9)


def all_roundings(compressor, v, up):
    """S(v) of worker 0 for every way of rounding, and probabilities; worker i rounds way i."""
    ways = np.array(list(product([False, True], repeat=v.size)))
    words = np.where(ways, np.uint64(0), np.uint64(2**64 - 1))
    weights = np.prod(np.where(ways, up, 1 - up), axis=1)
    c = compressor.compress(np.tile(v, (len(ways), 1)), chosen(words)).decoded()
    return c, weights


QUANTIZERS = [t for t in SCHEMES if t["name"] in ("quant-plus", "qsgd") and "norm" not in t]


@pytest.mark.parametrize("inner", QUANTIZERS, ids=name_of)
def test_exact_moments_over_all_roundings(inner):
    """E S(v) = v and E|S(v) - v|^2 is the formula's, which at its worst v is cal-L itself."""
    one = spd(1, 3, seed=8)
    compressor, _ = prepared(smooth(inner), np.repeat(one, 8, axis=0), DOUBLE)
    root = roots_of(compressor)[0]
    L = root @ root
    h = 1 / compressor.inner.form(draw(8)).s_by_worker[0] * np.ones(3)
    true, worst = true_cal_L(L.diagonal(), h)
    assert true <= compressor.cal_L_max * (1 + 1e-12)
    for r in (vectors(1, 3)[0], worst, worst * [-2, 2, -2], np.array([0.0, 3.0, 0.0])):
        v, y = root @ r, np.abs(r) / np.linalg.norm(r) / h
        c, weights = all_roundings(compressor, v, y - np.floor(y))
        np.testing.assert_allclose(weights @ c, v, rtol=1e-7, atol=1e-9)
        error = weights @ ((c - v) ** 2).sum(axis=1) / (r @ r)
        fraction = y - np.floor(y)
        formula = (L.diagonal() * h**2 * fraction * (1 - fraction)).sum()
        assert error == pytest.approx(formula, rel=1e-6, abs=1e-9)
        if abs(r @ worst) == np.linalg.norm(r):
            assert error == pytest.approx(true, rel=1e-5)
