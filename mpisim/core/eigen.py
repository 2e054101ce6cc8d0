"""The largest eigenvalue of a symmetric positive semidefinite matrix, from its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal

TOLERANCE = 1e-13  # of the eigenvalue's residual, relative


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
    q = np.random.Generator(np.random.Philox(key=1)).standard_normal(d)
    q /= np.linalg.norm(q)
    basis = np.empty((min(d, 64), d))
    alpha: list[float] = []
    beta: list[float] = []
    top = 0.0
    for k in range(d):
        if k == len(basis):
            basis = np.concatenate([basis, np.empty_like(basis)])[:d]
        basis[k] = q
        w = times(q)
        alpha.append(float(q @ w))
        for _ in range(2):  # twice is enough
            w = w - basis[: k + 1].T @ (basis[: k + 1] @ w)
        beta.append(float(np.linalg.norm(w)))
        if not np.isfinite(beta[-1]):
            return float("inf")
        values, vectors = eigh_tridiagonal(
            np.array(alpha), np.array(beta[:-1]), select="i", select_range=(k, k)
        )
        top = max(float(values[0]), 0.0)
        if beta[-1] * abs(vectors[-1, 0]) <= max(TOLERANCE * top, floor):
            break
        q = w / beta[-1]
    return top
