"""What a part of a run keeps between rounds: declared in its class, with the place where it lives.

class EF21(Estimator):
    g_i = PerWorker("Markov states")
    g = AtServer("their mean")
    gt = Shared("what all ranks know")

A checkpoint is the dump of what is declared. Nothing else may change while a run is on.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import logging
import operator
import re
import struct
import types
from collections.abc import Collection, Mapping
from numbers import Number
from pathlib import PurePath
from typing import Any, ClassVar, Self, get_origin

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.registry import Spec

# what nobody can change, or, as types and modules, nobody does
FIXED: tuple[type, ...] = Number, np.generic, np.dtype, np.ufunc, str, bytes, range, slice, PurePath
FIXED += enum.Enum, type(None), type, types.ModuleType, types.UnionType, re.Pattern, struct.Struct
FIXED += logging.Logger, operator.itemgetter, operator.attrgetter, operator.methodcaller
FIXED += (type(np.sum),)
CONSTANT = "letters", "examples", "columns"  # of a class, whatever they are
PLACES = {"PerWorker": "each worker", "AtServer": "the server", "Shared": "all ranks"}  # in words


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
    _of_class: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = {name: v for name, v in vars(cls).items() if isinstance(v, Declaration)}
        for name in declared:
            delattr(cls, name)
            if name in inspect.get_annotations(cls):
                raise InputError(f"{_title(cls)}.{name}: declares state, so it has no annotation")
        for name, value in list(vars(cls).items()):
            method = hasattr(value, "__get__") or isinstance(value, dataclasses.Field)
            if method or name.startswith("__") or name in CONSTANT:
                continue
            try:
                setattr(cls, name, _fixed(value))
            except _Changeable as error:
                why = f"is a {error}, which all runs share; make it a tuple, or declare state"
                raise InputError(f"{_title(cls)}.{name}: {why}: `{name} = Shared()`") from None
        bases = (vars(base).get("declared", {}) for base in reversed(cls.__mro__))
        cls.declared = {name: v for base in bases for name, v in base.items()} | declared

    def _bind(self, **context: Any) -> Self:
        """A copy with the attributes ``context``, checked, and without state of a run.

        From now on only what is declared can change; `InputError` for what cannot be kept from it.
        """
        made = self.thawed()
        for name in context.keys() & getattr(self, "__dataclass_fields__", {}).keys():
            raise InputError(f"{_title(type(self))}.{name}: the run sets it; rename the key")
        for name in (*self.declared, "_of_class"):
            vars(made).pop(name, None)
        vars(made).update(context, _running=False)
        made.check()
        for name, value in vars(made).items():
            if name in self.declared or name in context:
                continue
            fixed = _constant if name in getattr(self, "__dataclass_fields__", ()) else _fixed
            try:
                vars(made)[name] = fixed(value, context.values())
            except _Changeable as error:
                raise made._undeclared(name, value, f"is a {error}, which can change") from None
        vars(made).update(_running=True, _of_class=_of_class(type(made)))
        return made

    def check(self) -> None:
        """Resolve "theory" parameters; raise `InputError` for a value that is not allowed.

        `bind` calls it on its copy, so it may set attributes. Those that are not declared are
        constants: arrays become read-only, and what a run could change is an `InputError`.
        """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.declared and self._running:
            raise self._undeclared(name, value, "is set in a run")
        if self._frozen:
            super().__setattr__(name, value)  # raises
        self.__dict__[name] = value  # half the time of object.__setattr__

    def state(self) -> dict[str, Any]:
        """What is declared and set, by name, sorted; `InputError` if the class has changed."""
        now = _of_class(type(self)) if self._running else {}
        for name in now:
            if now[name] is not self._of_class.get(name):
                raise self._undeclared(name, now[name], "is set in a run, for the whole class")
        return {name: vars(self)[name] for name in sorted(self.declared) if name in vars(self)}

    def restore(self, state: dict[str, Any]) -> None:
        """Set what `state` returned, and nothing else."""
        for name in self.declared:
            vars(self).pop(name, None)
        for name, value in state.items():
            setattr(self, name, value)

    def _undeclared(self, name: str, value: Any, what: str) -> InputError:
        where = f"{_title(type(self))}: its attribute {name!r} {what}"
        if name in getattr(self, "__dataclass_fields__", ()):
            return InputError(f"{where}, but is a key of its table; use a declared name for state")
        rows = isinstance(value, LazyRows) or getattr(value, "ndim", 0) > 1
        place = "PerWorker" if rows else "Shared"
        others = " or ".join(p for p in ("PerWorker", "AtServer", "Shared") if p != place)
        declaration = f"`{name} = {place}()` (or {others})"
        return InputError(f"{where}, but is not declared; write {declaration} in the class")


class _Changeable(Exception):
    """The type's name of a value that a run could change."""


def _fixed(value: Any, context: Collection[Any] = ()) -> Any:
    """A value that a run cannot change: arrays are read-only. `_Changeable` for others.

    context : what the run's parts are bound to
    """
    if isinstance(value, FIXED) or get_origin(value) or any(value is one for one in context):
        return value
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        value = value.view()
        value.flags.writeable = False
        return value
    if isinstance(value, tuple | frozenset):
        inner = [_fixed(one, context) for one in value]
        same = all(a is b for a, b in zip(inner, value, strict=True))
        return value if same else getattr(value, "_make", type(value))(inner)
    if isinstance(value, types.MappingProxyType):
        return types.MappingProxyType({name: _fixed(one, context) for name, one in value.items()})
    if isinstance(value, functools.partial):
        held = value.func, value.args, *value.keywords.values()
        if _fixed(held, context) is held:  # an array is not: a copy of it would be read-only
            return value
    if isinstance(value, Spec) and not getattr(value, "_running", False):
        return value
    of_fixed = isinstance(value, types.MethodType | types.BuiltinFunctionType)
    if of_fixed and _fixed(value.__self__, context) is value.__self__:
        return value
    function = getattr(value, "py_func", value)  # Numba's have one
    if isinstance(function, types.FunctionType) and not function.__closure__:
        held = function.__defaults__, *(function.__kwdefaults__ or {}).values()
        if _fixed(held, context) is held:
            return value
    if hasattr(value, "tocsr"):  # SciPy's sparse arrays
        made = copy.copy(value)
        vars(made).update({name: _fixed(one, context) for name, one in vars(value).items()})
        return made
    if dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen:  # type: ignore
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, _fixed(getattr(value, field.name), context))
        return made
    raise _Changeable(type(value).__name__)


def _constant(key: Any, context: Collection[Any] = ()) -> Any:
    """The same for the value of a table's key: lists become tuples, and tables read-only."""
    if isinstance(key, list):
        return tuple(_constant(inner, context) for inner in key)
    if isinstance(key, dict | types.MappingProxyType):
        return types.MappingProxyType({name: _constant(one, context) for name, one in key.items()})
    return _fixed(key, context)


def _of_class(cls: type) -> dict[str, Any]:
    """The attributes of a class and its bases, without what Python itself adds."""
    several = (item for base in reversed(cls.__mro__) for item in vars(base).items())
    return {name: value for name, value in several if not name.startswith("__")}


def _title(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
