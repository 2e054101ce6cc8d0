"""smooth(inner, L_i): set-up, messages, moments, singular matrices, substitutes, theory steps."""

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.numerics.sums import ordered_sum
from mpisim.problems import PROBLEMS
from mpisim.testing.moments import biased, errors, exceeds, limit, vectors
from tests.compressors.cases import DOUBLE, SINGLE, draw, name_of, roundings
from tests.compressors.smooth_support import SCHEMES, Only, network, prepared, roots_of, smooth, spd
from tests.helpers import some_of
from tests.theory.support import true_cal_L
from tests.wire.messages import contents

each_scheme = pytest.mark.parametrize("inner", SCHEMES, ids=name_of)


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize(
    ("table", "values"),
    [
        (smooth({"name": "quant-plus"}), 81 + 9),
        (smooth({"name": "quant-plus", "steps": "fixed"}), 81),
        (smooth({"name": "block-quant-plus", "blocks": 4}), 81 + 4),
        (smooth({"name": "rand-tau-plus"}), 81),
        (smooth({"name": "bernoulli", "p": 0.5}), 81),
        (smooth({"name": "quant-plus"}, rank=2), 2 * 9 + 1 + 9),
        (smooth({"name": "quant-plus"}, approximation="diagonal"), 9 + 9),
        ({"name": "quant-plus"}, 0),
    ],
    ids=str,
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
    close, inverses = np.testing.assert_allclose, compressor._inverses
    close(np.einsum("nij,njk,nk->ni", inverses, roots, v), v, rtol=1e-9, atol=1e-9)
    sent = compressor.inner.compress(np.einsum("nij,nj->ni", inverses, v), draw(4)).decoded()
    close(compressor.inner.compress(r, draw(4)).decoded(), sent, rtol=1e-6, atol=1e-9)
    decoded = message.decoded()
    close(decoded, np.einsum("nij,nj->ni", roots, sent), rtol=1e-9, atol=1e-12)
    packed = message.encode()
    again = compressor.form(draw(4)).decode(packed.data, packed.sizes)
    assert contents(again.inner) == contents(message.inner)
    assert again.decoded().tobytes() == decoded.tobytes()
    assert again.total().tobytes() == ordered_sum(decoded).tobytes()
    assert np.array_equal(compressor.paper_bits(message), compressor.inner.paper_bits(again.inner))


@each_scheme
@some_of(8, seed=[0, 1])
def test_moments(inner, seed):
    """E S(v) = v; E|C(r) - r|^2 <= shift_omega |r|^2 and E|S(v) - v|^2 <= cal-L |r|^2 for
    r = L^{†1/2} v; E|S(v) - v|^2 <= omega |v|^2. All n workers have the same L and v."""
    n = 3000
    compressor, _ = prepared(smooth(inner), np.repeat(spd(1, 6, seed), n, axis=0))
    v = vectors(1, 6, seed=seed)[0]
    r = compressor._inverses[0] @ v
    message = compressor.compress(np.tile(v, (n, 1)), draw(n))
    c = message.decoded()
    assert not biased(c, v, compressor.omega)
    assert not exceeds(errors(c, v), compressor.omega, limit(6))
    assert not exceeds(errors(message.inner.decoded(), r), compressor.shift_omega, limit(6))
    assert not exceeds(errors(c, v), compressor.cal_L_max * (r @ r) / (v @ v), limit(6))
    top = np.linalg.eigvalsh(roots_of(compressor)[0])[-1] ** 2
    assert compressor.cal_L_max <= compressor.shift_omega * top * (1 + 1e-9)


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
        c, weights = roundings(compressor, v, y - np.floor(y))
        np.testing.assert_allclose(weights @ c, v, rtol=1e-7, atol=1e-9)
        error = weights @ ((c - v) ** 2).sum(axis=1) / (r @ r)
        fraction = y - np.floor(y)
        formula = (L.diagonal() * h**2 * fraction * (1 - fraction)).sum()
        assert error == pytest.approx(formula, rel=1e-6, abs=1e-9)
        if abs(r @ worst) == np.linalg.norm(r):
            assert error == pytest.approx(true, rel=1e-5)


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("inner", [SCHEMES[4], SCHEMES[5], SCHEMES[3], SCHEMES[9]], ids=name_of)
def test_singular_matrices(inner, precision):
    """On the range of L_i, S is unbiased; off it, nothing is sent."""
    n, near = 2000, 1e-4 if precision is SINGLE else 1e-7
    one = spd(1, 6, seed=1, rank=3, shared=0.0)
    one[0, :, 2] = one[0, 2, :] = 0  # a feature that no sample has
    compressor, _ = prepared(smooth(inner), np.repeat(one, n, axis=0), precision, shared=0.0)
    root, inverse = roots_of(compressor)[0], compressor._inverses[0]
    assert np.array_equal(root, root.T)
    projector = np.linalg.pinv(one[0]) @ one[0]
    np.testing.assert_allclose(root @ inverse, projector, atol=near)
    v = one[0] @ vectors(1, 6)[0]
    c = compressor.compress(np.tile(v, (n, 1)), draw(n)).decoded()
    assert not biased(c, root @ (inverse @ v), compressor.omega)
    assert not exceeds(errors(c, v), compressor.omega, limit(6))
    values = np.linalg.eigvalsh(one[0])
    least = values[values > 1e-9 * values[-1]][0]
    assert compressor.omega == pytest.approx(compressor.cal_L_max / least, rel=1e-2)
    none = np.eye(6)[2]
    assert not compressor.compress(np.tile(none, (n, 1)), draw(n)).decoded().any()


def test_nothing_is_sent_where_all_matrices_are_zero():
    zeros = np.zeros((2, 4, 4))
    compressor, _ = prepared(smooth({"name": "quant-plus", "beta": 4.0}), zeros, shared=0.0)
    assert compressor.omega == compressor.cal_L_max == 0
    assert not compressor.compress(vectors(2, 4), draw(2)).decoded().any()


@pytest.mark.parametrize(
    "keys", [{"rank": 1}, {"rank": 3}, {"rank": 7}, {"approximation": "diagonal"}], ids=str
)
def test_over_approximations(keys):
    """SAQ, A.3: sum (lambda_k - l) u_k u_k^T + l I, l = lambda_{r+1}; and Diag(sum_k |L_jk|)."""
    L, quant = spd(2, 8), {"name": "quant-plus", "beta": 4.0}
    compressor, _ = prepared(smooth(quant, **keys), L, DOUBLE)
    for root, matrix in zip(roots_of(compressor), L, strict=True):
        values, u = np.linalg.eigh(matrix)
        tail = values[::-1][keys.get("rank", 0)]
        made, expected = root @ root, (u * np.where(values > tail, values, tail)) @ u.T
        if "rank" not in keys:
            made, expected = np.diag(root**2), np.diag([sum(map(abs, row)) for row in matrix])
        np.testing.assert_allclose(made, expected, rtol=1e-10, atol=1e-10)
        assert np.linalg.eigvalsh(made - matrix)[0] > -1e-10
    exact, _ = prepared(smooth(quant), L, DOUBLE)
    assert compressor.cal_L_max >= exact.cal_L_max


@pytest.mark.parametrize(
    ("inner", "omega"),
    [  # Diag(L_i) has equal entries, so steps and probabilities are the uniform ones
        ({"name": "block-quant-plus", "blocks": 1, "beta": 5.0}, 3**0.5 * (3**0.5 + 19**0.5) / 8),
        ({"name": "rand-tau-plus", "tau": 1.0}, 3.0 - 1),
    ],
    ids=str,
)
def test_quadratics_whose_shared_part_is_negative(inner, omega):
    """L_i = t T + c I with c < 0: n mu is n lambda, not n c, and all coordinates are sent."""
    problem = PROBLEMS["quadratic"](dimension=3, noise_b=0.5, lambda_=0.01)
    problem = problem.loaded(5, 0, 5, 1, np.dtype(np.float64))
    assert problem.convex and problem.largest_hessian().shared < -0.1
    compressor = make(smooth(inner)).bind(3, 5, DOUBLE)
    compressor.prepare(network(5, DOUBLE), problem)
    assert compressor.shift_omega == pytest.approx(omega, rel=1e-12)


def test_it_needs_matrices_and_workers():
    class None_(Only):
        def largest_hessian(self):
            raise InputError("method.stepsize: nothing is known")

    compressor = make(smooth({"name": "qsgd", "s": 1})).bind(5, 2, SINGLE)
    with pytest.raises(InputError, match=r"compressor\.name: 'smooth' needs smoothness matrices"):
        compressor.prepare(network(2), None_(spd(2, 5)))
    with pytest.raises(InputError, match="must be prepared"):
        compressor.form(draw(2))
    compressor, star = prepared(smooth({"name": "quant-plus"}), spd(2, 5))
    with pytest.raises(InputError, match="cannot compress messages of the server"):
        star.broadcast(np.ones(5), compressor)


@pytest.mark.parametrize(("d", "n", "s"), [(54, 6, 1), (123, 8, 1), (300, 8, 2), (9, 30, 1)])
def test_the_baselines_of_the_paper_are_the_defaults(d, n, s):
    """s = floor(sqrt(d) / n), at least 1, and B = n, at most d: SAQ's published code."""
    plain, blocks = (make({"name": name}).bind(d, n, SINGLE) for name in ("qsgd", "block-quant"))
    for one in (plain, blocks):
        assert one.form(draw(2)).s_by_worker.tolist() == [[s]]
    assert plain.omega == min(d / s**2, d**0.5 / s)
    assert blocks.form(draw(2)).norms == min(n, d)
    plus = make({"name": "block-quant-plus"}).bind(d, n, SINGLE)
    sizes, s = np.diff(plus.starts), plus.form(draw(2)).s_by_worker.ravel()[plus.starts[:-1]]
    assert sizes.size == min(n, d)
    assert (s**2 + np.sqrt(sizes) * s).sum() == pytest.approx(d / n)
