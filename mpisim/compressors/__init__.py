"""Compressors: maps of a worker's vector, and the messages that carry the result.

A compressor is a subclass of `Compressor` with the decorator `compressor`, which registers it in
`COMPRESSORS` under its name in experiments. `make` builds one from its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from mpisim.compressors.base import COMPRESSORS, Compressor, compressor
from mpisim.core.errors import InputError
from mpisim.core.schema import build, choose, package_table

__all__ = ["COMPRESSORS", "Compressor", "compressor", "make"]

COMPRESSORS.provide(__name__, package_table(__file__, "modules.toml"))


def make(table: Mapping[str, Any], where: str = "compressor") -> Compressor:
    """Build the compressor of a ``[compressor]`` table, not yet bound to a dimension.

    ``where`` names the table in errors. Raises `InputError` for unknown names and keys, missing
    keys and wrong types; `bind` checks values. A key of type `Compressor` (the ``inner`` of a
    wrapper) takes a table.
    """
    if "name" not in table:
        raise InputError(f"{where}.name: missing; known: {', '.join(sorted(COMPRESSORS))}")
    kind = choose(COMPRESSORS, table["name"], f"{where}.name")
    hints = get_type_hints(kind)
    keys = {
        key: make(value, f"{where}.{key}")
        if hints.get(key) is Compressor and isinstance(value, Mapping)
        else value
        for key, value in table.items()
        if key != "name"
    }
    return build(kind, keys, where)
