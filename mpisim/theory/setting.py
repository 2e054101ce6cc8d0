"""What a theorem takes and gives: a `Setting` and a `Step`; L_+ and L_± in groups of workers."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.core.errors import InputError, needs_a_number
from mpisim.core.protocols import Collective, Objective
from mpisim.theory.compression import CompressorConstants, Groups
from mpisim.theory.smoothness import Bound, Constants, joint, variance

Condition = Literal["nonconvex", "PL"]
MarinaTheorem = Literal["marina", "permk"]  # the paper whose theorem gives MARINA's step


@dataclasses.dataclass(frozen=True)
class Setting:
    """A problem and a compressor as the theorems see them, in the papers' letters.

    n workers, dimension d; ``c``: smoothness constants; omega and alpha of the compressor, None
    if it is biased or not contractive; zeta: its expected density; condition: selects a method's
    theorem for smooth f, or that under the Polyak-Lojasiewicz condition
    |grad f(x)|^2 >= 2 mu (f(x) - f(x*)).

    A, B : of the AB inequality (PermK paper, Assumption 4), None if the compressor is biased.
    correlated : workers do not draw independently; theorems that assume it do not apply.
    groups : L_+ and L_± inside groups of workers that draw independently, None for one group.
    cal_L_max : max_i cal-L(C_i, L_i) of the smoothness-aware quantization paper, None for
        compressors that do not know the L_i.
    """

    n: int
    d: int
    convex: bool
    c: Constants
    omega: float | None
    alpha: float | None
    zeta: float
    condition: Condition = "nonconvex"
    A: float | None = None
    B: float | None = None
    correlated: bool = False
    groups: GroupConstants | None = None
    cal_L_max: float | None = None

    @property
    def independent(self) -> bool:
        """Whether workers draw independently with an unbiased compressor."""
        return self.omega is not None and not self.correlated

    @property
    def mu(self) -> float:
        """mu of the Polyak-Lojasiewicz condition, from strong convexity, which implies it."""
        if self.c.mu is None:
            raise InputError(
                'method.stepsize: condition = "PL" is not allowed: the problem has no known mu;'
                " a convex one with l2 above 0 has"
            )
        return self.c.mu

    @property
    def factor(self) -> int:
        """Of the estimate's error, in steps that are 1 / (L + sqrt(factor error)): 2 under PL."""
        return 2 if self.condition == "PL" else 1

    @property
    def L_max(self) -> float:
        """max_i L_i."""
        return float(self.c.L_i.max())

    @property
    def L_max_ij(self) -> float:
        """max_ij L_ij, over all samples of all workers."""
        return float(self.c.cal_L_i.max())

    @property
    def L_rms(self) -> float:
        """MARINA's L: sqrt((1/n) sum_i L_i^2)."""
        return float(np.sqrt(np.mean(self.c.L_i**2)))

    @property
    def cal_L_rms(self) -> float:
        """MARINA's calligraphic L: sqrt((1/n) sum_i cal-L_i^2)."""
        return float(np.sqrt(np.mean(self.c.cal_L_i**2)))


@dataclasses.dataclass(frozen=True)
class Step:
    """A step size and the theorem it comes from.

    `InputError` for a step below 0, or of constants that are not known.
    """

    gamma: float
    source: str

    def __post_init__(self) -> None:
        if self.gamma != self.gamma:
            raise needs_a_number("the problem does not say how smooth single samples are")
        if self.gamma < 0:
            raise needs_a_number(f"{self.source}: its step is {self.gamma:g}")


def setting_of(
    c: Constants,
    problem: Objective,
    compressor: CompressorConstants,
    star: Collective,
    bound: Bound = "sharp",
    condition: Condition = "nonconvex",
) -> Setting:
    """The setting of a loaded problem with constants ``c``, and a bound compressor; collective.

    ``bound``: that of ``c``. `InputError` if f is linear, as data without features make it.
    """
    if c.L == 0:
        raise InputError("problem: L is 0, so no theorem gives a step; are all features 0?")
    if compressor.omega is not None and compressor.omega < 0:
        found = f"its omega is {compressor.omega:g}"
        raise InputError(f"compressor {compressor.name!r}: {found}; allowed: at least 0")
    by_group = compressor.by_group
    groups = None if by_group is None else group_constants(by_group, problem, c, star, bound)
    names = ("omega", "alpha", "A", "B", "correlated", "cal_L_max")
    letters = {name: getattr(compressor, name) for name in names} | {"zeta": compressor.density}
    shape = problem.n, problem.d, problem.convex
    return Setting(*shape, c, condition=condition, groups=groups, **letters)


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
        inside = self.members[self.first : self.first + self.m]
        return self.star.sum_over_workers(np.where(inside[:, None], rows, 0.0))

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
    members = [Members(star, groups.label == k) for k in range(groups.sizes.size)]
    L_plus, L_pm = np.array([_of_group(problem, c, group, bound) for group in members]).T
    return GroupConstants(groups, L_plus, L_pm)


def _of_group(
    problem: Objective, c: Constants, group: Members, bound: Bound
) -> tuple[float, float]:
    if bound == "published":
        rms = float(np.sqrt(np.mean(c.L_i[group.members] ** 2)))
        return rms, rms
    constants = problem.closed_form_of(group.members)
    if constants is not None:
        return constants.L_plus, constants.L_pm
    matrices = problem.largest_hessian()
    norms = c.L_i[group.first : group.first + group.m]
    smooth = (c.L, "", False)  # used if all f_i are the same, as then is L in every group
    plus = joint(problem, matrices, norms, smooth, group)[0]
    return plus, variance(problem, matrices, norms, plus, group)[0]
