"""f_i, their gradients and what is known of their Hessians, for a block of workers."""

from mpisim.problems import autoencoder, deep, least_squares, logistic, nonconvex, quadratic
from mpisim.problems.base import PROBLEMS, Problem

__all__ = [
    "PROBLEMS",
    "Problem",
    "autoencoder",
    "deep",
    "least_squares",
    "logistic",
    "nonconvex",
    "quadratic",
]
