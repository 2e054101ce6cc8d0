"""f_i, their gradients and what is known of their Hessians, for a block of workers."""

from mpisim.problems import least_squares, logistic, nonconvex, quadratic
from mpisim.problems.base import PROBLEMS, Problem

__all__ = ["PROBLEMS", "Problem", "least_squares", "logistic", "nonconvex", "quadratic"]
