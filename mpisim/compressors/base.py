"""The interface of a compressor: one class, found by its name in the experiment file."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.rng import Draw
from mpisim.wire.base import Form, Message, Precision

if TYPE_CHECKING:
    from mpisim.comm.star import Star
    from mpisim.compressors.groups import Groups
    from mpisim.compressors.worker_rows import WorkerRows
    from mpisim.problems.base import Problem

COMPRESSORS: dict[str, type[Compressor]] = {}
FLOAT_BITS = 32  # what the papers charge for one value, whatever the wire precision


def compressor(name: str):
    """Class decorator: makes a compressor known under ``name`` in ``[compressor]`` tables."""

    def register(cls):
        COMPRESSORS[name] = dataclasses.dataclass(cls)
        cls.name = name
        return cls

    return register


class Compressor(ABC):
    """A map C: R^d -> R^d applied to each worker's vector, and the message that carries it.

    Subclasses are dataclasses whose fields are the keys of the ``[compressor]`` table. `bind` is
    called once, before any use, with what the run knows.
    """

    name: ClassVar[str]
    in_words: ClassVar[str] = "a table with the name and keys of a compressor"
    seeded: ClassVar[bool] = False  # are forms `SeededForm`s, and messages those values of v?
    lazy: ClassVar[bool] = False  # does `compress` take `LazyRows`, too? Others get arrays.
    correlated: bool = False  # do the workers draw together?
    d: int
    n: int
    precision: Precision

    def bind(self, d: int, n: int, precision: Precision) -> Compressor:
        """Set dimension, number of workers (over all ranks) and precision; check the parameters.

        Raises `InputError` where a parameter does not fit (K > d, say).
        """
        self.d, self.n, self.precision = d, n, precision
        self.check()
        return self

    def check(self) -> None:  # noqa: B027
        """Raise `InputError` if the parameters do not fit the dimension."""

    def bind_inner(self, key: str, d: int, n: int) -> Compressor:
        """`bind` the compressor that is the value of ``key``; errors name ``compressor.key.…``."""
        try:
            return getattr(self, key).bind(d, n, self.precision)
        except InputError as error:
            line = str(error).replace("compressor.", f"compressor.{key}.", 1)
            raise InputError(line) from None

    def prepare(self, star: Star, problem: Problem) -> None:  # noqa: B027
        """Exchange what has to be known before round 0 (smoothness matrices, say). Collective.

        Called once, after `bind`; what is sent goes through ``star`` and is charged in row 0.
        """

    def fit(self, star: Star, diagonals: WorkerRows, n_mu: float) -> None:  # noqa: B027
        """Fit the parameters to each worker's Diag(L_i), and send what is fitted. Collective.

        Called by the wrapper `smooth` from its `prepare`. diagonals : row i is Diag(L_i), shape
        (d,), of each worker that this rank knows; n_mu : n times the penalty's strong convexity.
        """

    @abstractmethod
    def form(self, draw: Draw) -> Form:
        """What server and workers both know of this round's messages for ``draw``'s workers."""

    @abstractmethod
    def compress(self, v: np.ndarray, draw: Draw) -> Message:
        """The messages of a block of workers with vectors ``v``, shape (draw.workers, d)."""

    @property
    def omega(self) -> float | None:
        """E[C(v)] = v and E|C(v) - v|^2 <= omega |v|^2, or None if C is biased."""
        return None

    @property
    def shift_omega(self) -> float | None:
        """omega in the norm in which DIANA's shifts are learnt; another one inside `smooth`."""
        return self.omega

    @property
    def cal_L_max(self) -> float | None:
        """max_i cal-L_i of the smoothness-aware quantization paper; None: omega max_i L_i."""
        return None

    def cal_L(self, matrix: np.ndarray, worker: int) -> float | None:
        """cal-L(C_i, L_i), or a bound, for a worker of this rank (counted over all ranks).

        E|C_i(x) - x|_L^2 <= cal-L |x|^2; ``matrix`` is L, shape (d, d). omega lambda_max(L) unless
        the compressor knows better; None if C is biased.
        """
        if self.omega is None:
            return None
        return self.omega * max(0.0, float(np.linalg.eigvalsh(matrix)[-1]))

    @property
    def alpha(self) -> float | None:
        """E|C(v) - v|^2 <= (1 - alpha) |v|^2, or None if C is not contractive.

        An unbiased C with omega < 1 is contractive as it is, with alpha = 1 - omega.
        """
        return 1 - self.omega if self.omega is not None and self.omega < 1 else None

    @property
    def A(self) -> float | None:
        """A of the AB inequality (PermK paper, Assumption 4), or None if C is biased:

        E|(1/n) sum C_i(a_i) - (1/n) sum a_i|^2 <= A (1/n) sum |a_i|^2 - B |(1/n) sum a_i|^2.

        omega / n for workers that draw independently (Lemma 1).
        """
        return self.omega / self.n if self.omega is not None else None

    @property
    def B(self) -> float | None:
        """B of the AB inequality: 0 for workers that draw independently."""
        return 0.0 if self.omega is not None else None

    @property
    def by_group(self) -> Groups | None:
        """A and B inside groups of workers that draw apart, or None where there is one group."""
        return None

    @property
    def density(self) -> float:
        """zeta: the expected number of non-zero components of C(v), at most (MARINA, Def. 1.1)."""
        return float(self.d)

    def paper_bits(self, message: Message) -> np.ndarray:
        """What the compressor's paper charges for each message, shape (workers,), int64."""
        return message.payload_bits

    def need_omega(self, who: str) -> float:
        """omega, or `InputError` where ``who`` needs an unbiased compressor."""
        if self.omega is None:
            raise InputError(
                f"compressor.name: {self.name!r} is biased, and {who} needs an unbiased one"
            )
        return self.omega
