"""What the bits of a message are for, and how many of them an ideal code would need."""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from mpisim.wire.base import Carried, Message
from mpisim.wire.composed import Composed, Parts
from mpisim.wire.exponents import Exponents
from mpisim.wire.factors import CodedValues, exponents
from mpisim.wire.fewer import Fewer
from mpisim.wire.levels import Levels
from mpisim.wire.signs import Points, Signs
from mpisim.wire.sparse import Explicit
from mpisim.wire.values import ValuesMessage


def entropies(message: Message) -> dict[str, float]:
    """Bits of a worker's message that an ideal code would need, on average, by what they are for.

    Floats need all their bits, those of factors and eigenvectors all but their exponents', which
    need the entropy of those of unit vectors, and of the others. Levels and exponents need the
    entropy of their frequencies in all messages together, and a sign for each that is not zero.
    Indices need log2 C(d, k), and k, where it differs, the entropy of its frequencies. A message of
    a class that is not mpisim's counts as it is encoded.
    """
    form = message.form
    workers, bits = max(1, form.workers), form.precision.bits
    if isinstance(message, Carried):
        return entropies(message.inner)
    if isinstance(message, Points):
        return {"norms": float(bits), "points": _order_0(message.which)}
    if isinstance(message, Composed | Parts):
        total: dict[str, float] = {}
        for part in message.parts if isinstance(message, Parts) else message.messages:
            for name, count in entropies(part).items():
                total[name] = total.get(name, 0.0) + count * part.form.workers / workers
        return total
    if isinstance(message, Exponents):
        powers = message.codes & 255
        return {"signs": np.count_nonzero(powers) / workers, "exponents": _order_0(powers)}
    if isinstance(message, Levels):
        signs = np.count_nonzero(message.levels) / workers
        sizes = _order_0(np.abs(message.levels))
        return {"norms": float(bits * message.form.norms), "signs": signs, "levels": sizes}
    if isinstance(message, Signs):
        return {"norms": 8.0 * message.form.scale_bytes, "signs": float(form.d)}
    if isinstance(message, Explicit):
        k = message.indices.shape[1]
        return {"indices": _subsets(form.d, k), "values": float(bits * k)}
    if isinstance(message, Fewer):
        counts = np.diff(message.ptr)
        indices = sum(_subsets(form.d, k) for k in counts.tolist()) / workers
        values = float(bits * counts.sum() / workers)
        return {"numbers": _order_0(counts[:, None]), "indices": indices, "values": values}
    if isinstance(message, CodedValues):
        rows = message.values.reshape(workers, -1)
        numbers, unit = exponents(rows), (message.form.typical(rows) > 0).any(axis=0)
        signs, rest = np.count_nonzero(numbers) / workers, float((bits - 9) * numbers.shape[1])
        both = _order_0(numbers[:, unit]) + _order_0(numbers[:, ~unit])
        return {"signs": signs, "exponents": both, "mantissas": rest}
    if isinstance(message, ValuesMessage):
        return {"values": float(bits * message.values.size / workers)}
    return {"message": float(message.payload_bits.mean())}


def _subsets(d: int, k: int) -> float:
    """log2 C(d, k)."""
    return (lgamma(d + 1) - lgamma(k + 1) - lgamma(d - k + 1)) / log(2)


def _order_0(rows: np.ndarray) -> float:
    """Bits of the entropy of a row's symbols, whose frequencies are those of all rows (m, d)."""
    counts = np.unique(rows, return_counts=True)[1]
    return float((counts * np.log2(rows.size / counts)).sum() / max(1, len(rows)))
