"""Square roots and pseudo-inverses of L_i, singular ones too, and their low-rank substitutes."""

import numpy as np
import pytest

from mpisim.compressors.matrix_roots import cut_off, pseudo_inverse, square_root
from mpisim.testing.moments import biased, errors, exceeds, limit
from tests.compressors.cases import DOUBLE, SINGLE, draw
from tests.compressors.smooth_support import (
    SCHEMES,
    name_of,
    prepared,
    roots_of,
    smooth,
    spd,
    vectors,
)


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("inner", [SCHEMES[4], SCHEMES[5], SCHEMES[3], SCHEMES[9]], ids=name_of)
def test_singular_matrices(inner, precision):
    """On the range of L_i, S is unbiased; off it, nothing is sent."""
    n, near = 3000, 1e-4 if precision is SINGLE else 1e-7
    one = spd(1, 6, seed=1, rank=4, shared=0.0)
    one[0, :, 2] = one[0, 2, :] = 0  # a feature that no sample has
    compressor, _ = prepared(smooth(inner), np.repeat(one, n, axis=0), precision, shared=0.0)
    root, inverse = roots_of(compressor)[0], compressor._inverses[0]
    projector = np.linalg.pinv(one[0]) @ one[0]
    np.testing.assert_allclose(root @ inverse, projector, atol=near)
    v = one[0] @ vectors(1, 6)[0]
    c = compressor.compress(np.tile(v, (n, 1)), draw(n)).decoded()
    assert not biased(c, root @ (inverse @ v), compressor.omega)
    np.testing.assert_allclose(root @ (inverse @ v), v, atol=near)
    assert not exceeds(errors(c, v), compressor.omega, limit(6))
    assert np.isfinite(compressor.omega) and np.isfinite(compressor.cal_L_max)
    values = np.linalg.eigvalsh(one[0])
    least = values[values > 1e-9 * values[-1]][0]
    assert compressor.omega == pytest.approx(compressor.cal_L_max / least, rel=1e-2)
    none = np.eye(6)[2]
    assert not compressor.compress(np.tile(none, (n, 1)), draw(n)).decoded().any()


def test_square_roots():
    for wire in (np.dtype("f4"), np.dtype("f8")):
        for L in (spd(1, 9)[0], spd(1, 9, rank=3, shared=0.0)[0], np.zeros((4, 4))):
            root = square_root(L, wire)
            assert np.array_equal(root, root.T)
            np.testing.assert_allclose(root @ root, L, atol=1e-12 * (1 + np.abs(L).max()))
            inverse, least = pseudo_inverse(root.astype(wire), wire)
            expected = np.linalg.pinv(root, rcond=np.sqrt(cut_off(len(L), wire)))
            size = 1 + np.abs(expected).max()
            np.testing.assert_allclose(
                inverse, expected, atol=size * len(L) * 1e2 * np.finfo(wire).eps
            )
            values = np.linalg.eigvalsh(L)
            kept = values[values > 1e-9 * max(values[-1], 1e-300)] if values[-1] > 0 else []
            if len(kept):
                assert least == pytest.approx(kept[0], rel=1e-3)
            else:
                assert least == 0


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_low_rank_over_approximation(rank):
    """SAQ, A.3: sum (lambda_k - l) u_k u_k^T + l I, l = lambda_{r+1}, from r d + 1 values."""
    L = spd(2, 8)
    compressor, star = prepared(smooth({"name": "qsgd", "s": 1}, rank=rank), L, DOUBLE)
    assert star.ledger.totals["bits_up"] == 2 * 64 * (8 * rank + 1)
    for root, matrix in zip(roots_of(compressor), L, strict=True):
        values, u = np.linalg.eigh(matrix)
        tail = values[::-1][rank]
        expected = (u * np.where(values > tail, values, tail)) @ u.T
        np.testing.assert_allclose(root @ root, expected, rtol=1e-10, atol=1e-10)
        assert np.linalg.eigvalsh(root @ root - matrix)[0] > -1e-10
    exact, _ = prepared(smooth({"name": "qsgd", "s": 1}), L, DOUBLE)
    assert compressor.cal_L_max >= exact.cal_L_max


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
def test_diagonal_over_approximation(precision):
    """SAQ, A.3: D = Diag(sum_k |L_jk|) >= L, from d values, as much as one gradient."""
    L = spd(3, 8)
    quant = {"name": "quant-plus", "beta": 4.0}
    compressor, star = prepared(smooth(quant, approximation="diagonal"), L, precision)
    assert star.ledger.totals["bits_up"] == 3 * precision.bits * (8 + 8)  # and 8 steps
    near = 1e-6 if precision is SINGLE else 1e-14
    rng = np.random.default_rng(0)
    for root, matrix in zip(roots_of(compressor), L, strict=True):
        D = np.array([sum(abs(x) for x in row) for row in matrix])
        np.testing.assert_allclose(root**2, D, rtol=near)
        assert np.linalg.eigvalsh(np.diag(root**2) - matrix)[0] > -near * D.max()
        for _ in range(20):  # s^{-1} |L| s is another diagonal matrix above L
            s = np.exp(0.3 * rng.standard_normal(8))
            other = np.abs(matrix) @ s / s
            assert np.linalg.eigvalsh(np.diag(other) - matrix)[0] > -1e-12
            assert other.sum() > D.sum()
    exact, _ = prepared(smooth(quant), L, precision)
    assert compressor.cal_L_max > exact.cal_L_max
    assert compressor.inner.h.rows.shape == (3, 8)
