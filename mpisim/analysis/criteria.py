"""The rules by which `mpisim tune` calls one step the best."""

from __future__ import annotations

from typing import NamedTuple

BURN_IN = 0.1  # share of the rows that a mean leaves out


class Criterion(NamedTuple):
    """The mean over the last rows, or the last row, of a column or its log10; smaller is better.

    A ``cost`` is that of reaching an accuracy of ``run.stop``. All other criteria compare what runs
    reach at equal costs.
    """

    rule: str
    column: str
    logarithm: bool
    mean: bool
    cost: bool = False


CRITERIA = {
    "mean": Criterion(
        "mean of log10 |grad f(x^k)|^2 over the last 90% of the rows", "grad_norm_sq", True, True
    ),
    "final": Criterion("log10 |grad f(x^T)|^2 of the last row", "grad_norm_sq", True, False),
    "uniform": Criterion(
        "log10 of the mean of |grad f(x^k)|^2 over all rounds", "mean_grad_norm_sq", True, False
    ),
    "loss": Criterion("f(x^T) of the last row", "loss", False, False),
    "mean-loss": Criterion(
        "mean of log10 f(x^k) over the last 90% of the rows", "loss", True, True
    ),
    "rounds": Criterion("number of rounds until the accuracy", "round", False, False, True),
    "bits": Criterion(
        "number of bits sent by a worker until the accuracy", "bits_up", False, False, True
    ),
}
DEFAULT = "mean"
