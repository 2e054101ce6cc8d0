"""Things by name, and the frozen objects that an experiment's tables are made into.

A table becomes a `Spec`. `bind` and `load` work on a copy, which holds what was resolved.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import getattr_static, signature
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mpisim.core.errors import InputError, import_failure

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


T = TypeVar("T")
METHODS = (FunctionType, classmethod, staticmethod)
GROUP = "mpisim.plugins"  # entry points of packages: each names a module, which registers things


class Registry(MutableMapping[str, T]):
    """Methods, compressors, ... by name: mpisim's, and those of plugins.

    A module of mpisim is imported when something in it is looked up, not when names are listed. The
    plugins of installed packages are imported when an unknown name is looked up, or all names are
    listed. No plugin may take a name of mpisim's or of a package; what a program defines may.

    kind : of what is named, for messages
    aliases : {another spelling: name}; a plugin may take it for its own
    """

    def __init__(self, kind: str, objects: Mapping[str, T] = {}, aliases: Mapping[str, str] = {}):
        self.kind, self.aliases = kind, dict(aliases)
        self._objects: dict[str, T] = dict(objects)
        self._modules: dict[str, str] = {}  # of mpisim's classes
        self.owners: dict[str, Plugin] = {}  # of names that plugins have registered

    def provide(self, room: str, modules: Mapping[str, Sequence[str]]) -> None:
        """Make known the names that each of a room's modules registers when it is imported."""
        for module, names in modules.items():
            self._modules |= dict.fromkeys(names, f"{room}.{module}")

    def canonical(self, name: str) -> str:
        """The name that logs have: ``randk`` for ``rand-k``."""
        return self.aliases.get(name, name)

    def loaded(self) -> dict[str, T]:
        """What is registered so far, by name."""
        return dict(self._objects)

    def knows(self, name: object) -> bool:
        """Whether the name is known, without the plugins of installed packages."""
        return any(name in names for names in (self.aliases, self._modules, self._objects))

    def __getitem__(self, name: str) -> T:
        if not self.knows(name):
            load_packages()
        name = self.canonical(name)
        if name in self._modules:
            import_module(self._modules[name])
        return self._objects[name]

    def __setitem__(self, name: str, value: T) -> None:
        module = getattr(value, "__module__", "") if isinstance(value, type) else ""
        if self._modules.get(name, module) != module:
            import_module(self._modules[name])  # now: later, ours would replace the plugin's
        if module.partition(".")[0] != "mpisim":  # modules register their classes when imported
            plugin, owner = _state.current, self.owners.get(name)
            if plugin and self.knows(name) and not (owner and owner.gives_way_to(plugin)):
                taken = owner.name if owner else "mpisim"
                raise InputError(f"{self.kind} {name!r} is taken by {taken}; rename it")
            self.owners[name] = plugin or Plugin("another plugin")
            self.owners[name].names[self.kind, name] = self, value
        self.aliases.pop(name, None)
        self._objects[name] = value

    def __delitem__(self, name: str) -> None:
        del self._objects[name]
        self._modules.pop(name, None)

    def __contains__(self, name: object) -> bool:
        if not self.knows(name) and isinstance(name, str):
            load_packages()
        return self.knows(name)

    def __iter__(self) -> Iterator[str]:
        load_packages()
        return iter(self._modules | self._objects)

    def __len__(self) -> int:
        return len(list(iter(self)))


def registered(kinds: MutableMapping[str, T], name: str) -> Callable[[T], T]:
    """Decorator: make a class or a function known as it is.

    `InputError` for a class without some of the methods that it must have, or with a method where
    it must have a value.
    """

    def register(made: Any) -> Any:
        _require_values(made)
        methods = {name: getattr(made, name) for name in getattr(made, "__abstractmethods__", ())}
        if methods:
            given = {name: ", ".join(signature(one).parameters) for name, one in methods.items()}
            missing = ", ".join(f"{name}({words})" for name, words in sorted(given.items()))
            raise InputError(f"{made.__module__}.{made.__qualname__}: define {missing}")
        kinds[name] = made
        return made

    return register


def of_mpisim(cls: Any) -> bool:
    """Whether a class or function is not a plugin's."""
    return cls.__module__.partition(".")[0] == "mpisim"


def _require_values(cls: Any) -> None:
    """`InputError` for a plugin's method under a name that has a value in a class of mpisim's."""
    if not isinstance(cls, type) or of_mpisim(cls):
        return
    for base in filter(of_mpisim, cls.__mro__):
        values = [name for name in vars(base) if not callable(getattr(base, name))]
        for name in [*values, *vars(base).get("__annotations__", ())]:
            if isinstance(getattr_static(cls, name, None), METHODS) and not name.startswith("__"):
                where = f"{cls.__module__}.{cls.__qualname__}.{name}"
                raise InputError(f"{where}: is a value, and no method; write @property above it")


