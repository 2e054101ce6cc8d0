"""What the linear autoencoder computes once for a point x = (D, E)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike

from mpisim.core.products import product
from mpisim.problems import autoencoder_kernels as kernels
from mpisim.problems.image_shards import ImageShards


class Parameters:
    """D (d_f, d_e), E (d_e, d_f), D^T D, E E^T and b = [E^T, K], which need no image."""

    def __init__(self, x: np.ndarray, d_f: int, dtype: DTypeLike):
        self.x = x.astype(dtype)
        decoder, encoder = self.x[: x.size // 2], self.x[x.size // 2 :]
        self.decoder, self.encoder = decoder.reshape(d_f, -1), encoder.reshape(-1, d_f)
        transposed = np.ascontiguousarray(self.encoder.T)
        self.gram = product(np.ascontiguousarray(self.decoder.T), self.decoder)
        self.encoder_gram = product(self.encoder, transposed)
        k = product(transposed, self.gram) - self.decoder
        self.b = np.hstack([transposed, k])

    @property
    def distance(self) -> float:
        """|D E - I|_F^2."""
        both = np.sum(self.gram * self.encoder_gram) - 2 * np.sum(self.decoder * self.encoder.T)
        return float(both + len(self.decoder))

    def ridge(self, lambda_: float) -> tuple[np.ndarray, np.ndarray]:
        """What lambda adds to S_i b and to E S_i E^T."""
        half = self.x.dtype.type(lambda_ / 2)
        return half * self.b, half * self.encoder_gram


class Codes(Parameters):
    """The codes [E a, K^T a] of all images of the rank at a point, and q_i of all shards."""

    def __init__(self, x: np.ndarray, shards: ImageShards, lambda_: float):
        super().__init__(x, shards.d_f, shards.levels.dtype)
        ridge, start_q = self.ridge(lambda_)
        self.shards = shards
        self.codes = np.empty((len(shards.weights), self.b.shape[1]), self.x.dtype)
        q = np.empty((len(shards.store[0]), *start_q.shape), self.x.dtype)
        kernels.encode_all(
            shards.store, shards.levels, shards.weights, self.b, start_q, self.codes, q
        )
        self._known = (shards.store, shards.levels, shards.weights, self.codes, q,
                       self.decoder, ridge)  # fmt: skip

    def losses(self) -> np.ndarray:
        """f_i(x) without the regulariser, shape (m,), float64."""
        shards = self.shards
        out = np.empty(len(shards.slots))
        kernels.losses(
            shards.store[3], shards.norms, shards.weights, self.codes, self.gram, shards.slots, out
        )
        return out

    @cached_property
    def common(self) -> np.ndarray:
        """The gradient (d,) of the workers that have D_0; empty unless there are several."""
        out = np.empty((int(self.shards.shared), self.x.size), self.x.dtype)
        slots = np.zeros(len(out), np.int64)
        kernels.write_gradients(*self._known, slots, np.empty(0, self.x.dtype), out)
        return out.ravel()

    def write_gradients(self, first: int, out: np.ndarray) -> None:
        """See `ExplicitProblem.write_gradients`."""
        slots = self.shards.slots[first : first + len(out)]
        kernels.write_gradients(*self._known, slots, self.common, out)

    def coordinates(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """See `ExplicitProblem.coordinates`."""
        out = np.empty(indices.size, self.x.dtype)
        kernels.write_coordinates(*self._known, self.shards.slots, ptr, indices, out)
        return out
