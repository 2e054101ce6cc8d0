"""What a theorem takes and gives: a `Setting` and a `Step`."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.protocols import Collective, Objective
from mpisim.theory.compression import CompressorConstants
from mpisim.theory.groups import GroupConstants, group_constants
from mpisim.theory.smoothness import Bound, Constants

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
    def L_max(self) -> float:
        """max_i L_i."""
        return float(self.c.L_i.max())

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
    """A step size and the theorem it comes from."""

    gamma: float
    source: str


def setting_of(
    c: Constants,
    problem: Objective,
    compressor: CompressorConstants,
    star: Collective,
    bound: Bound = "sharp",
    condition: Condition = "nonconvex",
) -> Setting:
    """The setting of a loaded problem with constants ``c``, and a bound compressor; collective.

    ``bound``: that of ``c``.
    """
    by_group = compressor.by_group
    groups = None if by_group is None else group_constants(by_group, problem, c, star, bound)
    names = ("omega", "alpha", "A", "B", "correlated", "cal_L_max")
    constants = {name: getattr(compressor, name) for name in names}
    zeta = compressor.density
    shape = problem.n, problem.d, problem.convex
    return Setting(*shape, c, zeta=zeta, condition=condition, groups=groups, **constants)
