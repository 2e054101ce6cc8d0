"""The largest eigenvalue of a symmetric positive semidefinite matrix, from its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from mpisim.core.lanes import dot
from mpisim.core.products import norm, subtract_rows, times_vector
from mpisim.core.symmetric import diagonalise

TOLERANCE = 1e-13  # of the eigenvalue's residual, relative
LOOK = 32  # look at the residual in each step up to this one, then more and more rarely


def largest_eigenvalue(
    times: Callable[[np.ndarray], np.ndarray], d: int, floor: float = 0.0
) -> float:
    """lambda_max of a (d, d) matrix from products ``times(v)``, v of shape (d,).

    The Lanczos method with full reorthogonalisation, from a fixed random vector: the same products
    give the same bits. (When the Krylov space is exhausted early, ARPACK would restart from a
    random vector that differs between processes.) Products may be collective: their number
    depends only on their values. The result is within 1e-12 of lambda_max, relative, or within
    ``floor`` of it (for a matrix that may hold nothing but rounding errors).
    """
    q = np.random.Generator(np.random.Philox(key=1)).random(d) - 0.5
    q /= norm(q)
    basis = np.empty((min(d, 64), d))
    alpha, beta = np.empty(d), np.empty(d)
    top = 0.0
    for k in range(d):
        if k == len(basis):
            basis = np.concatenate([basis, np.empty_like(basis)])[:d]
        basis[k] = q
        w = np.array(times(q), np.float64)
        alpha[k] = dot(q, w)
        for _ in range(2):  # twice is enough
            subtract_rows(w, times_vector(basis[: k + 1], w), basis[: k + 1])
        beta[k] = norm(w)
        if not np.isfinite(beta[k]):
            return float("inf")
        if beta[k] == 0 or k + 1 == d or (k + 1) % (1 + k // LOOK) == 0:
            value, last = _top(alpha[: k + 1], beta[: k + 1])
            top = max(value, 0.0)
            if beta[k] * last <= max(TOLERANCE * top, floor):
                break
        q = w / beta[k]
    return top


@njit(cache=True)
def _top(alpha, beta):
    """The largest eigenvalue of the tridiagonal matrix, and its vector's |last coordinate|."""
    diagonal, beside, last = alpha.copy(), beta.copy(), np.zeros((alpha.size, 1))
    beside[-1], last[-1, 0] = 0.0, 1.0
    diagonalise(diagonal, beside, last)
    best = np.argmax(diagonal)
    return diagonal[best], abs(last[best, 0])
