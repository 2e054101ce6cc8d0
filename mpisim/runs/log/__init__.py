"""The log of a run: its columns (`schema`), its rows (`journal`), and HDF5 (`writer`, `reader`)."""

from mpisim.runs.log.reader import Log, read, read_all

__all__ = ["Log", "read", "read_all"]