def named(kinds: MutableMapping[str, Any], name: str) -> Callable[[type[T]], type[T]]:
    """Class decorator: make a dataclass, whose fields are its table's keys, and register it."""

    def register(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(eq=False)(cls)
        if made.__hash__ is None:  # a dataclass already, with an __eq__
            made.__eq__, made.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]
        made.name = name  # type: ignore[attr-defined]
        return registered(kinds, name)(made)

    return register


def table_of(part: Any) -> dict[str, Any]:
    """The table of an object that `named` registered: its name and keys, also of those inside."""
    fields = {f.name.rstrip("_"): getattr(part, f.name) for f in dataclasses.fields(part) if f.init}
    inner = {k: table_of(v) if hasattr(v, "name") else v for k, v in fields.items()}
    return {"name": part.name, **inner}


class Spec:
    """What a table was made into. It is frozen, so that it can be used any number of times."""

    _frozen = False

    def freeze(self) -> None:
        """From now on, setting an attribute raises `dataclasses.FrozenInstanceError`."""
        vars(self)["_frozen"] = True

    def thawed(self) -> Self:
        """A shallow copy whose attributes can be set, for `bind` and `load`."""
        made = copy.copy(self)
        vars(made).pop("_frozen", None)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            why = f"{type(self).__name__}.{name} is frozen; bind makes a copy"
            raise dataclasses.FrozenInstanceError(why)
        object.__setattr__(self, name, value)


# what loads plugins, and those of installed packages


@dataclasses.dataclass(eq=False)
class Plugin:
    """What is loaded, once; ``name``: in messages.

    again : the user named it; what it registers gives way to what the user names later
    names : what it has registered: {(registry's kind, name): (registry, object)}
    spec : of its module, as it was loaded
    """

    name: str
    again: bool = False
    names: dict[tuple[str, str], tuple[Registry, Any]] = dataclasses.field(default_factory=dict)
    spec: Any = None

    def take(self) -> None:
        """Own what the registries have now under its names: its module was reloaded."""
        for kind, name in [*self.names]:
            registry, _ = self.names[kind, name]
            if name in registry.loaded():
                self.names[kind, name] = registry, registry.loaded()[name]
                registry.owners[name] = self

    def register_again(self) -> None:
        """Take back the names that another plugin has taken meanwhile."""
        with loading(self):
            for (_, name), (registry, value) in [*self.names.items()]:
                if registry.loaded().get(name) is not value:
                    registry[name] = value

    def gives_way_to(self, other: Plugin) -> bool:
        """Whether ``other`` may take the names of this one."""
        return self.again and other.again and other is not self


@dataclasses.dataclass
class _State:
    """What this process has loaded.

    current : what is being imported; None if nothing is
    homes : {top-level module: package} of all entry points
    """

    done: bool = False
    failed: str = ""
    current: Plugin | None = None
    homes: dict[str, str] = dataclasses.field(default_factory=dict)


_state = _State()


@contextmanager
def loading(plugin: Plugin) -> Iterator[Plugin]:
    """Meanwhile names are registered for a plugin, which may take none that is known."""
    before, _state.current = _state.current, plugin
    try:
        yield plugin
    finally:
        _state.current = before


def load_packages() -> None:
    """Import the plugins of all installed packages, once.

    `InputError`, the same each time, if one cannot be imported or registers a name that is taken.
    """
    if _state.failed:
        raise InputError(_state.failed)
    if _state.done:
        return
    _state.done = True
    for entry in _entries():
        package = _state.homes[entry.module.partition(".")[0]]
        try:
            with loading(Plugin(package)):
                entry.load()
        except (Exception, SystemExit) as error:
            why = import_failure(error, __file__)
            _state.failed = f"plugin package {package}: cannot be loaded: {why}"
            raise InputError(_state.failed) from None


def installed_packages() -> list[str]:
    """Names and versions of the packages with plugins; imports none."""
    return list(dict.fromkeys(map(_package, _entries())))


def package_of(module: str) -> str:
    """Name and version of the package that a plugin's module belongs to; empty if to none."""
    return _state.homes.get(module.partition(".")[0], "")


def _entries() -> list[EntryPoint]:
    """The entry points, ordered by package so that all ranks import them alike."""
    from importlib.metadata import entry_points  # takes longer than the rest of a command's start

    entries = sorted(entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name))
    _state.homes = {entry.module.partition(".")[0]: _package(entry) for entry in entries}
    return entries


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module
