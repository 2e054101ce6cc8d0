"""MARINA, DIANA, GD and FedAvg as plain NumPy and SciPy loops: no messages, no bits, no log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Protocol

import numpy as np
from scipy import sparse

Gradients = Callable[[np.ndarray], np.ndarray]  # x (d,) -> gradients of all workers (n, d)


class Draws(Protocol):
    """The random numbers of round k, for n workers in dimension d."""

    def coin(self, k: int) -> float:
        """In [0, 1), the same for all workers."""

    def subsets(self, k: int, n: int, d: int, size: int) -> np.ndarray:
        """Coordinates without replacement, shape (n, size)."""

    def uniforms(self, k: int, n: int, d: int) -> np.ndarray:
        """In [0, 1), shape (n, d)."""

    def batches(self, k: int, step: int, n: int, m: int, b: int) -> np.ndarray:
        """b of m rows of each worker without replacement, in a local step, shape (n, b)."""


class NumPyDraws:
    """Draws of a NumPy generator."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def coin(self, k: int) -> float:
        return self.random.random()

    def subsets(self, k: int, n: int, d: int, size: int) -> np.ndarray:
        return np.argpartition(self.random.random((n, d)), size)[:, :size]

    def uniforms(self, k: int, n: int, d: int) -> np.ndarray:
        return self.random.random((n, d))

    def batches(self, k: int, step: int, n: int, m: int, b: int) -> np.ndarray:
        return np.argpartition(self.random.random((n, m)), b - 1)[:, :b]


def nonconvex_gradients(a: sparse.csr_matrix, y: np.ndarray, n: int) -> Gradients:
    """Of the means of (1 - sigma(y a . x))^2 over n blocks of the rows ``a`` (N, d), sparse."""
    m = y.size // n
    blocks = [a[i * m : (i + 1) * m].T for i in range(n)]
    transposed = sparse.block_diag(blocks, format="csr")  # (n d, N)

    def gradients(x: np.ndarray) -> np.ndarray:
        s = 1 / (1 + np.exp(-y * (a @ x)))
        return (transposed @ (-2 / m * s * (1 - s) ** 2 * y)).reshape(n, -1)

    return gradients


def logistic_gradients(a: np.ndarray, y: np.ndarray, n: int, l2: float) -> Gradients:
    """Of the means of log(1 + exp(-y a . x)) + l2 / 2 |x|^2 over n blocks of ``a`` (N, d)."""
    m = y.size // n
    rows, y = a.reshape(n, m, -1), y.reshape(n, m)

    def gradients(x: np.ndarray) -> np.ndarray:
        weights = -y / (m * (1 + np.exp(y * (rows @ x))))
        return (weights[:, None] @ rows)[:, 0] + l2 * x

    return gradients


def fedavg(
    a: sparse.csr_matrix, y: np.ndarray, n: int, l2: float, gamma: float, steps: int, b: int | None,
    draws: Draws,
) -> Iterator[np.ndarray]:  # fmt: skip
    """x^1, x^2, ... of FedAvg on logistic regression; with one step and no ``b`` that is GD.

    a : sparse rows (N, d) of n workers, one block after another
    b : samples of a local gradient; all rows if None
    """
    d, m = a.shape[1], y.size // n
    everything = np.tile(np.arange(m), (n, 1))
    x = np.zeros(d)
    for k in count():
        y_i = np.tile(x, (n, 1))
        for step in range(steps):
            rows = everything if b in (None, m) else draws.batches(k, step, n, m, b)
            if k == step == 0 or rows is not everything:
                at = (np.arange(n)[:, None] * m + rows).ravel()
                part, labels = a[at], y[at]
                row = np.repeat(np.arange(at.size), np.diff(part.indptr))
                where = row // rows.shape[1] * d + part.indices
            z = np.bincount(row, part.data * y_i.ravel()[where], at.size)
            weights = -labels / (rows.shape[1] * (1 + np.exp(labels * z)))
            gradients = np.bincount(where, weights[row] * part.data, n * d).reshape(n, d)
            y_i = y_i - gamma * (gradients + l2 * y_i)
        x = y_i.mean(axis=0)
        yield x


def marina(
    gradients: Gradients, d: int, gamma: float, p: float, size: int, draws: Draws
) -> Iterator[np.ndarray]:
    """x^1, x^2, ... of MARINA with RandK of ``size`` coordinates from x^0 = 0."""
    x = np.zeros(d)
    grad = gradients(x)
    n, g = len(grad), grad.mean(axis=0)
    for k in count(1):
        x = x - gamma * g
        yield x
        old, grad = grad, gradients(x)
        if draws.coin(k) < p:
            g = grad.mean(axis=0)
        else:
            chosen = draws.subsets(k, n, d, size)
            values = d / size * np.take_along_axis(grad - old, chosen, axis=1)
            g = g + np.bincount(chosen.ravel(), values.ravel(), d) / n


def diana(
    gradients: Gradients, d: int, gamma: float, alpha: float, s: int, draws: Draws
) -> Iterator[np.ndarray]:
    """x^1, x^2, ... of DIANA with QSGD of ``s`` levels from x^0 = 0."""
    x, h = np.zeros(d), np.zeros(d)
    h_i = np.zeros_like(gradients(x))
    for k in count():
        v = gradients(x) - h_i
        norms = np.linalg.norm(v, axis=1, keepdims=True)
        y = np.abs(v) / norms * s
        low = np.floor(y)
        levels = np.sign(v) * (low + (draws.uniforms(k, len(v), d) < y - low))
        m_i = norms / s * levels
        m = m_i.mean(axis=0)
        x = x - gamma * (h + m)
        h_i, h = h_i + alpha * m_i, h + alpha * m
        yield x
