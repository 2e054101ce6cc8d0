"""The interface of a compressor: one class, found by its name in the experiment file."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mpisim.errors import InputError
from mpisim.streams import Draw
from mpisim.wire.base import Form, Message, Precision

if TYPE_CHECKING:
    from mpisim.problems.base import Problem
    from mpisim.star import Star

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

    def prepare(self, star: Star, problem: Problem) -> None:  # noqa: B027
        """Exchange what has to be known before round 0 (smoothness matrices, say). Collective.

        Called once, after `bind`; what is sent goes through ``star`` and is charged in row 0.
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
    def alpha(self) -> float | None:
        """E|C(v) - v|^2 <= (1 - alpha) |v|^2, or None if C is not contractive.

        An unbiased C with omega < 1 is contractive as it is, with alpha = 1 - omega.
        """
        return 1 - self.omega if self.omega is not None and self.omega < 1 else None

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
