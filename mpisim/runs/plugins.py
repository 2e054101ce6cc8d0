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
from mpisim.core.registry import Plugin, loading

_files: set[str] = set()  # that have been loaded


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
    left as it is. Raises `InputError`, one line, for a plugin that is missing, has a syntax error
    or raises.
    """
    names = _names(value)
    for name in names:
        try:
            if name.endswith(".py"):
                path = Path(name).resolve()
                with loading(Plugin(path.stem, again=True)):
                    _load_file(path)
            elif not all(part.isidentifier() for part in name.split(".")):
                raise InputError("neither the name of a module nor the path of a .py file")
            else:
                with _first_on_path(Path.cwd()), loading(Plugin(name, again=True)):
                    importlib.import_module(name)
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


def _load_file(path: Path) -> None:
    stem, loaded = path.stem, sys.modules.get(path.stem)
    file = getattr(loaded, "__file__", None)
    if file == str(path):
        return
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if not path.stat().st_size:
        raise InputError(f"{path}: the file is empty")
    if stem in sys.stdlib_module_names or (loaded is not None and file not in _files):
        raise InputError(f"there is another module {stem!r}; rename the file")
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None and spec.loader is not None
    sys.modules[stem] = module = importlib.util.module_from_spec(spec)
    try:
        with _first_on_path(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[stem]
        raise
    _files.add(str(path))


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the plugin may have removed it
            sys.path.remove(str(folder))
