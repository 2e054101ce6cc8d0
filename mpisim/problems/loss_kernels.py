"""Compiled loss functions phi of generalized linear models, with their derivatives.

`phi` takes a chunk of rows. The compiler turns its loops into vector instructions, which it could
not do with calls of the C library: hence the exp and log1p below.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.functions import LN2_HIGH, LN2_LOW, ROOT_2, log_near_1

LOGISTIC, NONCONVEX, SQUARES, PRODUCT, SOFTMAX = range(5)  # phi; the last one: `softmax`
LOSS, GRADIENT, DOTS = 1, 2, 4  # what to compute, added up

LOG2_E = 1.4426950408889634
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, kept in the low bits


@njit(cache=True, error_model="numpy")
def exp_minus_abs(n, z, y, t, p, s):
    """p = exp(-|y z|): a polynomial on [-ln 2 / 2, ln 2 / 2], times a power of two.

    The polynomial has the least relative error there, 2.4e-17. ``t`` and ``s`` are scratch. Within
    2 ulp down to exp(-708), and 0 below; NaN stays NaN.
    """
    t_bits = t.view(np.int64)
    s_bits = s.view(np.int64)
    for j in range(n):
        a = -abs(y[j] * z[j])
        tiny = a < -708.0
        a = -708.0 if tiny else a
        k = a * LOG2_E + ROUND
        t[j] = ROUND - 1023 if tiny else k
        k -= ROUND
        r = (a - k * LN2_HIGH) - k * LN2_LOW
        q = 2.7622290967206044e-07 + r * 2.2976436948750897e-08
        q = 2.480151620520753e-05 + r * (2.7563863920514752e-06 + r * q)
        q = 0.0013888888920606563 + r * (0.00019841262658579025 + r * q)
        q = 0.041666666666619785 + r * (0.008333333336537652 + r * q)
        p[j] = 1 + r * (1 + r * (0.5 + r * (0.1666666666666194 + r * q)))
    for j in range(n):
        s_bits[j] = (t_bits[j] + 1023) << 52
    for j in range(n):
        p[j] *= s[j]


@njit(cache=True, error_model="numpy")
def _log1p(e):
    """log(1 + e), 0 <= e <= 1, within 2 ulp: log 2 + log((1 + e) / 2) for the larger e."""
    far = e > ROOT_2 - 1
    near = log_near_1(0.5 * (e - 1) if far else e)
    return LN2_HIGH + (near + LN2_LOW) if far else near


@njit(cache=True, error_model="numpy")
def phi(kind, n, z, y, w, loss, want, t, p, s):
    """w = d phi / d z and, if wanted, loss = phi, for the first ``n`` rows of a chunk."""
    if kind == LOGISTIC:
        exp_minus_abs(n, z, y, t, p, s)
        for j in range(n):
            inverse = 1 / (1 + p[j])
            w[j] = -y[j] * (p[j] * inverse if y[j] * z[j] >= 0 else inverse)
        if want & LOSS:
            for j in range(n):
                margin = y[j] * z[j]
                loss[j] = _log1p(p[j]) + (-margin if margin < 0 else 0.0)
    elif kind == NONCONVEX:
        exp_minus_abs(n, z, y, t, p, s)
        for j in range(n):
            large = 1 / (1 + p[j])
            small = p[j] * large
            positive = y[j] * z[j] >= 0
            sigma = large if positive else small
            rest = small if positive else large
            loss[j] = rest * rest
            w[j] = -2 * y[j] * sigma * loss[j]
    elif kind == SQUARES:
        for j in range(n):
            w[j] = z[j] - y[j]
            loss[j] = 0.5 * w[j] * w[j]
    else:
        for j in range(n):
            w[j] = y[j] * z[j]


def sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-z)), shape (k,), float64."""
    t, p, s = np.empty((3, z.size))
    exp_minus_abs(z.size, z, np.ones(z.size), t, p, s)
    return np.where(z >= 0, 1.0, p) / (1 + p)
