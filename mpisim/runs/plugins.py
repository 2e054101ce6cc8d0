"""Plugins: modules outside the package whose compressors, problems, ... become known on import."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mpisim.core.errors import InputError, import_failure
from mpisim.core.files import writing
from mpisim.core.imports import DIGESTS, INSTALLED, digest, file_of, neighbours, reached, short
from mpisim.core.registry import Plugin, loading
from mpisim.core.terminal import report_once

_loaded: dict[str, Plugin] = {}  # by file or module


def located(value: object, folder: Path) -> list[str]:
    """Plugins as a list, with paths relative to ``folder`` made relative to the current folder."""
    with writing(folder, InputError, "cannot be found from the current folder"):  # which is gone
        return [
            os.path.relpath(folder / name)
            if name.endswith(".py") and not os.path.isabs(name)
            else name
            for name in _names(value)
        ]


def load(value: object) -> list[str]:
    """Import plugins: a string or a list of strings; returns the list.

    A string is the name of a module, which may lie in the current folder, or the path of a ``.py``
    file, which is loaded under its stem and may import its neighbours. What is loaded already is
    not loaded again, but has its names again; a line says where its files have changed since.
    Raises `InputError`, one line, for a plugin that is missing, has a syntax error or raises.
    """
    names = _names(value)
    for name in names:
        try:
            if not name.endswith(".py") and not all(map(str.isidentifier, name.split("."))):
                raise InputError("neither the name of a module nor the path of a .py file")
            path = Path(name).resolve() if name.endswith(".py") else None
            module, key = (path.stem, str(path)) if path else (name, name)
            if key in _loaded and _is_there(module, path):
                if _loaded[key].spec is not sys.modules[module].__spec__:  # reloaded by the user
                    for file in _files(module).values():
                        DIGESTS.pop(file, None)
                    _loaded[key].spec = sys.modules[module].__spec__
                    _loaded[key].take()
                _warn_of_changes(module)
                _loaded[key].register_again()
                continue
            with loading(Plugin(module, again=True)) as plugin:
                if path is not None:
                    _load_file(path)
                else:
                    with _first_on_path(Path.cwd()), _none_left_behind(Path.cwd()):
                        importlib.import_module(name)
            _loaded[key], plugin.spec = plugin, sys.modules[module].__spec__
            for file in _files(module).values():
                digest(file)  # as it is now, whatever becomes of it
        except (Exception, SystemExit) as error:
            why = import_failure(error, __file__)
            raise InputError(f"plugin {name}: cannot be loaded: {why}") from None
    return names


def _names(value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        allowed = "the name of a module, the path of a .py file, or a list of these"
        raise InputError(f"plugin: {value!r} is not allowed; it must be {allowed}")
    return names


def _is_there(module: str, path: Path | None) -> bool:
    """Whether a module is loaded, from this file if one is given."""
    return module in sys.modules and (path is None or _resolved(module) == path)


def _resolved(module: str) -> Path | None:
    file = file_of(module)
    return file.resolve() if file else None


def _files(module: str) -> dict[str, Path]:
    """{module: file} of a plugin and its neighbours."""
    return reached([module], lambda name, path: name.partition(".")[0] != "mpisim")


def _warn_of_changes(module: str) -> None:
    """A line where a file of a plugin is not what was loaded, and will run."""
    for name, path in _files(module).items():
        if path.is_file() and digest(path) != short(path.read_bytes()):
            old = "the old code runs until Python starts anew"
            report_once(f"mpisim: plugin {name} has changed since it was loaded: {old}")


def _load_file(path: Path) -> None:
    stem, loaded = path.stem, sys.modules.get(path.stem)
    if _is_there(stem, path):  # imported by another one
        return
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if not path.stat().st_size:
        raise InputError(f"{path}: the file is empty")
    if stem in sys.stdlib_module_names or (loaded is not None and not _is_plugin(stem)):
        raise InputError(f"there is another module {stem!r}; rename the file")
    for name, neighbour in neighbours(path).items():
        if name != stem and name in sys.modules and _resolved(name) != neighbour:
            raise InputError(f"there is another module {name!r}; rename {neighbour.name} beside it")
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None and spec.loader is not None
    sys.modules.pop(stem, None)
    DIGESTS.pop(path, None)
    with _first_on_path(path.parent), _none_left_behind(path.parent):
        sys.modules[stem] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


@contextmanager
def _none_left_behind(folder: Path) -> Iterator[None]:
    """If this fails, what it imported from a folder is forgotten: the next attempt imports it."""
    before = set(sys.modules)
    try:
        yield
    except BaseException:
        for name in set(sys.modules) - before:
            file = _resolved(name)
            if file and folder in file.parents and not INSTALLED & set(file.parts):
                DIGESTS.pop(file, None)
                del sys.modules[name]
        raise


def _is_plugin(module: str) -> bool:
    """Whether a module is a file that was loaded as a plugin."""
    return str(_resolved(module)) in _loaded


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the plugin may have removed it
            sys.path.remove(str(folder))
