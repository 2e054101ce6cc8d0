"""Every outcome of a shared draw, and the two sides of the AB inequality."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from mpisim.core.rng import Streams
from tests.compressors.cases import Chosen


def words(bounds: list[int]) -> Iterator[list[int]]:
    """Every choice of one number below each bound, as words that give it."""
    for choice in product(*map(range, bounds)):
        yield [((2 * c + 1) << 63) // bound for c, bound in zip(choice, bounds, strict=True)]


def shuffles(d: int, n: int) -> list[int]:
    """The bounds of one group's draws: a permutation of d, and d mod n workers, or of n slots."""
    return [*range(d, 0, -1), *range(n, n - d % n, -1)] if n <= d else list(range(n, 0, -1))


def draws(bounds: list[int], n: int) -> Iterator[Chosen]:
    """Every outcome of the shared draw of one group, each as likely as the others."""
    for row in words(bounds):
        yield Chosen(Streams(0), "up", 0, 0, n, shared=np.array([row], np.uint64))


def error_of_mean(outcomes: list[np.ndarray], a: np.ndarray, weights=None) -> float:
    errors = [((c.mean(axis=0) - a.mean(axis=0)) ** 2).sum() for c in outcomes]
    return float(np.average(errors, weights=weights))


def sides(a: np.ndarray) -> tuple[float, float]:
    """(1/n) sum |a_i|^2 and |(1/n) sum a_i|^2."""
    return float((a**2).sum(axis=1).mean()), float((a.mean(axis=0) ** 2).sum())


def moments(outcomes: list[np.ndarray], a: np.ndarray, weights=None) -> tuple[np.ndarray, ...]:
    """E C_i(a_i) and E|C_i(a_i) - a_i|^2."""
    squares = [((c - a) ** 2).sum(axis=1) for c in outcomes]
    return np.average(outcomes, axis=0, weights=weights), np.average(squares, 0, weights)
