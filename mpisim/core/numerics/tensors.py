"""PyTorch tensors on one device as the arrays of a run, and kernels for them.

The kernels' twins for NumPy arrays are compiled by Numba. Only what already holds a tensor imports
this module, which imports PyTorch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import Arrays, to_device
from mpisim.core.numerics.philox import MULTIPLIERS, ROUNDS, WEYL, WORDS, steps_for

# PyTorch reads it when it first takes memory on the CPU: large pages, as NumPy has them, make a
# step of Adam at d = 11 million twice as fast
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


class Tensors(Arrays):
    """Tensors on ``device``."""

    def __init__(self, device: torch.device):
        self.device = device
        self.wait: Callable[[], None] | None = None
        if device.type == "cuda":
            self.wait = lambda: torch.cuda.synchronize(device)

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype_of(dtype), device=self.device)

    def placed(self, array: np.ndarray) -> torch.Tensor:
        return to_device(array, self.device)


def dtype_of(dtype: np.dtype) -> torch.dtype:
    """PyTorch's type of the same name."""
    return getattr(torch, np.dtype(dtype).name)


LOW = 0xFFFFFFFF  # the lower half of a word
WRAP = 1 << 64


def words(
    key: tuple[int, int], counter: tuple[int, int, int], worker: int, count: int, device: Any
) -> torch.Tensor:
    """The words of one worker, shape (count,).

    key : the seed, and that of the purpose
    counter : its upper words: repetition, round, message
    """
    steps = int(steps_for(count))
    c0 = torch.arange(worker * steps + 1, (worker + 1) * steps + 1, device=device)
    c1, c2, c3 = (torch.full_like(c0, word) for word in counter)
    k0, k1 = key
    first, second = map(int, MULTIPLIERS)
    for _ in range(ROUNDS):
        high0, low0 = _product(c0, first)
        high1, low1 = _product(c2, second)
        c0, c1, c2, c3 = high1 ^ c1 ^ _signed(k0), low1, high0 ^ c3 ^ _signed(k1), low0
        k0, k1 = (k0 + int(WEYL[0])) % WRAP, (k1 + int(WEYL[1])) % WRAP
    return torch.stack([c0, c1, c2, c3], 1).view(steps * WORDS)[:count]


def uniforms(words: torch.Tensor) -> torch.Tensor:
    """Words as float64 in [0, 1), as in `Draw.uniforms`."""
    return ((words >> 11) & ((1 << 53) - 1)).double() * 2.0**-53


def _signed(word: int) -> int:
    """The int64 with the bits of a uint64."""
    return word - WRAP if word >> 63 else word


def _product(a: torch.Tensor, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(upper, lower) 64 bits of the unsigned product, from products of halves."""
    a_high, a_low, b_high, b_low = _high(a), a & LOW, b >> 32, b & LOW
    middle = a_high * b_low + _high(a_low * b_low)
    other = (middle & LOW) + a_low * b_high
    return a_high * b_high + _high(middle) + _high(other), a * _signed(b)


def _high(word: torch.Tensor) -> torch.Tensor:
    """The upper half of a word."""
    return (word >> 32) & LOW


def levels(row: torch.Tensor, s: torch.Tensor | float, norms, starts, words) -> torch.Tensor:
    """`mpisim.compressors.quantization.round_steps` of one worker, (d,), float64.

    norms : a float for each block of coordinates, starts[b] to starts[b+1] - 1; s : (d,), or one
    """
    y = row.abs().double()
    for norm, start, stop in zip(norms, starts[:-1], starts[1:], strict=True):
        y[start:stop] = y[start:stop] / norm if norm > 0 else 0.0
    y *= s
    low = y.floor()
    level = low + (uniforms(words) < y - low)
    return torch.where(row < 0, -level, level)


def exponents(row: torch.Tensor, words: torch.Tensor, nan_code: int) -> torch.Tensor:
    """Codes of `mpisim.wire.exponents` for one worker, (d,), int16."""
    v, u = row.double(), uniforms(words)
    bits, negative = v.view(torch.int64), nan_code * (v < 0)
    exponent = ((bits >> 52) & 0x7FF) - 1023
    fraction = (bits & ((1 << 52) - 1)).double() * 2.0**-52
    normal = (exponent + 127 + (u < fraction)) | negative
    small = (u < v.abs() * 2.0**126).long()
    small = small | (small * negative)
    code = torch.where(exponent >= -126, normal, small)
    return torch.where(exponent >= 128, nan_code, code).short()


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


TINY, HUGE = 1e-140, 1e150  # beyond these the squares of a float64 leave its range


def one_norms(v: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    """|v_i|_1 of coordinates starts[b] to starts[b+1] - 1; shape (m, B), float64."""
    return _of_parts(lambda part: part.abs().sum(1, dtype=torch.float64), v, starts)


def two_norms(v: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    """|v_i|_2 likewise, not below the largest |v_ij|."""
    return _of_parts(_two_norm, v, starts)


def max_norms(v: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    """max |v_ij| likewise, NaN where there is a NaN."""
    return _of_parts(lambda part: part.abs().amax(1).double(), v, starts)


def _of_parts(
    norm: Callable[[torch.Tensor], torch.Tensor], v: torch.Tensor, starts: np.ndarray
) -> torch.Tensor:
    return torch.stack([norm(v[:, a:b]) for a, b in pairwise(starts.tolist())], 1)


def _two_norm(v: torch.Tensor) -> torch.Tensor:
    """Shape (m,); a row whose squares overflow or vanish is scaled by its largest number."""
    largest = v.abs().amax(1).double()
    norm = _root_of_squares(v, torch.ones_like(largest))
    inside = (norm > TINY) & (norm < HUGE)
    usable = (largest > 0) & (largest < torch.inf) & ~inside
    scale = torch.where(usable, largest, 1.0)
    norm = torch.where(usable, scale * _root_of_squares(v, scale), norm)
    return torch.where(norm > largest, norm, largest)


def _root_of_squares(v: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    squares = torch.empty_like(scale)
    for i, row in enumerate(v):  # one at a time: a float64 copy of all takes much memory
        squares[i] = (row.double() / scale[i]).square_().sum()
    return squares.sqrt()
