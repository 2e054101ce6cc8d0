"""Gradient estimators: one file for each family."""

from mpisim.methods.estimators.base import ESTIMATORS, Estimator, estimator

__all__ = ["ESTIMATORS", "Estimator", "estimator"]

ESTIMATORS.provide(
    __name__,
    {
        "dasha": ("dasha", "dasha-page", "dasha-mvr", "dasha-sync-mvr"),
        "diana": ("diana", "vr-diana"),
        "feedback": ("ef", "ef21"),
        "marina": ("marina",),
        "naive": ("naive",),
        "one_bit_adam": ("1bit-adam",),
        "pp_marina": ("pp-marina",),
        "vr_marina": ("vr-marina", "vr-marina-online"),
    },
)
