"""Gradient estimators: one file for each family."""

from mpisim.methods.estimators import (
    dasha,
    diana,
    feedback,
    marina,
    naive,
    one_bit_adam,
    pp_marina,
    vr_diana,
    vr_marina,
)
from mpisim.methods.estimators.base import ESTIMATORS, Estimator, estimator

__all__ = [
    "ESTIMATORS",
    "Estimator",
    "dasha",
    "diana",
    "estimator",
    "feedback",
    "marina",
    "naive",
    "one_bit_adam",
    "pp_marina",
    "vr_diana",
    "vr_marina",
]
