"""What a part of a run keeps between rounds: declared in its class, with the place where it lives.

class EF21(Estimator):
    g_i = PerWorker("Markov states")
    g = AtServer("their mean")
    gt = Shared("what all ranks know")

A checkpoint is the dump of what is declared. Nothing else may change while a run is on.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from typing import Any, ClassVar, Self

import numpy as np

from mpisim.core.arrays import is_tensor
from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.registry import Spec

MUTABLE = MutableMapping, MutableSequence, MutableSet, Iterator  # list, deque, bytearray, ...
CONSTANT = "letters", "examples", "columns"  # of a class, whatever they are


@dataclasses.dataclass(frozen=True)
class Declaration:
    """An attribute that a part keeps; place : "PerWorker", "AtServer" or "Shared"."""

    place: str
    meaning: str


def PerWorker(meaning: str = "") -> Any:
    """Declare state of the workers: arrays (m, ...) or lazy rows, a row for each of this rank's."""
    return Declaration("PerWorker", meaning)


def AtServer(meaning: str = "") -> Any:
    """Declare state of the server; on other ranks it has the same shape and no meaning."""
    return Declaration("AtServer", meaning)


def Shared(meaning: str = "") -> Any:
    """Declare state that is the same on all ranks."""
    return Declaration("Shared", meaning)


class Stateful(Spec):
    """A part of a run, with its state declared in the class.

    State may be arrays, numbers, strings, None, and lists, tuples and dicts of these. An attribute
    that is declared does not exist before it is set.

    declared : the declarations of the class and its bases, by name
    """

    declared: ClassVar[Mapping[str, Declaration]] = {}
    _running = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = {name: v for name, v in vars(cls).items() if isinstance(v, Declaration)}
        for name in declared:
            delattr(cls, name)
            if name in inspect.get_annotations(cls):
                raise InputError(f"{_title(cls)}.{name}: declares state, so it has no annotation")
        for name, value in vars(cls).items():
            if isinstance(value, MUTABLE) and not name.startswith("__") and name not in CONSTANT:
                kind = type(value).__name__
                why = f"is a {kind}, which all runs share; make it a tuple, or declare state"
                raise InputError(f"{_title(cls)}.{name}: {why}: `{name} = Shared()`")
        bases = (vars(base).get("declared", {}) for base in reversed(cls.__mro__))
        cls.declared = {name: v for base in bases for name, v in base.items()} | declared

    def _bind(self, **context: Any) -> Self:
        """A copy with the attributes ``context``, checked, and without state of a run.

        From now on only what is declared can change; `InputError` for what cannot be kept from it.
        """
        copy = self.thawed()
        for name in self.declared:
            vars(copy).pop(name, None)
        vars(copy).update(context, _running=False)
        before = dict(vars(copy))
        copy.check()
        for name, value in vars(copy).items():
            if name in getattr(self, "__dataclass_fields__", ()):
                vars(copy)[name] = _constant(value)
            elif name not in self.declared and value is not before.get(name):
                vars(copy)[name] = copy._fixed(name, value)
        vars(copy)["_running"] = True
        return copy

    def check(self) -> None:
        """Resolve "theory" parameters; raise `InputError` for a value that is not allowed.

        `bind` calls it on its copy, so it may set attributes. Arrays that are not declared become
        read-only.
        """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.declared and self._running:
            raise self._undeclared(name, value, "is set in a run")
        if self._frozen:
            super().__setattr__(name, value)  # raises
        self.__dict__[name] = value  # half the time of object.__setattr__

    def state(self) -> dict[str, Any]:
        """What is declared and set, by name, sorted."""
        return {name: vars(self)[name] for name in sorted(self.declared) if name in vars(self)}

    def restore(self, state: dict[str, Any]) -> None:
        """Set what `state` returned, and nothing else."""
        for name in self.declared:
            vars(self).pop(name, None)
        for name, value in state.items():
            setattr(self, name, value)

    def _fixed(self, name: str, value: Any) -> Any:
        """An attribute that is not declared, so that a run cannot change it."""
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        elif type(value) is tuple:
            return tuple(self._fixed(name, inner) for inner in value)
        elif isinstance(value, MUTABLE) or is_tensor(value):
            raise self._undeclared(name, value, f"is a {type(value).__name__}, which can change")
        return value

    def _undeclared(self, name: str, value: Any, what: str) -> InputError:
        where = f"{_title(type(self))}: its attribute {name!r} {what}"
        if name in getattr(self, "__dataclass_fields__", ()):
            return InputError(f"{where}, but is a key of its table; use a declared name for state")
        rows = isinstance(value, LazyRows) or getattr(value, "ndim", 0) > 1
        place = "PerWorker" if rows else "Shared"
        others = " or ".join(p for p in ("PerWorker", "AtServer", "Shared") if p != place)
        declaration = f"`{name} = {place}()` (or {others})"
        return InputError(f"{where}, but is not declared; write {declaration} in the class")


def _constant(key: Any) -> Any:
    """The value of a table's key, so that a run cannot change it: lists as tuples."""
    return tuple(map(_constant, key)) if isinstance(key, list) else key


def _title(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
