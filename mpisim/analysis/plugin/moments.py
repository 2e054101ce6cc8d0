"""Means and errors of compressed vectors, in units of their own standard error."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.rng import Draw, Streams
from mpisim.wire.base import Precision

ROUNDING = 2.0**-22  # values and norms are float32 on the wire


def draw(workers: int, round: int = 7, seed: int = 3, first: int = 0) -> Draw:
    """A draw for workers first, first + 1, ..."""
    return Draw(Streams(seed), "up", round, first, workers)


def vectors(m: int, d: int, precision: Precision | None = None, seed: int = 0) -> np.ndarray:
    """Vectors (m, d) with entries of different sizes, zeros among them."""
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((m, d)) * np.exp(rng.standard_normal((m, d)))
    v[rng.random((m, d)) < 0.1] = 0
    return v.astype(precision.arithmetic if precision else np.float64)


def limit(tests: int, rate: float) -> float:
    """The z-value that one of ``tests`` right ones exceeds with probability ``rate`` at most.

    By the union bound, for normal means.
    """
    return NormalDist().inv_cdf(1 - rate / (2 * tests))


def samples(compressor: Compressor, v: np.ndarray, n: int) -> np.ndarray:
    """C(v) of n workers with the same vector, shape (n, d)."""
    return compressor.compress(np.tile(v, (n, 1)), draw(n)).decoded()


def mean_z(c: np.ndarray, v: np.ndarray) -> float:
    """How far the mean of C(v) is from v: the worst coordinate."""
    return float(_z(c - v, ROUNDING * np.abs(v)).max())


def excess_z(c: np.ndarray, v: np.ndarray, bound: float) -> float:
    """How far the mean of |C(v) - v|^2 / |v|^2 exceeds ``bound``."""
    square = float((v**2).sum())
    errors = ((c - v) ** 2).sum(axis=1) / square
    if errors.mean() <= bound + ROUNDING:
        return 0.0
    return float(_z(errors - bound, ROUNDING))


def cross_z(c: np.ndarray, v: np.ndarray) -> float:
    """How far the mean of <C_i(v) - v, C_j(v) - v> is from 0 over pairs of neighbours."""
    e = c - v
    products = (e[0::2] * e[1::2]).sum(axis=1)
    return float(_z(products, ROUNDING * float((v**2).sum())))


def density_z(c: np.ndarray, bound: float) -> float:
    """How far the mean number of non-zeros of C(v) exceeds ``bound``."""
    nonzero = (c != 0).sum(axis=1).astype(float)
    return 0.0 if nonzero.mean() <= bound else float(_z(nonzero - bound, bound * ROUNDING))


def _z(x: np.ndarray, slack: np.ndarray | float) -> np.ndarray:
    """|mean| beyond ``slack`` over its standard error, by columns."""
    error = x.std(axis=0) / np.sqrt(len(x))
    excess = np.maximum(np.abs(x.mean(axis=0)) - slack, 0)
    return excess / np.maximum(error, 1e-300)
