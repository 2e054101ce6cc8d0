"""The interface of a compressor, worker data that it may be fitted to, Identity and Flag."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from mpisim.core.arrays import to_host
from mpisim.core.errors import InputError
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.registry import Registry, Spec, named, of_mpisim
from mpisim.core.rng import Draw
from mpisim.core.schema import build, choose
from mpisim.theory.compression import FLOAT_BITS, CompressorConstants
from mpisim.wire.base import Form, Message, Precision, same
from mpisim.wire.signs import Flags, FlagsForm
from mpisim.wire.values import Dense, DenseForm

COMPRESSORS: Registry[type[Compressor]] = Registry(
    "compressor",
    aliases={"rand-k": "randk", "top-k": "topk", "perm-k": "permk", "rankk": "rank-k"},
)


def compressor(name: str, label: str = "", letters: Mapping[str, str] | None = None):
    """Class decorator: makes a compressor known under ``name`` in ``[compressor]`` tables.

    label : its name in figures and tables; ``name`` unless given
    letters : {key: letter} of the parameters that follow the label: ``RandK (K = 10)``; unless
        given, all that are numbers
    """

    def register(cls: type[Compressor]) -> type[Compressor]:
        cls.title, cls.letters = label or name, letters
        return named(COMPRESSORS, name)(cls)

    return register


def make(table: Mapping[str, Any], where: str = "compressor") -> Compressor:
    """Build the compressor of a ``[compressor]`` table, not yet bound to a dimension.

    ``where`` names the table in errors. Raises `InputError` for unknown names and keys, missing
    keys and wrong types; `bind` checks values. A key of type `Compressor` (the ``inner`` of a
    wrapper) takes a table.
    """
    kind = choose(COMPRESSORS, table.get("name"), f"{where}.name")
    return build(kind, {key: value for key, value in table.items() if key != "name"}, where)


class Compressor(Spec, CompressorConstants, ABC):
    """A map C: R^d -> R^d applied to each worker's vector, and the message that carries it.

    Subclasses are dataclasses whose fields are the keys of the ``[compressor]`` table. `bind` makes
    the object that compresses.
    """

    description: ClassVar[str] = "a table with the name and keys of a compressor"
    from_table = staticmethod(make)
    title: ClassVar[str] = ""  # in figures and tables
    letters: ClassVar[Mapping[str, str] | None] = None  # of parameters there
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()  # tables that `mpisim check` tries
    seeded: bool = False  # a form is a `SeededForm`, and a message those values of v
    fitted: bool = False  # `prepare` uses the problem: set for each class that defines it
    in_ensembles: ClassVar[bool] = False  # also with an `EnsembleDraw`; of this class alone
    lazy: ClassVar[bool] = False  # `compress` also takes `LazyRows`
    on_device: bool = False  # `compress` also takes tensors; else they are copied to the host
    random_length: bool = False  # messages have other lengths in other rounds, whatever the values
    portable: bool = True  # the same bits on every x86-64 processor, as in `Problem`
    precision: Precision

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "prepare" in vars(cls):
            cls.fitted = True
        function = isinstance(cls.compress, FunctionType) and not hasattr(cls.compress, "checked")
        if function and not of_mpisim(cls.compress):  # of the class, or of a mixin
            cls.compress = _of_messages(cls.compress)  # type: ignore[method-assign]
        if "compress" in vars(cls) and "on_device" not in vars(cls):
            cls.on_device = False

    def bind(self, d: int, n: int, precision: Precision) -> Compressor:
        """A copy for dimension ``d``, ``n`` workers over all ranks, and a precision.

        Raises `InputError` if a parameter does not fit (K > d, say).
        """
        for name in ("d", "n", "precision"):
            if name in getattr(self, "__dataclass_fields__", {}):
                raise InputError(f"compressor.{name}: the run sets it; rename the key")
        bound = self.thawed()
        bound.d, bound.n, bound.precision = d, n, precision
        bound.check()
        return bound

    def bind_as(self, where: str, d: int, n: int, precision: Precision) -> Compressor:
        """`bind`, with errors that call the compressor's table ``where``."""
        try:
            return self.bind(d, n, precision)
        except InputError as error:
            raise InputError(str(error).replace("compressor.", f"{where}.", 1)) from None

    def check(self) -> None:
        """Resolve the parameters; raise `InputError` if they do not fit the dimension.

        `bind` calls it on its copy, so it may set attributes.
        """

    def seal(self) -> None:
        """From now on, setting an attribute is an `InputError`: a compressor has no state."""
        for value in vars(self).values():
            for part in value if isinstance(value, list | tuple) else [value]:
                if isinstance(part, Compressor):
                    part.seal()
        self.freeze()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen and hasattr(self, "precision"):  # it is bound
            where = f"{type(self).__module__}.{type(self).__qualname__}"
            why = "is set in a run, but a compressor has no state: no checkpoint would hold it"
            raise InputError(f"{where}: its attribute {name!r} {why}")
        super().__setattr__(name, value)

    def bind_inner(self, key: str, d: int | None = None) -> Compressor:
        """The compressor under ``key``, bound to dimension ``d``, its own unless given.

        Errors name ``compressor.key.…``.
        """
        inner = getattr(self, key).bind_as(f"compressor.{key}", d or self.d, self.n, self.precision)
        self.portable = self.portable and inner.portable
        self.random_length = self.random_length or inner.random_length
        return inner

    def prepare(self, star: Uplink, problem: Objective) -> None:
        """Exchange what must be known before round 0 (smoothness matrices, say). Collective.

        Called once, after `bind`; ``star`` charges what it sends in row 0.
        """

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        """Fit the parameters to each worker's Diag(L_i), and send what is fitted. Collective.

        `smooth` calls it from its `prepare`. diagonals : Diag(L_i), shape (d,), of each worker that
        this rank knows; n_mu : n times f's mu, or the penalty's.
        """

    @abstractmethod
    def form(self, draw: Draw) -> Form:
        """What server and workers both know of the messages of ``draw``'s workers."""

    @abstractmethod
    def compress(self, v: np.ndarray, draw: Draw) -> Message:
        """The messages of a block of workers with vectors ``v``, shape (draw.workers, d).

        ``v`` is a NumPy array, unless the class says ``lazy`` or ``on_device``.
        """

    def paper_bits(self, message: Message) -> np.ndarray:
        """What the compressor's paper charges for each message, shape (workers,), int64."""
        return message.payload_bits


