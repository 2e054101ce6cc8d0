"""What random rounding makes of tensors: messages that are packed on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.core.arrays import MESSAGE, to_host
from mpisim.core.rng import Draw
from mpisim.wire.base import pack_tensors
from mpisim.wire.codecs.bits import round_scales
from mpisim.wire.exponents import NAN_CODE, ExponentsForm
from mpisim.wire.levels import LevelsForm


def rounded_norms(v: Any, starts: np.ndarray, order: str, wire: np.dtype) -> np.ndarray:
    """|v_i| of each block of coordinates, rounded up to the wire, shape (m, B), on the host."""
    from mpisim.core.numerics import tensors

    exact = (tensors.two_norms if order == "2" else tensors.max_norms)(v, starts)
    return round_scales(to_host(exact, MESSAGE), wire, up=True)


def levels_of(form: LevelsForm, norms: np.ndarray, v: Any, draw: Draw) -> Any:
    """Levels of ``v`` (m, d) for norms (m, B), rounded with the draw's words."""
    import torch

    from mpisim.core.numerics import tensors
    from mpisim.core.numerics.tensors import dtype_of
    from mpisim.wire.placed import level_type, steps

    levels = torch.empty(v.shape, dtype=dtype_of(level_type(form)), device=v.device)
    starts = form.starts.tolist()
    for i, row in enumerate(v):
        s = steps(form, i, v.device)
        words = draw.row_on(v.device, i, form.d)
        levels[i] = tensors.levels(row, s, norms[i].astype(np.float64).tolist(), starts, words)
    return pack_tensors(form, norms, levels)


def exponents_of(form: ExponentsForm, v: Any, draw: Draw) -> Any:
    """Codes of ``v`` (m, d), rounded with the draw's words."""
    import torch

    from mpisim.core.numerics import tensors

    codes = torch.empty(v.shape, dtype=torch.int16, device=v.device)
    for i, row in enumerate(v):
        codes[i] = tensors.exponents(row, draw.row_on(v.device, i, form.d), NAN_CODE)
    return pack_tensors(form, codes)
