"""What upper rooms pass to lower ones, as protocols, so that imports go one way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import inf
from typing import ClassVar, Literal, Protocol

import numpy as np


class Collective(Protocol):
    """The n workers of a run; this rank holds m of them, from worker ``first`` on.

    Both methods are collective.
    """

    n: int
    first: int
    m: int
    is_server: bool

    def sum_over_workers(self, rows: np.ndarray) -> np.ndarray:
        """Sum of rows (m, k) over all workers in worker order, (k,), on every rank."""

    def all_workers(self, rows: np.ndarray) -> np.ndarray:
        """Rows (m, ...) of all workers in worker order, (n, ...), on every rank."""


class Uplink(Collective, Protocol):
    """The workers, and their link to the server."""

    def send_once(self, rows: np.ndarray) -> tuple[int, np.ndarray]:
        """Send ``rows`` (m, k) uncompressed; returns the first worker known here, and the decoded.

        The server knows the rows of all workers, (n, k); other ranks know their own, (m, k).
        """


class Matrices(Protocol):
    """A symmetric matrix H_i for each worker of the block, not necessarily stored."""

    @property
    def shared(self) -> float:
        """The multiple of the identity contained in every H_i."""

    def times(self, v: np.ndarray) -> np.ndarray:
        """H_i v for one vector (d,), or H_i v_i for vectors (m, d): shape (m, d)."""

    def rows(self, i: int, start: int, stop: int) -> np.ndarray:
        """Rows start to stop - 1 of worker i's matrix, shape (stop - start, d)."""

    def diagonals(self) -> np.ndarray:
        """Diag(H_i), shape (m, d)."""

    def norms(self) -> np.ndarray:
        """Largest eigenvalues, shape (m,); each depends on its own worker only."""

    def without_shared(self) -> Matrices:
        """The matrices without the shared multiple of the identity."""


@dataclasses.dataclass(frozen=True)
class ClosedForm:
    """Smoothness constants that a problem has in closed form: sharp, or bounds.

    L_i (n,), L, L_plus, L_pm, mu: as in `mpisim.theory.smoothness.Constants`; mu_i: the
    least of the f_i's, 0 if it is not known; source: of those that are sharp, by name, why.
    """

    L_i: np.ndarray
    L: float
    L_plus: float
    L_pm: float
    mu: float
    mu_i: float = 0.0
    source: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Objective(Protocol):
    """What theory needs of a loaded problem; see `mpisim.problems.base.Problem`."""

    name: ClassVar[str]
    spread: ClassVar[tuple[float, float]]
    published: ClassVar[Literal["one", "mean", "sharp"]]
    n: int
    m: int
    d: int
    rows: np.ndarray
    convex: bool
    identical: bool
    attained: Literal["everywhere", "origin", "nowhere"]
    shapes: tuple[tuple[int, int], ...]

    @property
    def layers(self) -> tuple[int, ...]: ...
    @property
    def closed_form(self) -> ClosedForm | None: ...
    def closed_form_of(self, members: np.ndarray) -> ClosedForm | None: ...
    def double(self) -> Objective: ...
    def initial_point(self) -> np.ndarray: ...
    def largest_hessian(self) -> Matrices: ...
    def hessian(self, x: np.ndarray) -> Matrices: ...
    def sample_norms(self) -> np.ndarray: ...
    def published_norms(self) -> np.ndarray: ...


@dataclasses.dataclass
class Round:
    """The rounds of a run and the current one; the parts of a run share it and only read it.

    rounds : of the whole run
    k : the round that turns x^k into x^{k+1}; only the loop sets it
    stepsize : gamma of the round, with its schedule; only the loop sets it
    look : from which round on a signal may end the run where no row is due; only the loop sets it
    """

    rounds: int
    k: int = 0
    stepsize: float = 0.0
    look: float = inf
