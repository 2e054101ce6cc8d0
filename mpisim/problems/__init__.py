"""f_i, their gradients and what is known of their Hessians, for a block of workers."""

from mpisim.problems import autoencoder, least_squares, logistic, nonconvex, quadratic
from mpisim.problems.base import PROBLEMS, Problem
from mpisim.problems.torch import problem as deep

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
