"""The calligraphic L(C, L) of quantization itself, by enumeration, for small d.

For |x| = 1 and v_j = |x_j|, E|Q_h(x) - x|_L^2 = sum_j L_jj (v_j - a_j)(b_j - v_j), a_j and b_j the
multiples of h_j next to v_j. In u_j = v_j^2 a term is L_jj (-u + (a + b) sqrt(u) - a b), which
is concave, and |x| = 1 is sum_j u_j = 1: in each cell of the grid the maximum is where the
derivatives L_jj (-1 + (a + b) / (2 v)) are all the same number, up to the cell's bounds.
"""

from itertools import product
from math import ceil

import numpy as np


def error(diagonal: np.ndarray, h: np.ndarray, v: np.ndarray) -> float:
    """E|Q_h(x) - x|_L^2 for x with |x_j| = v_j and |x| = 1."""
    r = v / h - np.floor(v / h)
    return float((diagonal * h**2 * r * (1 - r)).sum())


def true_cal_L(diagonal: np.ndarray, h: np.ndarray) -> tuple[float, np.ndarray]:
    """cal-L(Q_h, L) and where it is attained: v, shape (d,), |v| = 1."""
    best, where = -1.0, np.zeros(h.size)
    for cell in product(*(range(ceil(1 / step)) for step in h)):
        low, high = np.array(cell) * h, (np.array(cell) + 1) * h
        if (low**2).sum() <= 1 <= (high**2).sum():
            v = _best_in_cell(diagonal, low, high)
            value = float((diagonal * (v - low) * (high - v)).sum())
            if value > best:
                best, where = value, v
    return best, where


def _best_in_cell(diagonal, low, high):
    left, right = -float(diagonal.max()), 1e9
    for _ in range(200):
        middle = (left + right) / 2
        slope = diagonal + middle
        v = np.where(slope > 0, diagonal * (low + high) / (2 * np.where(slope > 0, slope, 1)), high)
        v = np.clip(v, low, high)
        left, right = (middle, right) if (v**2).sum() > 1 else (left, middle)
    return v
