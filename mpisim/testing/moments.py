"""Constants of compressors against draws, by bounds that hold for every distribution.

A normal approximation rejects correct compressors: one that rounds up once in 10,000 draws, say,
has no variance in 4,000 of them, and a mean that is off. So X_1, ..., X_n are tested by exponential
supermartingales, which need no variance of the draws and no normal mean. By Markov's inequality
each of these has at most the probability exp(-L):

    lambda sum (X_t - b) - a(c) lambda^2 sum (X_t - b)^2 >= L, for X >= 0, E X <= b, c = lambda b,
    lambda sum X_t - lambda^2 sum (X_t^2 / 6 + s / 3) >= L, for E X = 0, E X^2 <= s.

The first holds because y - a(c) y^2 <= log(1 + y) for y >= -c, with equality at -c, and the
second because exp(y - y^2 / 6) <= 1 + y + y^2 / 3 for all y.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.rng import Draw, Streams
from mpisim.testing.runs import Broken, NotChecked
from mpisim.wire.base import Precision

DRAWS = 4000
ERROR_RATE = 1e-4  # with which the three checks of a correct compressor fail at most, all together
ROUNDING = 2.0**-22  # values and norms are float32 on the wire
SHAPES = 4  # vectors that are tried
STEPS = 2.0 ** -np.arange(1, 11)  # c of the first test, which is true for each of them


def draw(workers: int, round: int = 7, seed: int = 3, first: int = 0) -> Draw:
    """A draw for workers first, first + 1, ..."""
    return Draw(Streams(seed), "up", round, first, workers)


def vectors(m: int, d: int, precision: Precision | None = None, seed: int = 0) -> np.ndarray:
    """Vectors (m, d) with entries of different sizes, zeros of both signs among them."""
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((m, d)) * np.exp(rng.standard_normal((m, d)))
    v[rng.random((m, d)) < 0.1] *= 0
    return v.astype(precision.arithmetic if precision else np.float64)


def samples(compressor: Compressor, shapes: np.ndarray) -> np.ndarray:
    """`DRAWS` samples of C(v) for each v in ``shapes`` (k, d), shape (k, draws, d).

    They are n workers' of one round; of workers that share randomness, one's of each round.
    """
    n = compressor.n
    if not compressor.correlated:
        several = (np.tile(v, (n, 1)) for v in shapes)
        return np.array([compressor.compress(v, draw(n)).decoded() for v in several])
    rows, drawn = np.resize(shapes, (n, compressor.d)), []
    for k in range(DRAWS):  # worker (i + k) mod n has vector i
        c = compressor.compress(np.roll(rows, k, axis=0), draw(n, round=k)).decoded()
        drawn.append(np.roll(c, -k, axis=0)[: len(shapes)])
    return np.stack(drawn, axis=1)


def limit(d: int) -> float:
    """L of each test, so that the union over all of them has the probability `ERROR_RATE`."""
    return log(SHAPES * (2 * (d + 2) + 2 + 3 * STEPS.size) / ERROR_RATE)


def exceeds(x: np.ndarray, bound: float, limit: float) -> bool:
    """Whether the mean of x >= 0, shape (n,), cannot be ``bound`` or less."""
    bound = bound * (1 + ROUNDING) + ROUNDING
    # cut off, which lowers the mean: of numbers far above the bound the squares would win
    step, y = STEPS / bound, np.minimum(x, bound / STEPS[-1]) - bound
    a = -(STEPS + np.log1p(-STEPS)) / STEPS**2
    return bool((step * y.sum() - a * step**2 * (y**2).sum() >= limit).any())


def differs(x: np.ndarray, second: float, slack: float, limit: float) -> np.ndarray:
    """Whether the means of ``x`` (n, k) cannot be 0 to within ``slack``; E X^2 <= ``second``."""
    n, second = len(x), second + slack**2
    step = sqrt(2 * limit / (n * second))
    total = np.maximum(np.abs(x.sum(axis=0)) - n * slack, 0)
    return step * total - step**2 * ((x**2).sum(axis=0) / 6 + n * second / 3) >= limit


def errors(c: np.ndarray, v: np.ndarray) -> np.ndarray:
    """|C(v) - v|^2 / |v|^2 of samples c (n, d), shape (n,)."""
    return ((c - v) ** 2).sum(axis=1) / float((v**2).sum())


def biased(c: np.ndarray, v: np.ndarray, omega: float) -> bool:
    """Whether E C(v) cannot be v, from samples c (n, d).

    In the direction of each coordinate, of v and of its signs. In each of them the second moment of
    C(v) - v is at most omega |v|^2.
    """
    e, norm = c - v, float(np.linalg.norm(v))
    along = np.column_stack([e, e @ v / norm, e @ np.sign(v) / sqrt(v.size)])
    return bool(differs(along, omega * norm**2, ROUNDING * norm, limit(v.size)).any())


def dependent(c: np.ndarray, v: np.ndarray, omega: float) -> bool:
    """Whether the mean of <C_i(v) - v, C_j(v) - v> over pairs of neighbours cannot be 0."""
    e, squared = c - v, float((v**2).sum())
    products = (e[0::2] * e[1::2]).sum(axis=1, keepdims=True)
    second = (omega * squared) ** 2
    return bool(differs(products, second, ROUNDING * squared, limit(v.size)).any())


# checks of a compressor that is bound for `DRAWS` workers, or for some if these share randomness


def omega(compressor: Compressor) -> None:
    """E C(v) = v, E|C(v) - v|^2 <= omega |v|^2, and independent workers."""
    bound = compressor.omega
    if bound is None:
        raise NotChecked("its omega is None: it is biased")
    for name, v, c in _sampled(compressor):
        if biased(c, v, bound):
            mean = c.mean(axis=0)
            i = int(np.argmax(np.abs(mean - v)))
            raise Broken(f"v {name}: the mean of coordinate {i} is {mean[i]:.6g}, not {v[i]:.6g}")
        _mean_within(errors(c, v), bound, f"v {name}", f"omega = {bound:.6g}", v.size)
        if not compressor.correlated and dependent(c, v, bound):
            raise Broken(f"v {name}: workers do not draw independently")


def alpha(compressor: Compressor) -> None:
    """E|C(v) - v|^2 <= (1 - alpha) |v|^2."""
    if compressor.alpha is None:
        raise NotChecked("its alpha is None: it does not say that it contracts")
    bound = 1 - compressor.alpha
    for name, v, c in _sampled(compressor):
        _mean_within(errors(c, v), bound, f"v {name}", f"1 - alpha = {bound:.6g}", v.size)


def density(compressor: Compressor) -> None:
    """C(v) has zeta non-zeros at most, on average."""
    bound = compressor.density
    for name, v, c in _sampled(compressor):
        nonzeros = (c != 0).sum(axis=1).astype(float)
        _mean_within(nonzeros, bound, f"v {name}", f"zeta = {bound:.6g}", v.size)


def _mean_within(x: np.ndarray, bound: float, where: str, constant: str, d: int) -> None:
    if exceeds(x, bound, limit(d)):
        raise Broken(f"{where}: {x.mean():.6g} on average, {constant}")


@lru_cache(maxsize=1)  # for the checks above
def _sampled(compressor: Compressor) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """What v is like, v, and samples of C(v)."""
    d = compressor.d
    spike = np.full(d, 0.01)
    spike[d // 2] = 1.0
    shapes = {  # whose errors differ
        "of normal entries": np.random.default_rng(4).standard_normal(d),
        "of entries of many sizes": vectors(1, d)[0],
        "of ones": np.ones(d),
        "with one large entry": spike,
    }
    every = np.array([*shapes.values()])
    return list(zip(shapes, every, samples(compressor, every), strict=True))
