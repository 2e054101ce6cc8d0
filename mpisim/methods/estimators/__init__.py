"""Gradient estimators: one file for each family."""

from mpisim.methods.estimators.base import ESTIMATORS, Estimator, estimator

__all__ = ["ESTIMATORS", "Estimator", "estimator"]

ESTIMATORS.provide(
    __name__,
    {
        "asynchronous": ("asynchronous-sgd", "rennala", "ringmaster", "fedbuff", "shadowheart"),
        "canita": ("canita",),
        "dasha": ("dasha", "dasha-page", "byz-dasha-page", "dasha-mvr", "dasha-sync-mvr"),
        "diana": ("diana", "vr-diana", "rand-diana", "adiana", "ef-bv"),
        "downlink": ("ef21-p", "marina-p"),
        "feedback": ("naive", "ef", "ef21", "ef21-sgdm", "clag", "1bit-adam"),
        "local": ("fedavg", "fedprox", "scaffold"),
        "marina": ("marina", "pp-marina", "vr-marina", "vr-marina-online"),
        "newton": ("fednl", "fednl-ls", "fednl-pp"),
        "powersgd": ("powersgd",),
        "scaffnew": ("scaffnew", "compressed-scaffnew", "tamuna", "locodl"),
    },
)
