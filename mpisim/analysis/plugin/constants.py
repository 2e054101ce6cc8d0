"""Whether omega, alpha and zeta of a compressor fit what it does, by draws.

Each check takes a bound compressor and returns why it fails, in a line; empty if it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpisim.analysis.plugin.moments import (
    cross_z,
    density_z,
    excess_z,
    limit,
    mean_z,
    samples,
    vectors,
)
from mpisim.analysis.plugin.outcome import NotChecked
from mpisim.compressors.base import Compressor

DRAWS = 4000
ERROR_RATE = 1e-4  # with which the checks of a right compressor fail, all together
ABOVE = "standard errors above"


def omega(compressor: Compressor) -> str:
    """E C(v) = v, E|C(v) - v|^2 <= omega |v|^2, and independent workers."""
    bound = compressor.omega
    if bound is None:
        raise NotChecked("its omega is None: it is biased")
    for name, v, c in _sampled(compressor):
        most, means = _most(v.size), c.mean(axis=0)
        if (z := mean_z(c, v)) > most:
            i = int(np.argmax(np.abs(means - v)))
            said = f"the mean of coordinate {i} is {means[i]:.6g}, not {v[i]:.6g}"
            return f"v {name}: {said}: {z:.3g} standard errors away"
        if (z := excess_z(c, v, bound)) > most:
            return f"v {name}: {_error(c, v):.6g} on average, omega = {bound:.6g}: {z:.3g} {ABOVE}"
        if not compressor.correlated and (z := cross_z(c, v)) > most:
            return f"v {name}: workers do not draw independently ({z:.3g} standard errors)"
    return ""


def alpha(compressor: Compressor) -> str:
    """E|C(v) - v|^2 <= (1 - alpha) |v|^2."""
    if compressor.alpha is None:
        raise NotChecked("its alpha is None: it does not say that it contracts")
    bound = 1 - compressor.alpha
    for name, v, c in _sampled(compressor):
        if (z := excess_z(c, v, bound)) > _most(v.size):
            said = f"{_error(c, v):.6g} on average, 1 - alpha = {bound:.6g}"
            return f"v {name}: {said}: {z:.3g} {ABOVE}"
    return ""


def density(compressor: Compressor) -> str:
    """C(v) has zeta non-zeros at most, on average."""
    bound = compressor.density
    for name, v, c in _sampled(compressor):
        if (z := density_z(c, bound)) > _most(v.size):
            count = (c != 0).sum(axis=1).mean()
            return f"v {name}: {count:.6g}, zeta = {bound:.6g}: {z:.3g} {ABOVE}"
    return ""


def _shapes(d: int) -> dict[str, np.ndarray]:
    """Vectors (d,) whose errors differ: of one size, of many, and with one entry that is large."""
    spike = np.full(d, 0.01)
    spike[d // 2] = 1.0
    return {
        "of normal entries": np.random.default_rng(4).standard_normal(d),
        "of entries of many sizes": vectors(1, d)[0],
        "of ones": np.ones(d),
        "with one large entry": spike,
    }


def _sampled(compressor: Compressor) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """What v is like, v, and samples of C(v)."""
    for name, v in _shapes(compressor.d).items():
        yield name, v, samples(compressor, v, DRAWS)


def _most(d: int) -> float:
    """The largest z-value of a right compressor, over the means of d coordinates and four others.

    All checks count together.
    """
    return limit(len(_shapes(d)) * (d + 4), ERROR_RATE)


def _error(c: np.ndarray, v: np.ndarray) -> float:
    return float(((c - v) ** 2).sum(axis=1).mean() / (v**2).sum())
