"""`mpisim.core.philox` on the device: the same words, as int64 with the same bits."""

from __future__ import annotations

import numpy as np
import torch

from mpisim.core.philox import MULTIPLIERS, ROUNDS, WEYL, WORDS, steps_for

LOW = 0xFFFFFFFF  # the lower half of a word
WRAP = 1 << 64


def words(
    seed: int,
    purpose: np.uint64,
    round: int,
    message: int,
    repetition: int,
    worker: int,
    count: int,
    device: torch.device,
) -> torch.Tensor:
    """The words of one worker, shape (count,)."""
    steps = int(steps_for(count))
    c0 = torch.arange(worker * steps + 1, (worker + 1) * steps + 1, device=device)
    c1, c2, c3 = (torch.full_like(c0, word) for word in (repetition, round, message))
    k0, k1 = int(seed), int(purpose)
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
