"""Plugins of installed packages: their entry points in the group ``mpisim.plugins``.

An entry point names a module, which registers compressors, methods, ... when it is imported.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mpisim.core.errors import InputError, import_failure

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "mpisim.plugins"


@dataclasses.dataclass
class _State:
    """What this process has loaded.

    current : the package that is being imported; empty if none is
    homes : {top-level module: package} of all entry points
    """

    done: bool = False
    failed: str = ""
    current: str = ""
    homes: dict[str, str] = dataclasses.field(default_factory=dict)


_state = _State()


def load() -> None:
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
        _state.current = package
        try:
            entry.load()
        except (Exception, SystemExit) as error:
            _state.failed = (
                f"plugin package {package}: cannot be loaded: {import_failure(error, __file__)}"
            )
            raise InputError(_state.failed) from None
        finally:
            _state.current = ""


def loading() -> str:
    """The package whose plugins are being imported; empty if none are."""
    return _state.current


def installed() -> list[str]:
    """Names and versions of the packages with plugins; imports none."""
    return list(dict.fromkeys(map(_package, _entries())))


def package_of(module: str) -> str:
    """Name and version of the package that a plugin's module belongs to; empty if to none."""
    return _state.homes.get(module.partition(".")[0], "")


def forget() -> None:
    """Look for packages again at the next `load`; for tests."""
    _state.done, _state.failed, _state.homes = False, "", {}


def _entries() -> list[EntryPoint]:
    """The entry points, ordered by package so that all ranks import them alike."""
    from importlib.metadata import entry_points  # takes longer than the rest of a command's start

    entries = sorted(entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name))
    _state.homes = {entry.module.partition(".")[0]: _package(entry) for entry in entries}
    return entries


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module
