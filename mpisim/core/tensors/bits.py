"""Signs packed into bytes on the device, and back."""

from __future__ import annotations

import torch

# Times 8 bytes that are 0 or 1, as one word: its highest byte has one bit of each, the first byte's
# in the highest place. No other bits fall there, and none carry into it.
GATHER = 0x8040201008040201 - (1 << 64)


def pack_negative(v: torch.Tensor) -> torch.Tensor:
    """`numpy.packbits` of v < 0 for each row of v (m, d), with ones up to the next byte."""
    m, d = v.shape
    ones = torch.ones((m, -(-d // 8) * 8), dtype=torch.uint8, device=v.device)
    ones[:, :d] = v < 0
    words = ones.view(torch.int64) * GATHER
    return ((words >> 56) & 0xFF).to(torch.uint8)


def sign_table(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The eight signs, -1 or +1, that each byte stands for: shape (256, 8)."""
    places = torch.arange(7, -1, -1, device=device)
    bits = (torch.arange(256, device=device)[:, None] >> places) & 1
    return 1 - 2 * bits.to(dtype)


def unpack(table: torch.Tensor, row: torch.Tensor, d: int) -> torch.Tensor:
    """The entries of ``table`` (256, 8) for the bytes of ``row``, the first ``d`` of them."""
    return table.index_select(0, row.int()).view(-1)[:d]
