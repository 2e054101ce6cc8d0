"""Register classes by name, and freeze the objects built from an experiment's tables.

A table becomes a `frozen` object, a spec. `bind` and `load` work on an `unfrozen` copy, which holds
what was resolved, so a spec can be used any number of times.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


def named(kinds: dict[str, Any], name: str) -> Callable[[type[T]], type[T]]:
    """Class decorator: make a dataclass, whose fields are its table's keys, and register it."""

    def register(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(eq=False)(cls)
        made.name = name  # type: ignore[attr-defined]
        kinds[name] = made
        return made

    return register


def frozen(made: T) -> T:
    """Freeze ``made`` in place: its attributes can no longer be set."""
    kind: Any = type(made)
    object.__setattr__(made, "__class__", _frozen_class(kind))
    return made


def unfrozen(spec: T) -> T:
    """A shallow copy whose attributes can be set."""
    made, kind = copy.copy(spec), type(spec)
    if kind.__setattr__ is _refuse:
        object.__setattr__(made, "__class__", kind.__base__)
    return made


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(
        f"{type(self).__name__}.{name} is frozen; bind makes a copy"
    )


@cache
def _frozen_class(cls: type) -> type:
    """A subclass of ``cls`` that refuses to set attributes and otherwise looks like it."""
    same = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(cls.__name__, (cls,), same | {"__setattr__": _refuse, "__delattr__": _refuse})
