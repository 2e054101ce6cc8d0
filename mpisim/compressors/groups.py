"""Workers in groups that compress independently of each other (PermK paper, Appendix M)."""

from __future__ import annotations

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import require


def labels(groups: int | list[list[int]], n: int) -> np.ndarray:
    """The group of each of n workers, shape (n,), int64.

    groups : g from 1 to n, for neighbouring workers, as even as possible; or lists of workers,
        numbered from 0. `InputError` if these are not a partition into non-empty groups.
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
