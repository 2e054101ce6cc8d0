"""What a code must pay that does not know frequencies, and what the codec "entropy" pays."""

from math import lgamma, log2
from statistics import NormalDist

import numpy as np
import pytest

from mpisim.analysis.card_bits import entropies
from mpisim.testing import SINGLE
from mpisim.wire.codecs import entropy
from mpisim.wire.levels import Levels, LevelsForm
from tests.wire.test_ans import DENSE, RNG, TERNARY, VECTORS, M, compressed, order_0


def least_regret(d: int) -> float:
    """log2 sum_k C(d, k) (k/d)^k (1 - k/d)^(d-k), of d coins: Shtarkov's bound.

    Any code of d coins takes so many bits more, for some outcome, than with its share of heads
    known.
    """
    k = np.arange(1, d)
    logs = [lgamma(d + 1) - lgamma(i + 1) - lgamma(d - i + 1) for i in k]
    return log2(2 + np.exp(logs + k * np.log(k / d) + (d - k) * np.log1p(-k / d)).sum())


@pytest.mark.parametrize("d", [123, 1000])
@pytest.mark.parametrize("kind", DENSE)
def test_a_ternary_message_pays_less_than_any_code_must_for_some(kind, d):
    message = compressed(TERNARY, VECTORS[kind](M, d))
    least = [order_0(abs(row)) * d + np.count_nonzero(row) + 32 for row in message.levels]
    beyond = message.encode().payload_bits - np.array(least)
    assert 0 < beyond.mean() < 3 < least_regret(d)


def mutual_information(d: int, shares: np.ndarray) -> float:
    """Of k heads among d coins with the share, of equally likely ``shares``: E KL(P_share | P).

    A code without the share is a distribution Q (Kraft), and E KL(P_share | Q) is least for Q = P:
    so on average any code takes so many bits more than one that has the share.
    """
    k = np.arange(d + 1)
    subsets = np.array([lgamma(d + 1) - lgamma(i + 1) - lgamma(d - i + 1) for i in k])
    logs = np.array([subsets + k * np.log(p) + (d - k) * np.log1p(-p) for p in shares])
    mixture = np.logaddexp.reduce(logs) - np.log(len(shares))
    return float((np.exp(logs) * (logs - mixture)).sum() / len(shares) / np.log(2))


@pytest.mark.parametrize("d", [123, 1000])
def test_a_code_without_the_share_of_zeros_pays_for_it(d):
    """Ternary messages, up to 1 / sqrt(d) levels that are not zero, the most of any vector."""
    shares = np.geomspace(1 / 4, 1, 12) / d**0.5
    form, beyond = LevelsForm.uniform(d, 400, SINGLE, 1.0, "entropy"), []
    for p in shares:
        levels = (RNG.random((400, d)) < p) * RNG.choice(np.array([-1, 1], np.int32), (400, d))
        bits = Levels(form, np.ones((400, 1), np.float32), levels).encode().payload_bits.mean()
        k = np.count_nonzero(levels) / len(levels)
        beyond.append(bits - 32 - k + k * log2(p) + (d - k) * log2(1 - p))
    least = mutual_information(d, shares)
    assert 0.5 < least < np.mean(beyond) < least + 1


@pytest.mark.parametrize("kind", DENSE)
@pytest.mark.parametrize(("d", "k"), [(123, 0.1), (1000, 0.1), (1000, 0.01)])
def test_the_number_of_coordinates_costs_less_than_any_code_must_for_some(d, k, kind):
    """Of K + 1 numbers one has at most the probability 1 / (K + 1), in any code.

    Where it is certain, its entropy is 0, and the code takes log2 (K + 1) bits.
    """
    message = compressed({"name": "toplek", "k": k}, VECTORS[kind](60_000 // d, d))
    beyond = message.encode().payload_bits.mean() - sum(entropies(message).values())
    assert 0 < beyond < log2(message.form.k + 1)


@pytest.mark.parametrize("n", [16, 45, 65, 123])
def test_exponents_without_their_scale_pay_for_it(n):
    """Sources are quarters of 24 octaves, with two tails, all equally likely.

    ``least``: their mutual information with n exponents, as in `mutual_information`.
    """
    many, scales, u = 2, range(-80, 16), (np.arange(2000) + 0.5) / 2000
    normal = [NormalDist().inv_cdf((1 + p) / 2) for p in u]
    tails = [np.array(normal), u * np.sqrt(2 / (1 - u * u))]
    numbers = [np.frexp(sizes * 2 ** (q / 4))[1] + 126 for sizes in tails for q in scales]
    shares = np.array([np.bincount(powers, minlength=256) / u.size for powers in numbers])
    logs = np.log2(np.maximum(shares, 1e-300))
    beyond, least = [], []
    for t, share in enumerate(shares):
        powers = RNG.choice(256, (many, n), p=share)
        of_each = np.array([np.bincount(row, minlength=256) for row in powers]) @ logs.T
        mixture = np.logaddexp2.reduce(of_each, axis=1) - log2(len(shares))
        least.append(np.mean(of_each[:, t] - mixture))
        codes = (powers + 256 * RNG.integers(0, 2, (many, n))).astype(np.uint16)
        lower = RNG.integers(0, 1 << 23, (many, n)).astype(np.uint64)
        bits = entropy.write_symbols(codes, lower, 23)[1]
        beyond.append(np.mean(bits - 24 * n + of_each[:, t]))
    assert 4 < np.mean(least) < np.mean(beyond) < np.mean(least) + 6.5
