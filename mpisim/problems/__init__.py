"""f_i, their gradients and what is known of their Hessians, for a block of workers."""

from mpisim.problems import deep, least_squares, logistic, nonconvex, quadratic
from mpisim.problems.base import PROBLEMS, Problem

__all__ = ["PROBLEMS", "Problem", "deep", "least_squares", "logistic", "nonconvex", "quadratic"]
