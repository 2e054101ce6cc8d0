"""Minibatches, for variance-reduced methods and stochastic gradients; the clients of a round."""

from __future__ import annotations

import dataclasses
from math import ceil
from typing import Literal

import numpy as np

from mpisim.comm.star import Star
from mpisim.core.errors import InputError
from mpisim.methods.estimators.base import Estimator, unbiased
from mpisim.methods.oracle import LazyGradients
from mpisim.theory.setting import Setting, Step

First = int | float | Literal["published"] | None


def batch_size(value: int | float, samples: int, key: str) -> int:
    """b' from a ``[method]`` key: a number of samples, or a share of a worker's, rounded up.

    ``samples``: m, the least number of any worker. `InputError` unless 1 <= b' <= m.
    """
    b = ceil(value * samples) if isinstance(value, float) and 0 < value < 1 else value
    if not isinstance(b, int) or not 1 <= b <= samples:
        raise InputError(
            f"method.{key}: {value!r} is not allowed; it must be an integer from 1 to"
            f" m = {samples}, or a share of m between 0 and 1"
        )
    return b


def first_batch_size(its: Estimator, value: First, b: int, big: int, factor: float = 1) -> int:
    """Samples of the first gradients, from the key ``first_batch``: ``big`` unless given.

    "published" is max(``big``, ``factor`` omega b), from the published code of DASHA,
    `config_libsvm_zero_marina.py`. It counts gradients of b samples, and omega is RandK's there.
    """
    if isinstance(value, str):
        omega = unbiased(its.compressor, its.compressor.omega, "first_batch", value)
        return max(big, b * int(factor * omega))
    return big if value is None else batch_size(value, its.oracle.samples, "first_batch")


@dataclasses.dataclass(frozen=True)
class Clients:
    """The clients S of a round: their numbers over all ranks (None: all of them), and this rank's,
    counted from its first worker."""

    S: np.ndarray | None
    local: np.ndarray | None


EVERYONE = Clients(None, None)


def sampled_gradients(its: Estimator, x: np.ndarray, size: int) -> np.ndarray:
    """Means over ``size`` samples that each worker draws with replacement, shape (m, d)."""
    batch = its.star.draw("big batch").samples(its.oracle.rows, size)
    return its.oracle.batch_gradients(x, batch)


def drawn_clients(star: Star, r: int | None) -> Clients:
    """r clients, drawn uniformly without replacement; all if r is None."""
    return clients_of(star, None if r is None else star.sample(r, replace=False))


def clients_of(star: Star, S: np.ndarray | None) -> Clients:
    """The clients S, ascending; all if S is None."""
    if S is None:
        return EVERYONE
    first = star.first
    begin, end = np.searchsorted(S, (first, first + star.m))
    return Clients(S, S[begin:end] - first)


def gradients_at(
    its: Estimator, y_i: np.ndarray, clients: Clients, b: int | None = None
) -> np.ndarray:
    """g_i(y_i) of the clients, shape (clients, d), from minibatches of b samples, or full.

    y_i : one point (d,), or one for each client
    """
    local, oracle = clients.local, its.oracle
    if b is None:
        return oracle.gradients(y_i, local)
    rows = oracle.rows if local is None else oracle.rows[local]
    batch = its.star.draw("batch", clients.S).batches(rows, b)
    return oracle.batch_gradients(y_i, batch, local)


@dataclasses.dataclass
class Stochastic(Estimator):
    """An estimator with full or, with the key ``batch``, stochastic gradients.

    batch : tau, a number of samples or a share of m, drawn in every round, without replacement
        (CD-Adam, Algorithm 1, line 4); full gradients unless given.
    """

    batch: int | float | None = None
    direction = "up"

    def check(self) -> None:
        if self.batch is not None:
            self.tau = batch_size(self.batch, self.oracle.samples, "batch")

    def gradients(self, x: np.ndarray) -> np.ndarray:
        """g_i at x, shape (m, d)."""
        g_i = self._stochastic(x) if self.batch is not None else self.oracle.gradients(x)
        self.star.fresh(g_i)
        return g_i

    def lazy_gradients(self, x: np.ndarray) -> np.ndarray | LazyGradients:
        """The same, but full gradients are computed where they are needed, if the problem can."""
        g_i = self._stochastic(x) if self.batch is not None else self.oracle.lazy_gradients(x)
        self.star.fresh(g_i)
        return g_i

    def _stochastic(self, x: np.ndarray) -> np.ndarray:
        batch = self.star.draw("batch").batches(self.oracle.rows, self.tau)
        return self.oracle.batch_gradients(x, batch)

    def theory_step(self, setting: Setting) -> Step:
        full = self.batch is None and self.direction == "up"
        return self.full_step(setting) if full else super().theory_step(setting)

    def full_step(self, setting: Setting) -> Step:
        """The step size with full gradients, compressed upwards only; `InputError` if none."""
        return super().theory_step(setting)
