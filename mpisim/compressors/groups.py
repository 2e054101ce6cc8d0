"""Workers in groups that compress independently of each other (PermK paper, Appendix M)."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import require


@dataclasses.dataclass(frozen=True)
class Groups:
    """A partition of the workers, and the constants of the AB inequality inside each group.

    label : array, shape (n,), int64
        The group of each worker, 0 to g - 1.
    A, B : array, shape (g,)
        A_{G_k} and B_{G_k}: Assumption 6.
    """

    label: np.ndarray
    A: np.ndarray
    B: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """|G_k|, shape (g,), int64."""
        return np.bincount(self.label)

    @property
    def whole_A(self) -> float:
        """An A for all workers together: max_k A_{G_k} |G_k| / n, by Lemma 17."""
        return float((self.A * self.sizes).max()) / self.label.size

    @property
    def whole_B(self) -> float:
        """A B for all workers together: 1 / sum_k (1 / B_{G_k}), by Lemma 17 and Cauchy-Schwarz:

        |sum_k w_k a_k|^2 <= (sum_k 1 / B_k) (sum_k B_k w_k^2 |a_k|^2), with w_k = |G_k| / n.
        """
        return float(1 / (1 / self.B).sum()) if (self.B > 0).all() else 0.0


def labels(groups: int | list[list[int]], n: int) -> np.ndarray:
    """The group of each of n workers, shape (n,), int64.

    groups : g from 1 to n, for neighbouring workers, as even as possible; or lists of workers,
        counted from 0. `InputError` where these are not a partition into non-empty groups.
    """
    key = "compressor.groups"
    if isinstance(groups, int):
        require(1 <= groups <= n, key, groups, f"an integer from 1 to n = {n}, or lists of workers")
        bounds = np.arange(groups + 1) * n // groups
        return np.repeat(np.arange(groups), np.diff(bounds))
    members = np.array([worker for group in groups for worker in group], np.int64)
    if not all(groups) or not np.array_equal(np.sort(members), np.arange(n)):
        raise InputError(
            f"{key}: not a partition of the workers 0 to {n - 1};"
            " each must be in one list, and no list empty"
        )
    out = np.empty(n, np.int64)
    out[members] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return out
