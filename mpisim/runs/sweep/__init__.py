"""Sweeps: a grid of experiments in one file, of which only what is missing is run.

`grid` turns a file into the tables of its points, `plan` finds the logs that they have already,
`executor` runs the rest, and `points` keeps the summary.
"""

from mpisim.runs.sweep.points import Point, exit_code, read_summary

__all__ = ["Point", "exit_code", "read_summary"]
