"""Gradient estimators: one file for each family."""

from mpisim.core.schema import package_table
from mpisim.methods.estimators.base import ESTIMATORS, Estimator, estimator

__all__ = ["ESTIMATORS", "Estimator", "estimator"]

ESTIMATORS.provide(__name__, package_table(__file__, "modules.toml"))
