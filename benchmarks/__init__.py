"""Benchmarks: each result is a ratio to a bound or an alternative, measured in the same run."""

import mpisim  # noqa: F401  (before NumPy: both sides of a ratio compute on one thread)
