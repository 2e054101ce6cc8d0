"""Permutations of mappings (PermK paper, Definition 8, Lemma 11) over every permutation."""

import dataclasses

import numpy as np
import pytest

from mpisim.compressors import make
from tests.compressors.cases import DOUBLE, SINGLE, draw
from tests.compressors.permutations import draws, error_of_mean, sides
from tests.wire.messages import contents

ANGLES = np.pi / 2 + 2 * np.pi * np.arange(3) / 3
FRAME = [[[np.sqrt(2) * np.cos(t), np.sqrt(2) * np.sin(t)]] for t in ANGLES]
C, S = 0.8 * np.sqrt(2), 0.6 * np.sqrt(2)


def full(*matrices):
    """Any matrices: the rows of Q_j are sent, those of I receive them."""
    d = len(matrices[0])
    return {
        "analysis": [list(map(list, m)) for m in matrices],
        "synthesis": [np.eye(d).tolist()] * len(matrices),
    }


# the keys, d, n and theta
BASIS = {"analysis": [[[1.0, 0.0]], [[0.0, 1.0]]], "synthesis": [[[2.0, 0.0]], [[0.0, 2.0]]]}
IDLE = {"analysis": [[[2.0]], [[2.0]], [], []], "synthesis": [[[1.0]], [[1.0]], [], []]}
LEMMA = {
    "PermK's coordinates": (BASIS, 2, 2, 4.0),
    "PermK in another basis": ({"analysis": [[[C, S]], [[-S, C]]]}, 2, 2, 4.0),
    "three directions in the plane": ({"analysis": FRAME}, 2, 3, 6.0),
    "any theta": (full([[2, 0.5], [0.5, 0]], [[0, -0.5], [-0.5, 2]]), 2, 2, 4.5),
    "some send nothing": (IDLE, 1, 4, 8.0),
    "the identity": (full(np.eye(2), np.eye(2), np.eye(2)), 2, 3, 3.0),
}


def outcomes_of(compressor, a):
    n = len(a)
    return [compressor.compress(a, one).decoded() for one in draws(list(range(n, 0, -1)), n)]


@pytest.mark.parametrize("name", LEMMA)
def test_lemma_11(name):
    keys, d, n, theta = LEMMA[name]
    compressor = make({"name": "permuted-mappings"} | keys).bind(d, n, DOUBLE)
    omega = theta / n - 1
    assert compressor.omega == pytest.approx(omega, abs=1e-12)
    A = (omega + 1) / n - (1 - theta / n**2) / (n - 1)
    B = 1 - n / (n - 1) * (1 - theta / n**2)
    assert (
        pytest.approx(A, abs=1e-12) == compressor.A and pytest.approx(B, abs=1e-12) == compressor.B
    )
    a = np.random.default_rng(n).standard_normal((n, d))
    outcomes = outcomes_of(compressor, a)
    np.testing.assert_allclose(np.mean(outcomes, axis=0), a, rtol=1e-9, atol=1e-12)
    squares = np.mean([((c - a) ** 2).sum(axis=1) for c in outcomes], axis=0)
    np.testing.assert_allclose(squares, omega * (a**2).sum(axis=1), rtol=1e-9, atol=1e-12)
    mean_square, square_mean = sides(a)
    right = A * mean_square - B * square_mean
    assert error_of_mean(outcomes, a) == pytest.approx(right, rel=1e-9, abs=1e-12)


def test_messages_cross_the_wire_in_any_blocks():
    keys, v = {"name": "permuted-mappings", "analysis": FRAME}, np.arange(6.0).reshape(3, 2) / 7
    compressor = make(keys).bind(2, 3, SINGLE)
    whole = compressor.compress(v, draw(3))
    packed = whole.encode()
    again = compressor.form(draw(3)).decode(packed.data, packed.sizes)
    assert contents(again) == contents(whole) and packed.payload_bits.tolist() == [32] * 3
    assert compressor.paper_bits(whole).tolist() == [32] * 3
    parts = [compressor.compress(v[:1], draw(1)), compressor.compress(v[1:], draw(2, first=1))]
    assert np.array_equal(np.vstack([p.decoded() for p in parts]), whole.decoded())
    some = dataclasses.replace(draw(3), clients=np.array([0, 2]))
    assert np.array_equal(compressor.compress(v[[0, 2]], some).decoded(), whole.decoded()[[0, 2]])
    again = [dataclasses.replace(draw(3, round=r), clients=np.array([0, 2, 2])) for r in range(20)]
    sent = [compressor.compress(v[[0, 2, 2]], one).decoded() for one in again]
    assert np.array_equal(sent[0][:2], whole.decoded()[[0, 2]])
    assert 5 < sum(not np.array_equal(rows[1], rows[2]) for rows in sent) < 20


def test_without_condition_2_the_constants_are_attained():
    """S is no multiple of I: an inequality, with equality along its leading eigenvector."""
    keys = full([[2, 0.5], [-0.5, 0]], [[0, -0.5], [0.5, 2]])
    compressor = make({"name": "permuted-mappings"} | keys).bind(2, 2, DOUBLE)
    q = np.array(keys["analysis"])
    values, vectors = np.linalg.eigh(sum(one.T @ one for one in q))
    assert values[1] > values[0] + 0.1 and compressor.omega == pytest.approx(values[1] / 2 - 1)
    for a in np.random.default_rng(0).standard_normal((20, 2, 2)):
        outcomes, (mean_square, square_mean) = outcomes_of(compressor, a), sides(a)
        np.testing.assert_allclose(np.mean(outcomes, axis=0), a, atol=1e-12)
        right = compressor.A * mean_square - compressor.B * square_mean
        assert error_of_mean(outcomes, a) <= right + 1e-12
    worst = np.outer([1.0, -1.0], vectors[:, 1])
    mean_square, square_mean = sides(worst)
    right = compressor.A * mean_square - compressor.B * square_mean
    assert error_of_mean(outcomes_of(compressor, worst), worst) == pytest.approx(right)
