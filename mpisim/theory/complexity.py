"""How many rounds a guarantee needs, and what these rounds cost a worker."""

from __future__ import annotations

import dataclasses
from math import ceil, inf, log, log1p
from typing import Literal

from mpisim.theory.compression import FLOAT_BITS
from mpisim.theory.setting import Setting, Step


@dataclasses.dataclass(frozen=True)
class Case:
    """An experiment as the tables see it, in the papers' letters.

    m : samples of a worker; delta : Delta_0 = f(x^0) - f_inf, infinite if no lower bound of f is
    available; epsilon : the accuracy, E|grad f(x^hat)|^2 <= epsilon^2 or, under PL,
    E f(x^K) - f(x*) <= epsilon.
    b (b'), big_b (b), first_b (samples of g^0), r : the experiment's, with which other methods'
    rows are computed, too; None if its method has none.
    """

    setting: Setting
    m: int
    delta: float
    epsilon: float
    b: int | None = None
    big_b: int | None = None
    first_b: int | None = None
    r: int | None = None

    @property
    def log_ratio(self) -> float:
        """log(Delta_0 / epsilon), at least 0."""
        return max(0.0, log(self.delta / self.epsilon)) if self.delta > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class Cost:
    """Expected cost of one exchange for a worker: numbers sent and gradients of single samples."""

    floats: float
    calls: float

    def mixed(self, p: float, other: Cost) -> Cost:
        """This cost with probability p, else the other."""
        floats = p * self.floats + (1 - p) * other.floats
        return Cost(floats, p * self.calls + (1 - p) * other.calls)


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """A row of Table 1 or 2: rounds K, and a worker's expected bits and sample gradients in them.

    kind : "bound" with the theorem's constants, "order" for an O(.) with constant 1.
    """

    setup: str
    method: str
    rounds: float
    bits: float
    calls: float
    kind: Literal["bound", "order"]
    source: str


def guarantee(
    setup: str,
    method: str,
    rounds: float,
    costs: tuple[Cost, Cost],
    kind: Literal["bound", "order"],
    source: str,
) -> Guarantee:
    """A row from its rounds and the costs of the first and of each later exchange."""
    first, later = costs
    k = round_up(rounds)
    bits = FLOAT_BITS * (first.floats + (k - 1) * later.floats)
    return Guarantee(setup, method, k, bits, first.calls + (k - 1) * later.calls, kind, source)


def round_up(rounds: float) -> float:
    """The next whole number of rounds, at least 1."""
    return max(1.0, float(ceil(rounds))) if rounds < inf else inf


def rounds(case: Case, step: Step) -> float:
    """The least K with which ``step`` guarantees epsilon, not rounded.

    Smooth f: (1/K) sum_k E|grad f(x^k)|^2 <= 2 Delta_0 / (gamma K) (PermK paper, Theorem 4). PL:
    E f(x^K) - f(x*) <= (1 - gamma mu)^K Delta_0 (PermK paper, Theorem 5).
    """
    if case.setting.condition == "nonconvex":
        return 2 * case.delta / (step.gamma * case.epsilon**2)
    if case.delta <= case.epsilon or step.gamma * case.setting.mu >= 1:
        return 1.0
    return case.log_ratio / -log1p(-step.gamma * case.setting.mu)