def _of_messages(compress: Callable[..., Any]) -> Callable[..., Message]:
    """A plugin's `compress`, which raises `InputError` where it returns anything but messages."""

    @wraps(compress)
    def checked(self: Compressor, *given: Any, **named: Any) -> Message:
        message = compress(self, *given, **named)
        if not isinstance(message, Message):
            kind = f"{type(self).__module__}.{type(self).__qualname__}"
            line = f"compress returned {type(message).__name__}; allowed: a form's message"
            raise InputError(f"{kind}: {line}")
        return message

    checked.checked = True  # type: ignore[attr-defined]
    return checked


@dataclasses.dataclass(frozen=True)
class WorkerRows:
    """A row for each worker that this rank knows: all at the server, those of the rank elsewhere.

    They were sent once before round 0, or follow from what was sent.

    first : the worker of row 0
    rows : array, shape (workers known, ...)
    """

    first: int
    rows: np.ndarray

    def which(self, draw: Draw) -> np.ndarray:
        """The rows of the workers that draw, shape (draw.workers,), int64."""
        start = draw.first - self.first
        if start < 0 or start + draw.count > len(self.rows) or draw.purpose == "down":
            raise InputError(
                "compressor.name: 'smooth' is fitted to each worker's L_i and cannot compress"
                " messages of the server"
            )
        return start + draw.members

    def of(self, draw: Draw) -> np.ndarray:
        """The rows of the workers that draw, shape (draw.workers, ...)."""
        which = self.which(draw)
        if draw.clients is not None:
            return self.rows[which]
        return self.rows[draw.first - self.first :][: draw.count]  # without a copy

    def one(self, worker: int) -> np.ndarray:
        """The row of a worker, numbered over all ranks."""
        return self.rows[worker - self.first]

    def map(self, function) -> WorkerRows:
        """``function`` of each row."""
        rows = [function(row) for row in self.rows]
        shape = function(np.ones(self.rows.shape[1:])).shape if not rows else rows[0].shape
        return WorkerRows(self.first, np.array(rows, np.float64).reshape(len(rows), *shape))


@compressor("identity", "no compression", {})
class Identity(Compressor):
    """C(v) = v, rounded to wire precision. omega = 0, alpha = 1; the papers charge 32 d bits."""

    on_device = in_ensembles = True
    omega = 0.0

    def form(self, draw: Draw) -> DenseForm:
        return DenseForm.of(self.d, draw.workers, self.precision)

    def compress(self, v: np.ndarray, draw: Draw) -> Dense:
        return self.form(draw).take(v)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.d)


class Flag(Compressor):
    """1 where v (workers, 1) is above 0, else 0.

    No ``[compressor]`` table names it: `Star.flags` sends it.
    """

    name = "flag"

    def form(self, draw: Draw) -> FlagsForm:
        return FlagsForm(self.d, draw.workers, self.precision)

    def compress(self, v: np.ndarray, draw: Draw) -> Flags:
        return Flags(self.form(draw), to_host(v)[:, 0] > 0)
