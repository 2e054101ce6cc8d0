"""Refuse what cannot fit in memory before anything is allocated.

Linux grants memory that it does not have and later kills the process, without a word.
"""

from __future__ import annotations

import os

from mpisim.core.errors import InputError

VECTORS = 4  # float64 arrays of its length that an iterate needs at least: x, g, a gradient, a sum


def require_memory(floats: int, where: str, value: object) -> None:
    """Raise `InputError` if ``floats`` float64 numbers exceed this machine's memory.

    where, value : the key that asks for them
    """
    there = _physical()
    if there is not None and 8 * floats > there:
        raise InputError(
            f"{where}: {value!r} needs at least {_gigabytes(8 * floats)}; allowed: what fits in the"
            f" memory of this machine, {_gigabytes(there)}"
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"


def _physical() -> int | None:
    """Bytes of memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
