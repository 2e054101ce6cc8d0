"""Compressors, each found by the name it has in an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpisim.compressors import identity, quantization, sign, sparse
from mpisim.compressors.base import COMPRESSORS, Compressor
from mpisim.errors import InputError
from mpisim.params import build, choose

__all__ = ["COMPRESSORS", "Compressor", "identity", "make", "quantization", "sign", "sparse"]


def make(table: Mapping[str, Any], where: str = "compressor") -> Compressor:
    """The compressor that a ``[compressor]`` table describes, not yet bound to a dimension.

    ``where`` names the table in errors. Raises `InputError` for unknown names and keys, missing
    keys and wrong types; values are checked when it is bound.
    """
    if "name" not in table:
        raise InputError(f"{where}.name: missing; known: {', '.join(sorted(COMPRESSORS))}")
    kind = choose(COMPRESSORS, table["name"], f"{where}.name")
    return build(kind, {key: value for key, value in table.items() if key != "name"}, where)
