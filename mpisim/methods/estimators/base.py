"""The interface of a gradient estimator over the star network."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from mpisim.comm.star import Star, Upload
from mpisim.compressors.base import Compressor
from mpisim.core.errors import InputError, needs_a_number
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.registry import Registry, named
from mpisim.core.schema import require
from mpisim.core.state import Stateful
from mpisim.methods.optimizers import Optimizer
from mpisim.methods.oracle import Oracle
from mpisim.theory.cd_adam import Theorem64
from mpisim.theory.saq import Rate
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee

ESTIMATORS: Registry[type[Estimator]] = Registry("estimator")
Theory = Literal["theory"]
STATES = 4  # vectors of a worker with dense state: h, a gradient, a difference, a message
Direction = Literal["up", "both"]  # which messages are compressed: only those up, or all


def estimator(name: str):
    """Class decorator: makes an estimator known under ``name``."""
    return named(ESTIMATORS, name)


def probability(p: float | Theory, theory: float, key: str = "p") -> float:
    """The key ``p``, or ``theory`` for "theory"; `InputError` unless it is in (0, 1]."""
    value = theory if isinstance(p, str) else p
    require(0 < value <= 1, f"method.{key}", value, 'a number in (0, 1] or "theory"')
    return value


def unbiased(compressor: Compressor, omega: float | None, key: str, value: str = "theory") -> float:
    """omega of an unbiased compressor, which ``key`` = ``value`` needs; else `InputError`."""
    if omega is None:
        raise InputError(
            f"compressor.name: {compressor.name!r} is biased, and"
            f' method.{key} = "{value}" needs an unbiased one'
        )
    return omega


class Clients(NamedTuple):
    """The clients S of a round: their numbers over all ranks (None: all of them), and this rank's,
    counted from its first worker."""

    S: np.ndarray | None
    local: np.ndarray | None


EVERYONE = Clients(None, None)


class Estimator(Stateful, ABC):
    """Estimates the gradient of f at the iterates, with compressed messages.

    Every rank runs the same lines. Subclasses are dataclasses whose fields are keys of the
    ``[method]`` table; a copy made by `bind` runs. In `start` and `estimate`, arrays (m, d) belong
    to this rank's workers, and arrays (d,) are the same on all ranks, except for the result of
    ``star.mean``: only the server has it, until ``star.broadcast``. The attributes that they set
    are declared in the class, with this place (`mpisim.core.state`).

    letters : of some keys, in the method's paper
    examples : tables that `mpisim check` tries
    permk_tables : whether the PermK paper's tables compare the method
    server_point : x^k is known to the server alone, so that the method sends what the workers need
        of it. All know x^0, but off the server later points are NaN. Rows of the log are evaluated
        at x^k, which costs no bits.
    points : the state with the points that workers keep between rounds, for ``run.columns``
    replaced : its ``participants`` are drawn with replacement, for analyses that draw them again
    partial : whether clients may drop out of its rounds, by ``fleet.simulate``
    on_events : whether its rounds are steps of an event clock, with columns of their own
    replayed : whether its bits follow from the seed where no length depends on values; a plugin's
        class says so itself
    unbiased : its proofs need E C(v) = v
    estimates_gradient : whether g^k is an estimate of grad f(x^k), as `mpisim check` then demands;
        False for local steps and Newton's directions
    in_ensembles : its lines also advance an ensemble of runs (`mpisim.runs.ensemble`); of this
        class alone, as the lines of those derived from it may not
    coinless : nor does it throw coins or draw clients, so that the runs may differ in their seed
    server_stepsize : the optimizer's step size, where gamma is that of steps at the workers
    """

    name: ClassVar[str]
    letters: ClassVar[dict[str, str]] = {"batch": "b'", "big_batch": "b", "participants": "r"}
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    permk_tables: ClassVar[bool] = False
    server_point: ClassVar[bool] = False
    points: ClassVar[str] = ""
    replaced: ClassVar[bool] = False
    partial: ClassVar[bool] = False
    on_events: ClassVar[bool] = False
    replayed: ClassVar[bool] = True
    unbiased: ClassVar[bool] = False
    estimates_gradient: ClassVar[bool] = True
    in_ensembles: ClassVar[bool] = False
    coinless: ClassVar[bool] = False
    server_stepsize: float | None = None
    star: Star
    oracle: Oracle
    compressor: Compressor

    def bind(self, star: Star, oracle: Oracle, compressor: Compressor) -> Estimator:
        """A copy for a network, a problem and a compressor, with its parameters resolved."""
        if star.simulated and not self.partial:
            raise InputError(f"fleet.simulate: is not allowed with estimator {self.name!r}")
        return self._bind(star=star, oracle=oracle, compressor=compressor)

    @abstractmethod
    def start(self, x: np.ndarray) -> np.ndarray:
        """The first estimate g^0 at x^0, shape (d,)."""

    @abstractmethod
    def estimate(self, x: np.ndarray) -> np.ndarray:
        """The estimate g^k at x^k, k >= 1, shape (d,)."""

    def theory_step(self, setting: Setting) -> Step:
        """The theorem's largest step size with gradient descent; `InputError` if there is none."""
        raise needs_a_number(f"there is no theorem for {self.name!r}")

    def guarantees(self, case: Case) -> list[Guarantee]:
        """The method's rows in Tables 1 and 2 of `mpisim theory` (`mpisim.theory.tables.merged`).

        Empty if the tables have them anyway, or the reason why not. `InputError` if the theorem
        does not apply. Collective, as are `rate` and `theorem_64`.
        """
        return []

    def rate(self, setting: Setting) -> Rate | None:
        """By SAQ's theorem; None if there is none, `InputError` if it does not apply."""
        return None

    def theorem_64(self, case: Case, optimizer: Optimizer, plain: bool) -> Theorem64 | None:
        """CD-Adam's theorem, with an optimizer; None and `InputError` as for `rate`.

        plain : all rounds have one step size, and the step no weight decay
        """
        return None

    def numbers(self, d: int) -> int:
        """How many numbers of each worker a round may keep: the memory is n times that."""
        return STATES * d

    def batch_sizes(self) -> dict[str, int]:
        """The numbers of samples behind the keys ``batch`` and ``big_batch``, if it has them."""
        return {}

    def parameters(self) -> dict[str, Any]:
        """The parameters that are set, with "theory" resolved."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        given = {name: value for name, value in values.items() if value is not None}
        return {k: repr(v) if isinstance(v, Compressor) else v for k, v in given.items()}

    def bind_key(self, key: str, compressor: Compressor, d: int) -> Compressor:
        """The compressor under a key of the method, for dimension d; else `InputError`."""
        bound = compressor.bind_as(f"method.{key}", d, self.star.n, self.star.precision)
        allowed = "a compressor that is not fitted to the workers"
        require(not bound.fitted, f"method.{key}.name", bound.name, allowed)
        bound.seal()
        return bound

    def clients_of(self, S: np.ndarray | None) -> Clients:
        """The clients S, ascending; all if S is None."""
        if S is None:
            return EVERYONE
        first = self.star.first
        begin, end = np.searchsorted(S, (first, first + self.star.m))
        return Clients(S, S[begin:end] - first)

    def drawn_clients(self, r: int | None) -> Clients:
        """r clients, drawn uniformly without replacement; all if r is None."""
        return self.clients_of(None if r is None else self.star.sample(r, replace=False))

    def require_participants(self, r: int | None) -> None:
        """`InputError` unless r clients can be drawn, or r is None."""
        allowed = f"an integer from 1 to n = {self.star.n}"
        require(r is None or 1 <= r <= self.star.n, "method.participants", r, allowed)

    def compress(self, v: np.ndarray | LazyRows) -> Upload:
        """C_i(v_i) for this rank's workers."""
        return self.star.compress(self.compressor, v)
