"""The HDF5 log of a run: `schema` has its columns, `writer` writes it, `reader` reads it."""

from mpisim.runs.log.reader import Log, read, read_all

__all__ = ["Log", "read", "read_all"]
