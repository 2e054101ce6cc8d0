"""Frequencies that messages begin with, of exponents and of levels: for four tails, and a scale.

|v| is taken to be normal, the square of an exponential variable, of Student's t with two degrees of
freedom, or exponential, times a scale. Rounded at random, v gives a power of two (natural
compression) or a level (quantization). The probabilities are those of QUANTILES equally likely |v|,
in integers. A test has their digest: every machine must have the same.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

QUANTILES = 2048
WEIGHT_BITS = 14  # of the sum of a row of weights
COST = 1 << 12  # in a bit
REACH = 40  # powers of two to each side of the median
QUARTERS = 4  # of an octave: scales of exponents
FINEST, SCALES = -24, 48  # half octaves: scales of levels
OFFSETS = (0, 4, 2, 1)  # below the scale of a normal |v| with the same norm, of each tail
MIDDLE = 16  # of these, where all have the same frequencies
PLAIN = 16  # levels below have a class each
CLASSES = PLAIN + 60

TAILS = (
    lambda u: NormalDist().inv_cdf((1 + u) / 2),
    lambda u: math.log(1 - u) ** 2,
    lambda u: u * math.sqrt(2 / (1 - u * u)),
    lambda u: -math.log(1 - u),
)
OF_EXPONENTS = (0, 2, 1, 3)  # the order of tails: a few exponents have one of the first two
Table = tuple[np.ndarray, np.ndarray]


@cache
def _sizes() -> np.ndarray:
    """|v| with each tail, shape (4, QUANTILES)."""
    shares = [(2 * t + 1) / (2 * QUANTILES) for t in range(QUANTILES)]
    return np.array([[tail(u) for u in shares] for tail in TAILS])


@cache
def of_exponents() -> Table:
    """(weights, costs), each (tails times QUARTERS, 2 REACH + 1): exponents around their median."""
    rows = []
    for sizes in _sizes()[list(OF_EXPONENTS)]:
        for quarter in range(QUARTERS):
            fraction, power = np.frexp(sizes * math.sqrt(math.sqrt(2.0**quarter)))
            row = _rounded(power + 2 * REACH, 2 * fraction - 1, 5 * REACH)
            median = int((np.cumsum(row) < 0.5).sum())
            rows.append(row[median - REACH : median + REACH + 1])
    return _integers(rows)


@cache
def of_levels(tails: int) -> Table:
    """(weights, costs), each (SCALES times ``tails``, CLASSES): classes of levels, by scale."""
    rows = []
    for half in range(FINEST, FINEST + SCALES):
        for sizes in _sizes()[:tails] * math.sqrt(2.0**half):
            low = np.floor(sizes)
            levels = _rounded(low.astype(np.int64), sizes - low, int(low.max()) + 2)
            classes = class_of(np.arange(levels.size))
            rows.append(np.bincount(classes, levels, CLASSES))
    return _integers(rows)


@cache
def of_shares(shares: tuple[float, ...]) -> Table:
    """(weights, costs) of symbols 1, 2, ..., which belong to the scale `MIDDLE`."""
    rows = np.zeros((SCALES, 1 + len(shares)))
    rows[MIDDLE, 1:] = shares
    return _integers(list(rows))


def class_of(sizes: np.ndarray) -> np.ndarray:
    """|level| below PLAIN, and PLAIN - 5 and the number of binary digits from there on."""
    return np.where(sizes < PLAIN, sizes, PLAIN - 5 + np.frexp(sizes)[1])


def _rounded(low: np.ndarray, up: np.ndarray, width: int) -> np.ndarray:
    """Probabilities, shape (width,), where each of ``low`` is one more with probability ``up``."""
    both = np.bincount(low, 1 - up, width) + np.bincount(low + 1, up, width)
    return both / len(low)


def _integers(rows: list[np.ndarray]) -> Table:
    """Weights, and what an event costs in 1 / COST of a bit, at least one weight's."""
    weights = np.floor(np.array(rows) * 2**WEIGHT_BITS).astype(np.int64)
    bits = [[WEIGHT_BITS - math.log2(max(w, 0.5)) for w in row] for row in weights.tolist()]
    return weights, np.floor(COST * np.array(bits)).astype(np.int64)
