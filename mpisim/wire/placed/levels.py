"""Norms and levels, on the device; their codes are the host's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import KNOWN, MESSAGE, to_device, to_host
from mpisim.wire.levels import Levels, LevelsForm
from mpisim.wire.placed.rows import PlacedRows


class PlacedLevels(PlacedRows):
    """``levels``: `Levels.levels` on the device, in the shortest type that holds them."""

    host: Levels

    def __init__(self, host: Levels, device: Any, levels: torch.Tensor | None = None):
        super().__init__(host, device)
        kind = level_type(host.form)
        self.levels = self.up(host.levels.astype(kind, copy=False)) if levels is None else levels
        self.norms = self.up(host.norms).double()

    @classmethod
    def of(cls, form: LevelsForm, norms: np.ndarray, levels: torch.Tensor) -> Any:
        """The message with ``norms`` on the host and ``levels`` (m, d) on the device."""
        crossed = to_host(levels, MESSAGE).astype(form.dtype, copy=False)
        return cls(Levels(form, norms, crossed), levels.device, levels)

    def row(self, i: int) -> torch.Tensor:
        form = self.host.form
        row, ends = self.levels[i].double() / steps(form, i, self.device), form.starts.tolist()
        for b, (start, stop) in enumerate(pairwise(ends)):
            row[start:stop] *= self.norms[i, b]
        return row.to(self.dtype)


def steps(form: LevelsForm, i: int, device: Any) -> Any:
    """s of worker i: a number, or one for each coordinate, (d,), copied to the device once."""
    known = form.s_by_worker
    if known.shape[1] == 1:
        return float(known[min(i, len(known) - 1), 0])
    if "_there" not in vars(form):
        vars(form)["_there"] = to_device(known, device, KNOWN)
    return vars(form)["_there"][min(i, len(known) - 1)]


def level_type(form: LevelsForm) -> np.dtype:
    """The shortest integers that hold the levels of a form."""
    return next(np.dtype(f"i{size}") for size in (1, 2, 4, 8) if form.top < 1 << (8 * size - 1))
