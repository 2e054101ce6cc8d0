"""A digest of code that is in no module's file: from a notebook, a script, or typed in.

It is of classes, and of what they name in their module: the bytecode of functions, and constants.
So comments and the numbers of lines do not count, and neither do lists and dicts, as a program may
change them while it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from mpisim.core.imports import short

PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
LINES = ("__firstlineno__", "__static_attributes__")  # of a class


def digest_of(classes: Iterable[type], module: str) -> str:
    """The digest of classes of ``module``, and of what they use of it."""
    described: dict[str, Any] = {}
    for kind in classes:
        _describe(kind, module, described)
    return short(repr(sorted(described.items())).encode())


def _describe(value: Any, module: str, described: dict[str, Any]) -> Any:
    """A value as texts and tuples; functions and classes of the module go to ``described``."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, tuple):
        return tuple(_describe(one, module, described) for one in value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, short(value.tobytes())
    if isinstance(value, property):
        return _describe((value.fget, value.fset), module, described)
    if isinstance(value, functools.cached_property | functools.partial):
        return _describe(value.func, module, described)
    value = getattr(value, "py_func", getattr(value, "__func__", value))  # of Numba, of a class
    name = getattr(value, "__qualname__", type(value).__qualname__)
    here = isinstance(value, type | FunctionType) and value.__module__ == module
    if here and name not in described:
        described[name] = ()  # it may name itself
        parts = _of_function(value) if isinstance(value, FunctionType) else _of_class(value)
        described[name] = _describe(parts, module, described)
    return name


def _of_class(kind: type) -> tuple[Any, ...]:
    return kind.__bases__, *((n, v) for n, v in sorted(vars(kind).items()) if n not in LINES)


def _of_function(function: FunctionType) -> tuple[Any, ...]:
    codes, parts = [function.__code__], []
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        named = ((n, function.__globals__.get(n)) for n in code.co_names)
        parts += [code.co_code, code.co_consts, code.co_varnames, *named]
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    defaults = tuple(sorted((function.__kwdefaults__ or {}).items()))
    return *parts, function.__defaults__, defaults, cells
