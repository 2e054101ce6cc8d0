"""Columns that ``run.columns`` adds to a log, and those of problems with a test set.

A new metric is a `Metric` with the decorator `metric`; its columns come last.
"""

from mpisim.runs.metrics import named
from mpisim.runs.metrics.base import METRICS, Metric, metric, metrics_of

__all__ = ["METRICS", "Metric", "metric", "metrics_of", "named"]
