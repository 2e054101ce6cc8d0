"""Quantization fitted to a smoothness matrix: steps, omega, and the calligraphic L(C, L).

SAQ is the smoothness-aware quantization paper. cal-L(C, L) is the least number with
E|C(x) - x|_L^2 <= cal-L |x|^2 for all x, and omega is cal-L(C, I). Only the diagonal of L matters,
because the coordinates of all compressors here err independently of each other. Each function is
for one worker: ``diagonal`` is Diag(L_i), shape (d,), float64, >= 0.

The steps for DIANA+ minimise omega_i + cal-L_i / (n mu), those for DCGD+ cal-L_i, the limit as mu
goes to 0. So one function serves both, with ``n_mu`` = n mu for DIANA+ and 0 for DCGD+: its weights
are n mu times the paper's, which does not change the steps.

If the weight of a coordinate or block is 0, nothing is ever sent there (the row of L_i is 0, and so
is what the worker compresses). Its step is 1 by convention and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Literal

import numpy as np

from mpisim.core.numerics.eigen import eigvalsh
from mpisim.core.numerics.functions import power
from mpisim.core.numerics.sums import norm

Scheme = Literal["dcgd", "diana"]  # the method that steps are optimal for
BlockRule = Literal["root", "stated", "bound", "fixed"]


def block_starts(d: int, blocks: int) -> np.ndarray:
    """First coordinate of each of B blocks, and d, shape (B + 1,), int64.

    Blocks of floor(d / B) coordinates, the last one with the rest, as in SAQ's published code.
    """
    starts = np.arange(blocks + 1) * (d // blocks)
    starts[-1] = d
    return starts


def block_norms(diagonal: np.ndarray, starts: np.ndarray, order: int = 2) -> np.ndarray:
    """|Diag(L^ll)| of each block, shape (B,): Euclidean, or the 1-norm with ``order`` = 1."""
    powers = np.add.reduceat(diagonal**order, starts[:-1])
    return np.sqrt(powers) if order == 2 else powers


def varying_steps(diagonal: np.ndarray, beta: float, n_mu: float = 0.0) -> np.ndarray:
    """h_j of quantization with varying steps, |h^-1| = beta, shape (d,): SAQ, (25) and (28).

    h_j = (1/beta) sqrt(sum_l w_l / w_j), with w_j = L_jj for DCGD+ and
    sqrt(1 + A_j^2), A_j = L_jj / (n mu), for DIANA+. (28) minimises sum_j (1 + A_j^2) h_j^2, half
    the square of the second bound in the minimum before (27); (27) is the first, with 1 + A_j.
    """
    weights = np.sqrt(n_mu * n_mu + diagonal * diagonal)
    return _where_sent(weights, lambda w: np.sqrt(w.sum() / w) / beta)


def fixed_step(d: int, beta: float) -> float:
    """The one step h with |h^-1| = beta: sqrt(d) / beta, which is n / sqrt(d) for beta = d / n."""
    return sqrt(d) / beta


def block_steps(
    diagonal: np.ndarray,
    starts: np.ndarray,
    beta: float,
    n_mu: float = 0.0,
    rule: BlockRule = "root",
) -> np.ndarray:
    """h_l of block quantization, shape (B,): SAQ, Appendices D.2 (DCGD+) and D.3 (DIANA+).

    h_l = delta / A_l, with A_l = |Diag(L^ll)| for DCGD+ and sqrt(d_l) + |Diag(L^ll)| / (n mu) for
    DIANA+, where sum_l (1/h_l^2 + sqrt(d_l) / h_l) + B <= beta. ``rule``:

    * "root": the delta that attains equality;
    * "stated": the formula of D.3, which has d T_1^2 instead of sum_l A_l^2. The two are equal for
      DCGD+; for DIANA+ with B > 1 the former is larger, so steps are longer than necessary;
    * "bound": d / (beta - B) T_B + sqrt(d / (beta - B)) T_1, the upper bound of both appendices;
    * "fixed": the same h for all blocks, with equality (no smoothness).
    """
    room = beta - (starts.size - 1)
    roots = np.sqrt(np.diff(starts))
    if rule == "fixed":
        return np.full(roots.size, _root(roots.sum(), float(roots.size), room))
    weights = n_mu * roots + block_norms(diagonal, starts)
    first = float((roots * weights).sum())  # d T_B
    second = float((weights**2).sum())
    if rule != "root":  # d T_1^2
        second = power(n_mu * sqrt(diagonal.size) + norm(diagonal), 2)
    delta = first / room + sqrt(second / room) if rule == "bound" else _root(first, second, room)
    return _where_sent(weights, lambda a: delta / a)


def probabilities(diagonal: np.ndarray, tau: float, n_mu: float = 0.0) -> np.ndarray:
    """p_j of rand-tau+, sum_j p_j = tau, shape (d,): SAQ, B.4, by Safaryan et al. (2021).

    p_j = L'_j / (L'_j + rho), L'_j = L_jj for DCGD+ and 1 + L_jj / (n mu) for DIANA+, which makes
    (1/p_j - 1) L'_j the same for all j. Coordinates with L'_j = 0 have p_j = 0; if at most tau
    others are left, these have p_j = 1.
    """
    weights = n_mu + diagonal
    sent = weights > 0
    w = weights[sent]
    p = np.zeros(diagonal.size)
    if w.size <= tau:
        p[sent] = 1.0
        return p
    low, high = 0.0, float(w.max()) * w.size / tau  # the sum is above tau at low, below at high
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        above = float((w / (w + middle)).sum()) > tau
        low, high = (middle, high) if above else (low, middle)
    p[sent] = w / (w + high)
    return p


def cal_L_varying(diagonal: np.ndarray, h: np.ndarray) -> float:
    """min(|Diag(L) h^2|_1, |Diag(L) h|), an upper bound of cal-L(Q_h, L): SAQ, (14)."""
    return float(min((diagonal * h**2).sum(), norm(diagonal * h)))


def cal_L_blocks(diagonal: np.ndarray, starts: np.ndarray, h: np.ndarray) -> float:
    """max_l min(h_l^2 |Diag(L^ll)|_1, h_l |Diag(L^ll)|), an upper bound: SAQ, (10) and D.1."""
    one, two = block_norms(diagonal, starts, 1), block_norms(diagonal, starts)
    return float(np.minimum(h**2 * one, h * two).max())


def cal_L_independent(diagonal: np.ndarray, p: np.ndarray) -> float:
    """max_j (1/p_j - 1) L_jj, cal-L itself, for C(x)_j = x_j / p_j with probability p_j: SAQ, A.1.

    Coordinates with p_j = 0 are never sent and do not count.
    """
    sent = p > 0
    return float(((1 / p[sent] - 1) * diagonal[sent]).max(initial=0.0))


def cal_L_subsets(matrix: np.ndarray, k: int) -> float:
    """cal-L itself of RandK, lambda_max of P~ o L: SAQ, A.1; ``matrix`` is L, shape (d, d).

    P~ is d/k - 1 on the diagonal and d (k-1) / (k (d-1)) - 1 elsewhere.
    """
    d = len(matrix)
    if d == 1 or k == d:
        return 0.0
    weighted = matrix * (d * (k - 1) / (k * (d - 1)) - 1)
    np.fill_diagonal(weighted, (d / k - 1) * matrix.diagonal())
    return max(0.0, float(eigvalsh(weighted)[-1]))


def sent_ones(diagonal: np.ndarray, n_mu: float = 0.0) -> np.ndarray:
    """Diag(I) without the coordinates that are never sent: cal-L of it is omega."""
    return ((diagonal + n_mu) > 0).astype(np.float64)


def _root(first: float, second: float, room: float) -> float:
    """The positive root of room x^2 - first x - second."""
    half = first / (2 * room)
    return half + sqrt(half * half + second / room)


def _where_sent(weights: np.ndarray, steps: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """steps(weights) where a weight is positive, 1 elsewhere."""
    out = np.ones(weights.size)
    sent = weights > 0
    if sent.any():
        out[sent] = steps(weights[sent])
    return out
