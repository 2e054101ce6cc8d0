"""Benchmarks: each result is a ratio to a bound or an alternative, measured in the same run."""
