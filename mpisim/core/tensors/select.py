"""The k largest of each worker's numbers on the device; `mpisim.core.select` says the order."""

from __future__ import annotations

import torch

KEYS = {torch.float32: (torch.int32, 0x7FFFFFFF), torch.float64: (torch.int64, (1 << 63) - 1)}


def largest(v: torch.Tensor, k: int) -> torch.Tensor:
    """The indices of the k largest |v_j| of each row of v (m, d): (m, k), int64, ascending.

    `torch.topk` finds the k-th largest key. It says nothing about ties, so that all above it and
    the first ones equal to it are taken here.
    """
    indices = torch.empty((len(v), k), dtype=torch.int64, device=v.device)
    for i, row in enumerate(v):
        indices[i] = _largest(row, k)
    return indices


def _largest(row: torch.Tensor, k: int) -> torch.Tensor:
    dtype, mask = KEYS[row.dtype]
    keys = row.contiguous().view(dtype) & mask  # ordered like |v_j|, NaN above all numbers
    limit = torch.topk(keys, k, sorted=False).values.min()
    above, equal = keys > limit, keys == limit
    first = torch.cumsum(equal, 0) <= k - above.sum()
    taken = torch.cumsum(above | (equal & first), 0)
    return torch.searchsorted(taken, torch.arange(1, k + 1, device=row.device))
