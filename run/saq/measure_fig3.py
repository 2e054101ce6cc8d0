"""Measures the bits of a quantized vector against |h^-1|, for fig3.py: SAQ, Appendix B.5.

There are 1,000 step vectors h in R^50, h_j = |N(0, 1)|. For each of them sparse vectors x, whose
non-zero entries are Poisson(lambda), are quantized with the steps h, encoded in each code, and
decoded. The bits are those that were read.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import h5py
import numpy as np
from scipy.special import binom

from mpisim.compressors.quantization import Stepped
from mpisim.core.errors import WireError
from mpisim.core.rng import Draw, Streams
from mpisim.wire.base import Precision
from mpisim.wire.codecs import CODECS
from mpisim.wire.levels import Levels, LevelsForm

from .fig3 import DENSITIES, FILE, LAMBDAS

STEPS, D = 1000, 50
PRECISION = Precision(np.dtype("float32"), np.dtype("float64"))
ONE_BLOCK = np.array([0, D])


class Given(Stepped):
    """Quantization with given steps, a row of ``h`` for each worker: SAQ, Definition 4."""

    norm = "2"
    codec = "elias"
    starts = ONE_BLOCK

    def __init__(self, h: np.ndarray):
        self.s = 1 / h

    def scales(self, draw: Draw) -> np.ndarray:
        return self.s


def measure(folder: Path, vectors: int) -> None:
    """FOLDER/bits.h5: for each h, lambda, density and code the mean bits of ``vectors`` x.

    ``support``: the mean of 31 + log d + log C(d, n0) + d - n0, Appendix E.1 without |h^-1|; and
    beside the codes "none", the norm, the signs and the empirical entropy of the levels' sizes.
    """
    streams = Streams(1)
    h = np.abs(streams.generator("steps").standard_normal((STEPS, D)))
    quantizer = cast(Stepped, Given(h).bind(D, STEPS, PRECISION))
    forms = {c: LevelsForm(D, STEPS, PRECISION, 1 / h, ONE_BLOCK, c) for c in CODECS}
    shape = (len(LAMBDAS), len(DENSITIES), STEPS)
    bits = {codec: np.zeros(shape) for codec in (*CODECS, "none")}
    support = np.zeros(shape)
    for a, mean in enumerate(LAMBDAS):
        for b, density in enumerate(DENSITIES):
            for t in range(vectors):
                x = sparse_poisson(streams, (a * len(DENSITIES) + b) * vectors + t, mean, density)
                message = quantizer.compress(x, Draw(streams, "up", t, 0, STEPS))
                for codec, form in forms.items():
                    bits[codec][a, b] += bits_read(message, form) / vectors
                bits["none"][a, b] += empirical_entropy(message.levels) / vectors
                k = np.count_nonzero(message.levels, axis=1)
                support[a, b] += (31 + np.log2(D) + np.log2(binom(D, k)) + k) / vectors
        print(f"lambda = {mean}: {vectors} vectors for each h and density", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / FILE, "w") as file:
        file.attrs.update({"d": D, "vectors": vectors})
        file["inverse_norm"] = np.linalg.norm(1 / h, axis=1)
        file["support"] = support
        for codec, values in bits.items():
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


def bits_read(message: Levels, form: LevelsForm) -> np.ndarray:
    """Bits, shape (1000,), that a receiver reads in the code of ``form``.

    Raises `WireError` where what it reads is not the message.
    """
    packed = Levels(form, message.norms, message.levels).encode()
    read = form.decode(packed.data, packed.sizes)
    parts = (read.levels, message.levels), (read.norms, message.norms)
    if not all(np.array_equal(*pair) for pair in parts):
        raise WireError(f"code {form.codec}: what was decoded is not what was encoded")
    return read.payload_bits
