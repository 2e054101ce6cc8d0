"""Compiled loss functions phi of generalized linear models, with their derivatives.

`phi` takes a chunk of rows. The compiler turns its loops into vector instructions, which it could
not do with calls of the C library: hence the exp and log1p below.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LOGISTIC, NONCONVEX, SQUARES, PRODUCT = range(4)  # phi
LOSS, GRADIENT, DOTS = 1, 2, 4  # what to compute, added up

LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # 32 bits: its product with a small integer is exact
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, kept in the low bits


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _exp_minus_abs(n, z, y, t, p, s):
    """p = exp(-|y z|): Taylor to degree 13 on [-ln 2 / 2, ln 2 / 2], times a power of two.

    ``t`` and ``s`` are scratch. Within 2 ulp down to exp(-708), and 0 below; NaN stays NaN.
    """
    t_bits = t.view(np.int64)
    s_bits = s.view(np.int64)
    for j in range(n):
        a = -abs(y[j] * z[j])
        a = -708.0 if a < -708.0 else a
        k = a * LOG2_E + ROUND
        t[j] = k
        k -= ROUND
        r = (a - k * LN2_HIGH) - k * LN2_LOW
        q = 1 / 479001600 + r * (1 / 6227020800)
        q = 1 / 3628800 + r * (1 / 39916800 + r * q)
        q = 1 / 40320 + r * (1 / 362880 + r * q)
        q = 1 / 720 + r * (1 / 5040 + r * q)
        q = 1 / 24 + r * (1 / 120 + r * q)
        p[j] = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * q)))
    for j in range(n):
        s_bits[j] = (t_bits[j] + 1023) << 52
    for j in range(n):
        p[j] = 0.0 if abs(y[j] * z[j]) > 708.0 else p[j] * s[j]


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _log1p(e):
    """log(1 + e) = 2 artanh(e / (2 + e)), 0 <= e <= 1: the series, to 2e-18 relative."""
    v = e / (2 + e)
    u = v * v
    q = 1 / 29 + u * (1 / 31 + u * (1 / 33))
    q = 1 / 21 + u * (1 / 23 + u * (1 / 25 + u * (1 / 27 + u * q)))
    q = 1 / 13 + u * (1 / 15 + u * (1 / 17 + u * (1 / 19 + u * q)))
    q = 1 / 5 + u * (1 / 7 + u * (1 / 9 + u * (1 / 11 + u * q)))
    return 2 * v * (1 + u * (1 / 3 + u * q))


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def phi(kind, n, z, y, w, loss, want, t, p, s):
    """w = d phi / d z and, if wanted, loss = phi, for the first ``n`` rows of a chunk."""
    if kind == LOGISTIC:
        _exp_minus_abs(n, z, y, t, p, s)
        for j in range(n):
            inverse = 1 / (1 + p[j])
            w[j] = -y[j] * (p[j] * inverse if y[j] * z[j] >= 0 else inverse)
        if want & LOSS:
            for j in range(n):
                margin = y[j] * z[j]
                loss[j] = _log1p(p[j]) + (-margin if margin < 0 else 0.0)
    elif kind == NONCONVEX:
        _exp_minus_abs(n, z, y, t, p, s)
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
