"""Problems: the f_i of a block of workers, their gradients, and what is known of their Hessians.

A problem is a subclass of `Problem` with the decorator `problem`, which puts it into `PROBLEMS`
under the name that experiments give. `ProblemWithTestSet` adds test metrics. An `ExplicitProblem`
gives single coordinates of its gradients, so that no array of size m x d is needed.
"""

from mpisim.core.schema import package_table
from mpisim.problems.base import PROBLEMS, Problem, ProblemWithTestSet, problem
from mpisim.problems.explicit import ExplicitProblem

__all__ = ["PROBLEMS", "ExplicitProblem", "Problem", "ProblemWithTestSet", "problem"]

PROBLEMS.provide(__name__, package_table(__file__, "modules.toml"))
