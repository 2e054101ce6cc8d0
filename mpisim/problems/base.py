"""The interface of a problem f(x) = (1/n) sum_i f_i(x), found by its name in ``[problem]``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mpisim.core.arrays import HOST, Arrays
from mpisim.core.errors import InputError, needs_a_number
from mpisim.core.numerics.eigen import packed, triangle_size
from mpisim.core.protocols import ClosedForm, Matrices, Round
from mpisim.core.registry import Registry, Spec, named
from mpisim.core.schema import require
from mpisim.problems.points import accept_points, one_by_one, require_point

PROBLEMS: Registry[type[Problem]] = Registry("problem")
LOADED = "n", "first", "m", "d", "dtype", "rows", "identity"  # `load` sets these


def problem(name: str, label: str = ""):
    """Class decorator: registers a problem under ``name`` for ``[problem]`` tables.

    label : its name in figures and tables; ``name`` unless given

    The class becomes a dataclass, whose fields are the keys of the table. It defines `load`,
    `batch_gradients`, and either `losses` and `gradients` or `losses_and_gradients`.
    """

    def register(cls):
        both = cls.losses is not Problem.losses and cls.gradients is not Problem.gradients
        if not both and cls.losses_and_gradients is Problem.losses_and_gradients:
            raise TypeError(f"problem {name!r}: {cls.__name__} must define losses and gradients")
        cls.title = label or name
        return named(PROBLEMS, name)(cls)

    return register


class Problem(Spec, ABC):
    """The functions f_i of a block of workers, with their gradients.

    `load` is called once, before any use, on a copy of the object that the table was made into.
    A worker's results have the same bits for every split of the workers into blocks. They belong to
    the caller: no later call overwrites them.

    A point x has shape (d,), or (m, d) where every worker is at a point of its own, with the same
    bits as one after the other; other shapes raise `ValueError`. A plugin may write its methods
    for (d,) alone: they are then called for one worker at a time. A class whose methods take
    rows as well says ``class Mine(Problem, rows_of_points=True)``.

    workers : n, where the problem has this key and it is set
    n : workers over all ranks
    first, m : the block consists of workers first, ..., first + m - 1; m may be 0
    d : length of x
    seed : ``run.seed``
    dtype : of the arithmetic and of the gradients; losses are always float64
    rows : samples of each worker, shape (m,), int64
    identical : all f_i, over all ranks, are the same function
    identity : what the problem was made of, for logs
    convex : every f_i is convex
    nonnegative : f(x) >= 0 at all x
    attained : where the Hessian of every f_i equals `largest_hessian`, so that its eigenvalues are
        sharp
    spread : l, u with l M_i <= hess f_i <= u M_i, both without the penalty
    published : how published code gets L from the L_i: "one" takes their maximum, for every L_i
        too; "mean" takes their mean
    epochs_between_rows : of the log, where run.log_every is not given; 0: each round has a row
    tested : whether it has a test set, and so is a `ProblemWithTestSet`
    finite_sum : a minibatch's gradient is the mean of those of its samples; False with batch norm,
        dropout and the like
    sampled_rows : `losses_and_gradients` are over some of the samples, for the log, so that a
        method asks for `gradients` of its own
    shapes : the matrices that make up x, each stored row by row (of a network's tensor: an output
        each row); empty if x is a vector
    arrays : where x, gradients and with them all vectors of a run live: NumPy's unless the problem
        says `mpisim.core.numerics.tensors.Tensors`; losses and test metrics are NumPy's in any case
    copies : of the block's workers, for an ensemble: see `repeated`; 0 without one
    in_ensembles : the class says how it is `repeated`
    libraries : whose versions may change the last bits, beside those of all runs
    portable : results have the same bits on every x86-64 processor; a problem that computes with
        BLAS, LAPACK, NumPy's exp and the like, or PyTorch says False
    """

    in_ensembles: ClassVar[bool] = False
    copies: int = 0
    name: ClassVar[str]
    title: ClassVar[str] = ""  # in figures and tables
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()  # tables that `mpisim check` tries
    explicit: ClassVar[bool] = False  # whether it is an `ExplicitProblem`
    nonnegative: ClassVar[bool] = False
    libraries: ClassVar[Sequence[str]] = ()
    portable: ClassVar[bool] = True
    epochs_between_rows: ClassVar[int] = 0
    spread: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    published: ClassVar[Literal["one", "mean", "sharp"]] = "sharp"
    tested: bool = False
    finite_sum: bool = True
    sampled_rows: bool = False
    convex: bool = False
    attained: Literal["everywhere", "origin", "nowhere"] = "nowhere"
    shapes: tuple[tuple[int, int], ...] = ()
    workers: int | None = None
    n: int
    first: int
    m: int
    d: int
    seed: int
    _round: Round = Round(0)
    dtype: np.dtype
    rows: np.ndarray
    identical: bool = False
    identity: str
    arrays: Arrays = HOST

    def __init_subclass__(cls, rows_of_points: bool = False, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        accept_points(cls, rows_of_points)

    def __post_init__(self) -> None:
        require(self.workers is None or self.workers >= 1, "problem.workers", self.workers,
                "at least 1")  # fmt: skip
        self.check()

    @classmethod
    def has_workers(cls) -> bool:
        """Whether ``workers`` is a key; else the ranks of the job decide how many there are."""
        return "workers" in cls.__dataclass_fields__  # type: ignore[attr-defined]

    def check(self) -> None:
        """Raise `InputError` if the value of a key is not allowed."""

    @abstractmethod
    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """Prepare workers first, ..., first + count - 1 of n.

        Set all attributes but the keys and `seed`.
        """

    def loaded(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> Self:
        """A copy on which `load` was called with these arguments."""
        made = self.thawed()
        if "seed" not in getattr(self, "__dataclass_fields__", ()):
            vars(made)["seed"] = seed
        made.load(n, first, count, seed, dtype)
        if missing := [name for name in LOADED if not hasattr(made, name)]:
            raise InputError(f"problem {self.name!r}: load must set {', '.join(missing)}")
        return made

    def digests(self) -> list[str]:
        """The sha256 of what `load` would read now, in the order in which `identity` has them.

        Empty where nothing of it can change, or a plugin does not say it.
        """
        return []

    def repeated(self, copies: int) -> Self:
        """The problem of an ensemble: a copy whose block has its m workers ``copies`` times.

        Its methods also take the points of the copies, x (copies, d), and results are those of the
        copies, one after another. It shares the data.
        """
        raise NotImplementedError

    @property
    def seeded(self) -> bool:
        """Whether the seed matters to `load`; True unless the problem knows better."""
        return True

    @property
    def round(self) -> int:
        """k of the round in progress, for problems whose minibatch gradients are random."""
        return self._round.k

    def attach_round(self, round: Round) -> None:
        """Take the context that tells the `round`."""
        self._round = round

    def double(self) -> Self:
        """The same problem in float64."""
        if self.dtype == np.float64:
            return self
        return self.loaded(self.n, self.first, self.m, self.seed, np.dtype(np.float64))

    @property
    def layers(self) -> tuple[int, ...]:
        """The lengths of the parts of x (a network's tensors): its matrices, or all of x."""
        return tuple(a * b for a, b in self.shapes) or (self.d,)

    def initial_point(self) -> np.ndarray:
        """x^0, shape (d,); zero unless the problem says otherwise."""
        return np.zeros(self.d, self.dtype)

    def label_shares(self) -> np.ndarray | None:
        """The share of each label among each worker's samples, (m, labels), for the log.

        None unless the samples were split by label.
        """
        return None

    def flip_labels(self, x: np.ndarray) -> np.ndarray:
        """P x, x (..., d), where f_i with every label flipped is x -> f_i(P x), and P P = I.

        For the attack "label-flip", which is not allowed with a problem that does not say it.
        """
        raise NotImplementedError

    # values and gradients

    def losses(self, x: np.ndarray) -> np.ndarray:
        """f_i(x), shape (m,), float64; x (d,) or (m, d)."""
        return self.losses_and_gradients(x)[0]

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        """The gradients of f_i at x, shape (m, d).

        x : shape (d,) or (m, d)
        members : of the block, shape (k,), int64, ascending, each once: their rows alone, (k, d),
            at x (d,) or (k, d)

        Unless the problem takes ``members``, all are computed, at every point.
        """
        if members is None:
            return self.losses_and_gradients(x)[1]
        if require_point(x, self.d, len(members)):
            return self.gradients(x)[members]
        return one_by_one("gradients", Problem.gradients, self, x, members=members)

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`losses` and `gradients` at x; one pass where the problem can do both at once."""
        return self.losses(x), self.gradients(x)

    @abstractmethod
    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        """Unbiased estimates of the gradients from some of each worker's samples, shape (m, d).

        x, members : as for `gradients`
        batch : shape (m, b) or (k, b), int64: sample numbers from 0 to rows[i] - 1 for worker i. A
            number that occurs twice counts twice.

        Raises `IndexError` for other numbers.
        """

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """`batch_gradients` at x minus those at y, both (d,) or (m, d), up to rounding."""
        return self.batch_gradients(x, batch) - self.batch_gradients(y, batch)

    # what theory may know

    @property
    def closed_form(self) -> ClosedForm | None:
        """Smoothness constants in closed form, which need no computation over the workers."""
        return None

    def closed_form_of(self, members: np.ndarray) -> ClosedForm | None:
        """The same for the mean of the f_i of some workers; ``members`` (n,), bool."""
        return None

    def minimum(self) -> tuple[np.ndarray, float] | None:
        """x* (d,), float64, and f(x*), if there is a formula; the same on every rank."""
        return None

    def largest_hessian(self) -> Matrices:
        """Matrices M_i with -M_i <= Hessian of f_i(x) <= M_i at all x (Loewner order)."""
        raise needs_a_number(f"problem {self.name!r} has no known smoothness constants")

    def sample_norms(self) -> np.ndarray:
        """max_j L_ij, shape (m,), where f_i is the mean over its samples j of L_ij-smooth terms."""
        raise needs_a_number(f"problem {self.name!r} has no known smoothness of single samples")

    def gradient_bounds(self) -> np.ndarray | None:
        """G, G_inf and sigma^2 of single samples' gradients, shape (m, 3), valid at every x.

        CD-Adam, Assumptions 6.2 and 6.3; None where gradients are not bounded, or nobody knows.
        """
        return None

    def published_norms(self) -> np.ndarray:
        """The L_i that published code uses, shape (m,); the sharp ones by default."""
        return self.largest_hessian().norms()

    def hessian(self, x: np.ndarray) -> Matrices:
        """The Hessians of f_i at x; only convex problems need them."""
        raise InputError(f"run.reference: problem {self.name!r} has no Hessian to minimise f with")

    def hessian_triangles(self, x: np.ndarray, members: np.ndarray | None = None) -> np.ndarray:
        """`hessian` at x (d,) as vectors of `mpisim.core.numerics.eigen`, float64.

        Shape (m, d (d + 1) / 2), or a row for each of ``members``, counted from the first worker.
        """
        matrices = self.hessian(x)
        which = np.arange(self.m) if members is None else members
        parts = [packed(matrices.rows(i, 0, self.d)) for i in which.tolist()]
        return np.array(parts).reshape(len(which), triangle_size(self.d))


class ProblemWithTestSet(Problem):
    """A problem that also measures x on samples it does not train on."""

    tested = True

    @abstractmethod
    def test(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each worker's share of the test metrics, and of the gradient of the test loss.

        Their sums over all workers are, shape (m, 3), float64: training accuracy, test loss, test
        accuracy; and, shape (m, d), the gradient of the test loss. Called after
        `losses_and_gradients` at the same x.
        """
