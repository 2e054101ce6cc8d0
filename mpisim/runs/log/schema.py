"""The columns of a log."""

from __future__ import annotations

Column = tuple[str, type, str, str]  # name, type, units, description
