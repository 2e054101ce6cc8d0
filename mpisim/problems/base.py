"""The interface of a problem f(x) = (1/n) sum_i f_i(x): one class, found by its name."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.protocols import Known, Matrices
from mpisim.core.registry import named, unfrozen
from mpisim.core.round import Round

PROBLEMS: dict[str, type[Problem]] = {}


def problem(name: str):
    """Class decorator: makes a problem known under ``name`` in ``[problem]`` tables."""

    return named(PROBLEMS, name)


class Problem(ABC):
    """The functions f_i of a block of workers, with their gradients.

    Subclasses are dataclasses whose fields are the keys of the ``[problem]`` table. `load` is
    called once, before any use. Results for a worker have the same bits however workers are
    grouped into blocks, and belong to the caller: no later call overwrites them.

    Attributes
    ----------
    n : int
        Workers over all ranks.
    first, m : int
        The block: workers first, ..., first + m - 1; m may be 0.
    d : int
    dtype : numpy.dtype
        Of the arithmetic and of the gradients. Losses are always float64.
    rows : array, shape (m,), int64
        Samples of each worker.
    convex : bool
        Every f_i is convex.
    nonnegative : bool
        f(x) >= 0 at all x.
    identical : bool
        All f_i, over all ranks, are the same function.
    attained : {"everywhere", "origin", "nowhere"}
        Where every Hessian of f_i equals `largest_hessian`: so its eigenvalues are sharp or not.
    spread : (float, float)
        (low, high) with low M_i <= Hessian of f_i <= high M_i, penalties left out of both.
    published : {"one", "mean", "sharp"}
        How published code gets L from the L_i: their maximum, also in place of each L_i; their
        mean; or sharp.
    explicit : bool
        Has `whole`, `coordinates` and `write_gradients`: nothing of size m x d need be there.
    tested : bool
        Has a test set, and `test`.
    shapes : tuple of (int, int)
        Of the matrices that x consists of, row by row, one behind the other; none for a vector.
    identity : str
        What the problem was made of, for logs.
    """

    name: ClassVar[str]
    convex: bool = False
    nonnegative: ClassVar[bool] = False
    explicit: ClassVar[bool] = False
    tested: ClassVar[bool] = False
    attained: Literal["everywhere", "origin", "nowhere"] = "nowhere"
    spread: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    published: ClassVar[Literal["one", "mean", "sharp"]] = "sharp"
    shapes: tuple[tuple[int, int], ...] = ()
    n: int
    first: int
    m: int
    d: int
    seed: int
    _round: Round = Round(0)
    dtype: np.dtype
    rows: np.ndarray
    identical: bool
    identity: str

    @property
    def known(self) -> Known | None:
        """Smoothness constants that need no computation over the workers, after `load`."""
        return None

    def known_of(self, members: np.ndarray) -> Known | None:
        """The same for the mean of the f_i of some workers alone; ``members`` (n,), bool."""
        return None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:  # noqa: B027
        """Raise `InputError` if a key's value is not allowed."""

    @abstractmethod
    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """Prepare workers first, ..., first + count - 1 of n; sets all attributes."""

    def loaded(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> Self:
        """A copy, loaded with these arguments of `load`."""
        made = unfrozen(self)
        made.load(n, first, count, seed, dtype)
        return made

    @property
    def seeded(self) -> bool:
        """Whether `load` makes something else of another seed; True unless a problem knows."""
        return True

    @property
    def round(self) -> int:
        """k of the round in progress, for problems that draw."""
        return self._round.k

    def attach_round(self, round: Round) -> None:
        """Draw for the round that ``round`` tells from now on."""
        self._round = round

    def initial_point(self) -> np.ndarray:
        """x^0, shape (d,): zero unless the problem says otherwise."""
        return np.zeros(self.d, self.dtype)

    def losses(self, x: np.ndarray) -> np.ndarray:
        """f_i(x), shape (m,), float64."""
        return self.losses_and_gradients(x)[0]

    def gradients(self, x: np.ndarray) -> np.ndarray:
        """The gradients of f_i at x, shape (m, d)."""
        return self.losses_and_gradients(x)[1]

    @abstractmethod
    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f_i(x), shape (m,), and their gradients, shape (m, d)."""

    @abstractmethod
    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Unbiased estimates of the gradients from some of each worker's samples, shape (m, d).

        ``batch``, shape (m, b), int64: sample numbers in 0, ..., rows[i] - 1 for worker i; a number
        that occurs twice counts twice. `IndexError` for other numbers.
        """

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """`batch_gradients` at x minus those at y, up to rounding, shape (m, d)."""
        return self.batch_gradients(x, batch) - self.batch_gradients(y, batch)

    def test(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each worker's share of what is measured on the test set, and of the loss's gradient.

        Sums over all workers are, shape (m, 3), float64: training accuracy, test loss, test
        accuracy; and, shape (m, d), the gradient of the test loss. Called after
        `losses_and_gradients` at the same x.
        """
        raise TypeError(f"{self.name} has no test set")

    def whole(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient (d,), float64, over all n workers and the same on every rank."""
        raise TypeError(f"{self.name} knows f as a sum over the workers only")

    def coordinates(self, x: np.ndarray, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """The coordinates indices[ptr[i]:ptr[i+1]] of worker i's gradient at x, shape (ptr[-1],).

        To the bit those of `gradients`, at a cost for each of them that is not d.
        """
        raise TypeError(f"{self.name} knows whole gradients only")

    def coordinate_changes(
        self, x: np.ndarray, y: np.ndarray, ptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        """`coordinates` at x minus those at y, to the bit."""
        return self.coordinates(x, ptr, indices) - self.coordinates(y, ptr, indices)

    def write_gradients(self, x: np.ndarray, first: int, out: np.ndarray) -> None:
        """Rows first, ... of `gradients` into ``out`` (rows, d), rounded once to its type."""
        raise TypeError(f"{self.name} makes gradients of all workers only")

    def subtract_gradients(
        self, x: np.ndarray, first: int, less: np.ndarray, out: np.ndarray
    ) -> None:
        """Rows first, ... of `gradients` minus the rows ``less`` into ``out`` (rows, d)."""
        self.write_gradients(x, first, out)
        out -= less

    def minimum(self) -> tuple[np.ndarray, float] | None:
        """x* (d,), float64, and f(x*), where there is a formula; the same on every rank."""
        return None

    def options(self) -> dict[str, object]:
        """The values of its keys, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def double(self) -> Problem:
        """The same problem in float64."""
        if self.dtype == np.float64:
            return self
        twin = dataclasses.replace(self)  # type: ignore[type-var]
        twin.load(self.n, self.first, self.m, self.seed, np.dtype(np.float64))
        return twin

    def largest_hessian(self) -> Matrices:
        """Matrices M_i with -M_i <= Hessian of f_i(x) <= M_i at all x (Loewner order)."""
        raise InputError(
            f"method.stepsize: problem {self.name!r} has no known smoothness constants;"
            ' give a number instead of "theory"'
        )

    def sample_norms(self) -> np.ndarray:
        """max_j L_ij, shape (m,): each f_i is the mean of L_ij-smooth functions of a sample."""
        raise InputError(
            f"method.stepsize: problem {self.name!r} has no known smoothness of single samples;"
            ' give a number instead of "theory"'
        )

    def published_norms(self) -> np.ndarray:
        """The L_i that published code takes, shape (m,); the sharp ones unless it has others."""
        return self.largest_hessian().norms()

    def hessian(self, x: np.ndarray) -> Matrices:
        """The Hessians of f_i at x; convex problems have them."""
        raise InputError(f"run.reference: problem {self.name!r} has no Hessian to minimise f with")
