"""What a message is, and what server and worker both know of it before it is sent.

A `Form` is the common knowledge: dimension, precision, seeded coordinates, how many workers. A
`Message` holds, worker axis first, what only the sender knows. Encoding is lossless for the
message: ``form.decode(*message.encode())`` equals the message, bit for bit. Both are made several
times a round, so their classes are plain dataclasses: a frozen one takes microseconds to make.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numba import njit

from mpisim.core.errors import WireError
from mpisim.core.numerics.sums import add_by_run, ordered_sum


@dataclasses.dataclass(frozen=True)
class Precision:
    """``wire``: type of values in messages (run.wire); ``arithmetic``: of vectors (run.dtype)."""

    wire: np.dtype
    arithmetic: np.dtype

    @property
    def bits(self) -> int:
        """Bits of one value on the wire."""
        return 8 * self.wire.itemsize


@dataclasses.dataclass(eq=False)
class Packed:
    """Encoded messages of a block of m workers, each padded to bytes, one after another.

    data : shape (total bytes,), uint8
    sizes : bytes of each message, shape (m,), int64
    payload_bits : bits of each message without headers and padding, which are what is charged,
        shape (m,), int64
    """

    data: np.ndarray
    sizes: np.ndarray
    payload_bits: np.ndarray


@dataclasses.dataclass(eq=False)
class Form(ABC):
    """What both sides know of the messages of a block of ``workers`` workers in dimension ``d``."""

    d: int
    workers: int
    precision: Precision

    @property
    @abstractmethod
    def sizes(self) -> np.ndarray | None:
        """Bytes of each message, shape (workers,), int64, or None where only the sender knows.

        Unknown sizes cross the wire, 32 bits each, and are charged as framing.
        """

    @abstractmethod
    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Message:
        """The messages in ``data`` (uint8); `WireError` for any bytes that are not messages.

        Linear in time and memory.
        """


class Message(ABC):
    """The messages of a block of workers; every use of them is of their decoded value."""

    form: Form

    @abstractmethod
    def encode(self) -> Packed:
        """Bytes and bits of the block."""

    def arrived(self, packed: Packed) -> Message:
        """What a receiver in the sender's process decodes from `encode`'s result."""
        return self.form.decode(packed.data, packed.sizes)

    @property
    @abstractmethod
    def payload_bits(self) -> np.ndarray:
        """Bits of each message without headers and padding, shape (workers,), int64."""

    def layer_bits(self) -> np.ndarray | None:
        """`payload_bits` of each layer, shape (workers, layers), int64, if it is one by one."""
        return None

    @abstractmethod
    def decoded(self) -> np.ndarray:
        """What the receivers see: shape (workers, d), arithmetic precision."""

    def add_to(self, rows: np.ndarray) -> None:
        """Add the decoded messages to ``rows`` (workers, d), in place."""
        rows += self.decoded()

    def total(self) -> np.ndarray:
        """Sum over the block in worker order, shape (d,)."""
        return ordered_sum(self.decoded())

    def totals(self, runs: int) -> np.ndarray:
        """`total` of each run of an ensemble, whose workers follow one another, (runs, d)."""
        rows = self.decoded()
        totals = np.zeros((runs, rows.shape[1]), rows.dtype)
        add_by_run(totals, rows, 0, len(rows) // runs)
        return totals


@dataclasses.dataclass(eq=False)
class CarriedForm(Form):
    """Messages that travel as those of another form, ``inner``.

    message : the class of its messages
    """

    message: ClassVar[Callable[..., Any]]
    inner: Any

    @property
    def sizes(self) -> np.ndarray | None:
        return self.inner.sizes

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Any:
        return self.message(self, self.inner.decode(data, sizes))


@dataclasses.dataclass(eq=False)
class Carried(Message):
    """``inner``: the messages that travel."""

    form: Any
    inner: Any

    @property
    def payload_bits(self) -> np.ndarray:
        return self.inner.payload_bits

    def encode(self) -> Packed:
        return self.inner.encode()


class KernelMessage(Message):
    """Messages that one kernel decodes, sets and adds up."""

    @abstractmethod
    def put(self, rows: np.ndarray, add: bool) -> None:
        """Add the decoded messages to ``rows`` (workers, d), or without ``add`` set these zeros.

        With fewer rows, each gets the sum of as many workers, in worker order.
        """

    def zeros(self, rows: int) -> np.ndarray:
        """Shape (rows, d), arithmetic precision."""
        return np.zeros((rows, self.form.d), self.form.precision.arithmetic)

    def decoded(self) -> np.ndarray:
        rows = self.zeros(self.form.workers)
        self.put(rows, False)
        return rows

    def add_to(self, rows: np.ndarray) -> None:
        self.put(rows, True)

    def total(self) -> np.ndarray:
        return self.totals(1)[0]

    def totals(self, runs: int) -> np.ndarray:
        rows = self.zeros(runs)
        self.put(rows, True)
        return rows


class CodedMessage(Message):
    """Messages whose sizes only the sender knows: what was written, or read, is charged.

    payload : `payload_bits`, once the messages were written or read
    """

    payload: np.ndarray | None

    @property
    def payload_bits(self) -> np.ndarray:
        return self.encode().payload_bits if self.payload is None else self.payload


# How a form packs tensors, by its class: filled by `mpisim.wire.placed`, for runs that have some.
TENSOR_PACKERS: dict[type[Form], Callable[..., Any]] = {}


def pack_tensors(form: Form, *packed: Any) -> Any:
    """The message with what ``form`` packs of tensors, its vectors on their device."""
    return TENSOR_PACKERS[type(form)](form, *packed)


def checked(form: Form, data: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``data``, contiguous, and ``sizes``, int64, as kernels take them.

    `WireError` unless they can be the messages of ``form``'s workers.
    """
    sizes = np.asarray(sizes, np.int64)
    if data.dtype != np.uint8 or data.ndim != 1:
        raise WireError(f"messages are {data.dtype} {data.shape}, not a row of bytes")
    if sizes.shape != (form.workers,):
        raise WireError(f"there are sizes {sizes.shape} for the messages of {form.workers} workers")
    if _sum_of_sizes(sizes, data.size) != data.size:
        raise WireError(f"messages have {data.size} bytes, and their sizes do not add up to that")
    agreed = form.sizes
    if agreed is not None and agreed is not sizes and not _equal(agreed, sizes):
        raise WireError("messages do not have the sizes that sender and receiver agreed on")
    return np.ascontiguousarray(data), sizes


@lru_cache(maxsize=256)
def same(workers: int, value: int) -> np.ndarray:
    """``value`` for each worker, shape (workers,), int64, read-only: the same in every round."""
    values = np.full(workers, value, np.int64)
    values.flags.writeable = False
    return values


@njit(cache=True)
def _sum_of_sizes(sizes, most):
    """Their sum, or -1 as soon as one is negative or the sum exceeds ``most``."""
    total = 0
    for size in sizes:
        if size < 0 or size > most - total:
            return -1
        total += size
    return total


@njit(cache=True)
def _equal(first, second):
    """`numpy.array_equal` of arrays of the same size, at a tenth of the time."""
    different = 0
    for i in range(first.size):
        different += first[i] != second[i]
    return different == 0
