"""Libraries that only some features need."""

from __future__ import annotations

import importlib
from types import ModuleType

from mpisim.core.errors import InputError


def library(name: str, extra: str, what: str) -> ModuleType:
    """The library ``name``; `InputError` says that ``what`` needs it where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{what} needs {name}: pip install 'mpisim[{extra}]'") from None
