"""Messages of some eigenvalues and eigenvectors of a symmetric matrix (D, D)."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.core.numerics.triangles import ROOT_2
from mpisim.wire.values import CodedValues, CodedValuesForm


class Spectral(CodedValues):
    """``values``: (m, k, D + 1), an eigenvalue and its vector in each row.

    Decodes to the triangle of sum_t lambda_t u_t u_t^T (`mpisim.core.numerics.triangles`).
    """

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        _add(out, self.in_arithmetic())
        return out


@dataclasses.dataclass(eq=False)
class SpectralForm(CodedValuesForm):
    """``k`` pairs of a matrix with ``side`` rows, d = side (side + 1) / 2."""

    message = Spectral
    side: int
    k: int
    codec: str = "paper"

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        return self.workers, self.k, self.side + 1


@njit(cache=True)
def _add(out, values):
    """out[i] += the triangle of worker i, pair after pair."""
    m, k, side = values.shape[0], values.shape[1], values.shape[2] - 1
    root = out.dtype.type(ROOT_2)
    for i in range(m):
        for t in range(k):
            scale, u, place = values[i, t, 0], values[i, t, 1:], 0
            for a in range(side):
                factor = scale * u[a]
                for b in range(a):
                    out[i, place + b] += root * factor * u[b]
                out[i, place + a] += factor * u[a]
                place += a + 1
