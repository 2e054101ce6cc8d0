"""A page about the runs of a folder: one file, to be read in any browser, without a network."""

from mpisim.analysis.report.page import report

__all__ = ["report"]
