"""Classes by name, and how the objects built from an experiment's tables are frozen.

A table becomes a `frozen` object, a spec. `bind` and `load` work on an `unfrozen` copy, which holds
what was resolved, so a spec can be used any number of times.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class Registry(MutableMapping[str, type[T]]):
    """Classes by name. A room's own are imported when they are asked for, not when names are."""

    def __init__(self) -> None:
        self._classes: dict[str, type[T]] = {}
        self._modules: dict[str, str] = {}

    def provide(self, room: str, modules: Mapping[str, tuple[str, ...]]) -> None:
        """Make known the names that each of a room's modules registers when it is imported."""
        for module, names in modules.items():
            self._modules |= dict.fromkeys(names, f"{room}.{module}")

    def __getitem__(self, name: str) -> type[T]:
        if name in self._modules:
            import_module(self._modules[name])
        return self._classes[name]

    def __setitem__(self, name: str, cls: type[T]) -> None:
        if name in self._modules:  # a plugin's class replaces ours, which must not come later
            import_module(self._modules[name])
        self._classes[name] = cls

    def __delitem__(self, name: str) -> None:
        del self._classes[name]
        self._modules.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter({**self._modules, **self._classes})

    def __len__(self) -> int:
        return len({**self._modules, **self._classes})


def named(kinds: MutableMapping[str, Any], name: str) -> Callable[[type[T]], type[T]]:
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
