"""Measures the bits of a quantized vector against |h^-1|, for fig3.py: SAQ, Appendix B.5.

There are 1,000 step vectors h in R^50, h_j = |N(0, 1)|. For each of them sparse vectors x, whose
non-zero entries are Poisson(lambda), are quantized with the steps h, encoded in each code, and
decoded. The bits are those that were read.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from scipy.special import binom

from mpisim.compressors.block_quant import Stepped
from mpisim.core.errors import WireError
from mpisim.core.rng import Draw, Streams
from mpisim.wire.base import Precision
from mpisim.wire.codecs import CODECS

from .fig3 import DENSITIES, FILE, LAMBDAS

STEPS, D = 1000, 50
PRECISION = Precision(np.dtype("float32"), np.dtype("float64"))


class Given(Stepped):
    """Quantization with given steps, a row of ``h`` for each worker: SAQ, Definition 4."""

    def __init__(self, h: np.ndarray, codec: str):
        self.s, self.codec = 1 / h, codec  # type: ignore[assignment]
        self.starts = np.array([0, h.shape[1]])

    def scales(self, draw: Draw) -> np.ndarray:
        return self.s[draw.first : draw.first + draw.workers]


def measure(folder: Path, vectors: int) -> None:
    """FOLDER/bits.h5: for each h, lambda, density and code the mean bits of ``vectors`` x.

    ``support``: the mean of 31 + log d + log C(d, n0) + d - n0, Appendix E.1 without |h^-1|; and
    beside the codes "none", the norm, the signs and the empirical entropy of the levels' sizes.
    """
    streams = Streams(1)
    h = np.abs(streams.generator("steps").standard_normal((STEPS, D)))
    codes = {codec: Given(h, codec).bind(D, STEPS, PRECISION) for codec in CODECS}
    shape = (len(LAMBDAS), len(DENSITIES), STEPS)
    bits = {codec: np.zeros(shape) for codec in CODECS}
    support, entropy = np.zeros(shape), np.zeros(shape)
    for a, mean in enumerate(LAMBDAS):
        for b, density in enumerate(DENSITIES):
            for t in range(vectors):
                x = sparse_poisson(streams, (a * len(DENSITIES) + b) * vectors + t, mean, density)
                draw = Draw(streams, "up", t, 0, STEPS)
                for codec, compressor in codes.items():
                    levels, spent = sent(compressor, x, draw)
                    bits[codec][a, b] += spent / vectors
                entropy[a, b] += empirical_entropy(levels) / vectors
                k = np.count_nonzero(levels, axis=1)
                support[a, b] += (31 + np.log2(D) + np.log2(binom(D, k)) + k) / vectors
        print(f"lambda = {mean}: {vectors} vectors for each h and density", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / FILE, "w") as file:
        file.attrs.update({"d": D, "vectors": vectors})
        file["inverse_norm"] = np.linalg.norm(1 / h, axis=1)
        file["support"] = support
        for codec, values in (bits | {"none": entropy}).items():
            file[f"bits/{codec}"] = values


def sparse_poisson(streams: Streams, number: int, mean: float, density: float) -> np.ndarray:
    """x of all h, shape (1000, 50): round(density d) places with Poisson numbers, 0 elsewhere."""
    generator = streams.generator("vectors", number)
    places = generator.random((STEPS, D)).argsort(axis=1) < round(density * D)
    return generator.poisson(mean, (STEPS, D)) * places.astype(float)


def empirical_entropy(levels: np.ndarray) -> np.ndarray:
    """32 bits, a sign for each level that is not zero, sum_j log(d / how many are of j's size)."""
    sizes = np.abs(levels)
    alike = (sizes[:, :, None] == sizes[:, None, :]).sum(axis=2)
    return 32 + np.count_nonzero(levels, axis=1) + np.log2(D / alike).sum(axis=1)


def sent(compressor: Stepped, x: np.ndarray, draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Levels (1000, 50) and bits (1000,) as a receiver reads them; `WireError` if they differ."""
    message = compressor.compress(x, draw)
    packed = message.encode()
    read = compressor.form(draw).decode(packed.data, packed.sizes)
    if not np.array_equal(read.levels, message.levels) or not np.array_equal(
        read.norms, message.norms
    ):
        raise WireError(f"code {compressor.codec}: what was decoded is not what was encoded")
    return read.levels, read.payload_bits
