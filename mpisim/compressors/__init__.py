"""Compressors: maps of a worker's vector, and the messages that carry the result.

A compressor is a subclass of `Compressor` with the decorator `compressor`, which registers it in
`COMPRESSORS` under its name in experiments. `make` builds one from its table.
"""

from __future__ import annotations

from mpisim.compressors.base import COMPRESSORS, Compressor, compressor, make
from mpisim.core.schema import package_table

__all__ = ["COMPRESSORS", "Compressor", "compressor", "make"]

COMPRESSORS.provide(__name__, package_table(__file__, "modules.toml"))
