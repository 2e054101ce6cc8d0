"""Random rounding on the device: with the same words, the bits of the compiled kernels."""

from __future__ import annotations

import torch

from mpisim.core.tensors.philox import uniforms


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
