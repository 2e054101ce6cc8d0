"""TOML text to tables, within limits: what is beyond them is one line, not a traceback later."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from mpisim.core.errors import InputError

DEEPEST = 16  # tables and lists within each other; experiments need some five
ALLOWED = f"allowed: {DEEPEST} tables and lists within each other"
INTEGERS = "allowed: integers from -2^63 to 2^63 - 1"
_LONG = re.compile(r"\d{1000}")


def loads(text: str, source: str) -> dict[str, Any]:
    """The tables in TOML text; `InputError`, which names ``source``, for what Python cannot read.

    Raises `tomllib.TOMLDecodeError` if it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{source}: nested too deeply; {ALLOWED}") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python converts no more than some thousands of digits
        number = _LONG.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        what = f"line {line}: a number of too many digits"
        raise InputError(f"{source}: {what}; {INTEGERS}") from None


def require_plain(value: Any, where: str = "", depth: int = 0) -> None:
    """Raise `InputError` for what logs and checkpoints cannot hold, also inside tables and lists.

    These are integers of more than 64 bits, text with NUL or that is not Unicode, and tables and
    lists that are nested too deeply. ``where`` is the name of the value.
    """
    if depth > DEEPEST:
        raise InputError(f"{where[:60]}: nested too deeply; {ALLOWED}")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            require_plain(key, where or "a key")
            require_plain(inner, f"{where}.{key}" if where else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            require_plain(inner, where, depth + 1)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{where}: an integer of {value.bit_length()} bits; {INTEGERS}")
    elif isinstance(value, str) and not _is_plain(value):
        raise InputError(f"{where}: {value[:40]!r}; allowed: text in UTF-8, without NUL")


def _is_plain(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        return False
