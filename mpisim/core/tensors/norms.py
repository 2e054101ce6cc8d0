"""Norms of each worker's vector, added up in float64 in the device's own order.

They agree with `mpisim.compressors.norms` to the rounding of a float64 sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import torch

TINY, HUGE = 1e-140, 1e150  # beyond these the squares of a float64 leave its range


def one_norms(v: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    """|v_i|_1 of coordinates starts[b] to starts[b+1] - 1; shape (m, B), float64."""
    pieces = [part.abs().sum(1, dtype=torch.float64) for part in _parts(v, starts)]
    return torch.stack(pieces, 1)


def two_norms(v: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    """|v_i|_2 likewise, not below the largest |v_ij|."""
    return torch.stack([_two_norm(part) for part in _parts(v, starts)], 1)


def max_norms(v: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    """max |v_ij| likewise, NaN where there is a NaN."""
    pieces = [part.abs().amax(1).double() for part in _parts(v, starts)]
    return torch.stack(pieces, 1)


def _parts(v: torch.Tensor, starts: np.ndarray) -> Iterable[torch.Tensor]:
    ends = starts.tolist()
    return (v[:, a:b] for a, b in pairwise(ends))


def _two_norm(v: torch.Tensor) -> torch.Tensor:
    """Shape (m,); a row whose squares overflow or vanish is scaled by its largest number."""
    largest = v.abs().amax(1).double()
    norm = _root_of_squares(v, torch.ones_like(largest))
    inside = (norm > TINY) & (norm < HUGE)
    usable = (largest > 1e-300) & (largest < torch.inf) & ~inside
    scale = torch.where(usable, largest, 1.0)
    norm = torch.where(usable, scale * _root_of_squares(v, scale), norm)
    return torch.where(norm > largest, norm, largest)


def _root_of_squares(v: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    squares = torch.empty_like(scale)
    for i, row in enumerate(v):  # one at a time: a float64 copy of all takes much memory
        squares[i] = (row.double() / scale[i]).square_().sum()
    return squares.sqrt()
