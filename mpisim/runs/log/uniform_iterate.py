"""The iterate that the theorems return: one of x^0, ..., x^k, each equally likely."""

from __future__ import annotations

import numpy as np


def expectation(rounds: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The expectation at x^ of a quantity whose value at x^{rounds[j]} is ``values[j]``.

    It is the mean of the quantity over rounds 0, ..., k, where x^ is uniform among x^0, ..., x^k:
    what MARINA returns (Algorithm 1, line 12) after K = k + 1 iterations, and Theorem 2.1 bounds.
    Between logged rounds the quantity is taken to be linear. With every round logged the mean is
    exact; where the quantity is convex in k, it is an upper bound.

    rounds : the logged rounds, from 0 up, shape (rows,)
    values : shape (rows,)

    Returns one number for each row, shape (rows,).
    """
    gaps = np.diff(rounds)
    # sum over s = 1, ..., h of y_j + (s / h) (y_{j+1} - y_j)
    sums = ((gaps - 1) * values[:-1] + (gaps + 1) * values[1:]) / 2
    return np.cumsum(np.concatenate([values[:1], sums])) / (rounds + 1)
