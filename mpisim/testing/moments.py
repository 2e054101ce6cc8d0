"""Constants of compressors against draws: means and errors in units of their standard error."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.rng import Draw, Streams
from mpisim.testing.outcome import Broken, NotChecked
from mpisim.wire.base import Precision

DRAWS = 4000
ERROR_RATE = 1e-4  # with which the three checks of a correct compressor fail, all together
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


def samples(compressor: Compressor, v: np.ndarray, n: int) -> np.ndarray:
    """C(v) of n workers with the same vector v (d,), shape (n, d)."""
    return compressor.compress(np.tile(v, (n, 1)), draw(n)).decoded()


# z-values of samples c (n, d) of C(v)


def mean_z(c: np.ndarray, v: np.ndarray) -> float:
    """How far the mean of C(v) is from v: the worst coordinate."""
    return float(_z(c - v, ROUNDING * np.abs(v)).max())


def excess_z(c: np.ndarray, v: np.ndarray, bound: float) -> float:
    """How far the mean of |C(v) - v|^2 / |v|^2 exceeds ``bound``."""
    errors = ((c - v) ** 2).sum(axis=1) / float((v**2).sum())
    return 0.0 if errors.mean() <= bound + ROUNDING else float(_z(errors - bound, ROUNDING))


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


# checks of a compressor that is bound for `DRAWS` workers


def omega(compressor: Compressor) -> None:
    """E C(v) = v, E|C(v) - v|^2 <= omega |v|^2, and independent workers."""
    bound = compressor.omega
    if bound is None:
        raise NotChecked("its omega is None: it is biased")
    for name, v, c, limit in _sampled(compressor):
        if (z := mean_z(c, v)) > limit:
            mean = c.mean(axis=0)
            i = int(np.argmax(np.abs(mean - v)))
            wrong = f"the mean of coordinate {i} is {mean[i]:.6g}, not {v[i]:.6g}"
            raise Broken(f"v {name}: {wrong}: {z:.3g} standard errors away")
        _error_within(bound, f"omega = {bound:.6g}", name, v, c, limit)
        if not compressor.correlated and (z := cross_z(c, v)) > limit:
            raise Broken(f"v {name}: workers do not draw independently ({z:.3g} standard errors)")


def alpha(compressor: Compressor) -> None:
    """E|C(v) - v|^2 <= (1 - alpha) |v|^2."""
    if compressor.alpha is None:
        raise NotChecked("its alpha is None: it does not say that it contracts")
    bound = 1 - compressor.alpha
    for name, v, c, limit in _sampled(compressor):
        _error_within(bound, f"1 - alpha = {bound:.6g}", name, v, c, limit)


def density(compressor: Compressor) -> None:
    """C(v) has zeta non-zeros at most, on average."""
    bound = compressor.density
    for name, _, c, limit in _sampled(compressor):
        if (z := density_z(c, bound)) > limit:
            count = (c != 0).sum(axis=1).mean()
            excess = f"{z:.3g} standard errors above"
            raise Broken(f"v {name}: {count:.6g}, zeta = {bound:.6g}: {excess}")


def _error_within(
    bound: float, constant: str, name: str, v: np.ndarray, c: np.ndarray, limit: float
) -> None:
    if (z := excess_z(c, v, bound)) > limit:
        error = ((c - v) ** 2).sum(axis=1).mean() / (v**2).sum()
        excess = f"{z:.3g} standard errors above"
        raise Broken(f"v {name}: {error:.6g} on average, {constant}: {excess}")


def _sampled(compressor: Compressor) -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    """What v is like, v, samples of C(v), and the largest z-value of a correct compressor.

    Each v gives z-values of d means and of four others, and all count together: by the union bound,
    for normal means, one of them is larger with probability `ERROR_RATE` at most.
    """
    d = compressor.d
    spike = np.full(d, 0.01)
    spike[d // 2] = 1.0
    shapes = {  # whose errors differ
        "of normal entries": np.random.default_rng(4).standard_normal(d),
        "of entries of many sizes": vectors(1, d)[0],
        "of ones": np.ones(d),
        "with one large entry": spike,
    }
    limit = NormalDist().inv_cdf(1 - ERROR_RATE / (2 * len(shapes) * (d + 4)))
    for name, v in shapes.items():
        yield name, v, samples(compressor, v, DRAWS), limit
