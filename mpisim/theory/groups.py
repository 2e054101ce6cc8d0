"""L_+ and L_± inside groups of workers, for Theorem 10 (PermK paper, Appendix M)."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.protocols import Collective, Objective
from mpisim.theory.compression import Groups
from mpisim.theory.smoothness import Bound, Constants, joint, variance


@dataclasses.dataclass(frozen=True)
class GroupConstants:
    """L_+^{G_k} and L_±^{G_k}, shape (g,), of the groups of a compressor."""

    groups: Groups
    L_plus: np.ndarray
    L_pm: np.ndarray

    @property
    def L_hat_sq(self) -> float:
        """L̂_G^2, before Theorem 10.

        sum_k |G_k|^2 / n^2 ((A_{G_k} - B_{G_k}) (L_+^{G_k})^2 + B_{G_k} (L_±^{G_k})^2)
        """
        A, B, n = self.groups.A, self.groups.B, self.groups.label.size
        share = (self.groups.sizes / n) ** 2
        return float((share * ((A - B) * self.L_plus**2 + B * self.L_pm**2)).sum())


class Members:
    """A `Collective` of the workers of one group, ``members`` (n,), bool."""

    def __init__(self, star: Collective, members: np.ndarray):
        self.star, self.members = star, members
        self.n = int(members.sum())
        self.first, self.m, self.is_server = star.first, star.m, star.is_server

    def sum_over_workers(self, rows: np.ndarray) -> np.ndarray:
        own = self.members[self.first : self.first + self.m]
        return self.star.sum_over_workers(np.where(own[:, None], rows, 0.0))

    def all_workers(self, rows: np.ndarray) -> np.ndarray:
        return self.star.all_workers(rows)[self.members]


def group_constants(
    groups: Groups, problem: Objective, c: Constants, star: Collective, bound: Bound = "sharp"
) -> GroupConstants:
    """The constants of `mpisim.theory.smoothness` inside each group; collective.

    ``c``: those of all workers. With ``bound`` = "published" both are (mean L_i^2)^(1/2).
    Takes g times as long as L_+ and L_± of all workers, unless the problem has a formula.
    """
    problem = problem.double()
    found = [
        _of_group(problem, c, Members(star, groups.label == k), bound)
        for k in range(groups.sizes.size)
    ]
    L_plus, L_pm = np.array(found).T
    return GroupConstants(groups, L_plus, L_pm)


def _of_group(
    problem: Objective, c: Constants, group: Members, bound: Bound
) -> tuple[float, float]:
    if bound == "published":
        rms = float(np.sqrt(np.mean(c.L_i[group.members] ** 2)))
        return rms, rms
    known = problem.known_of(group.members)
    if known is not None:
        return known.L_plus, known.L_pm
    matrices = problem.largest_hessian()
    norms = c.L_i[group.first : group.first + group.m]
    smooth = (c.L, "", False)  # used if all f_i are the same, as then is L in every group
    plus = joint(problem, matrices, norms, smooth, group)[0]
    return plus, variance(problem, matrices, norms, plus, group)[0]
