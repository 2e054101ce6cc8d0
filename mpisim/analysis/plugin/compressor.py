"""What every compressor must do, checked in one process.

Each check takes a bound compressor and returns why it fails, in a line; empty if it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from mpisim.analysis.plugin.constants import DRAWS, alpha, density, omega
from mpisim.analysis.plugin.moments import draw, vectors
from mpisim.analysis.plugin.outcome import Check, NotChecked
from mpisim.compressors.base import Compressor
from mpisim.core.errors import InputError
from mpisim.wire.base import Precision

SINGLE = Precision(np.dtype("float32"), np.dtype("float64"))
DOUBLE = Precision(np.dtype("float64"), np.dtype("float64"))
DIMENSIONS = (12, 50, 300)
BLOCKS = (0, 1, 4)  # workers on a rank
WORKERS = 7
SPLITS = ([0, 1, 2, 3, 4, 5, 6, 7], [0, 7], [0, 2, 7], [0, 3, 3, 7])
HEADER = 64  # framing bits of a message at most: its length, and padding to bytes


def checks(spec: Compressor) -> Iterator[Check]:
    """The checks of a compressor that is not bound yet."""
    yield "decode(encode(message)) is the message, to the bit", lambda: _each(spec, round_trip)
    yield "payload bits are those that are encoded", lambda: _each(spec, charged)
    yield "sizes that its form tells are those of the bytes", lambda: _each(spec, told_sizes)
    yield "a worker's message is the same on any rank", lambda: _split(spec)
    yield "the same draw gives the same message", lambda: _each(spec, stateless)
    yield "infinite and NaN values can be sent", lambda: _each(spec, diverging)
    yield "E C(v) = v and E|C(v) - v|^2 <= omega |v|^2", lambda: _constants(spec, omega)
    yield "E|C(v) - v|^2 <= (1 - alpha) |v|^2", lambda: _constants(spec, alpha)
    yield "C(v) has zeta non-zeros at most, on average", lambda: _constants(spec, density)


def round_trip(compressor: Compressor, v: np.ndarray) -> str:
    """Whether the server decodes what the workers go on with."""
    own = draw(len(v))
    message, form = compressor.compress(v, own), compressor.form(own)
    packed, decoded = message.encode(), message.decoded()
    again = form.decode(packed.data, packed.sizes)
    where = f"{len(v)} workers, d = {v.shape[1]}"
    if decoded.shape != v.shape or decoded.dtype != compressor.precision.arithmetic:
        return f"{where}: decoded() is {decoded.dtype} {decoded.shape}, not {v.dtype} {v.shape}"
    if again.decoded().tobytes() != decoded.tobytes():
        return f"{where}: the server decodes another vector than the worker"
    if again.encode().data.tobytes() != packed.data.tobytes():
        return f"{where}: the decoded message has another encoding"
    return ""


def charged(compressor: Compressor, v: np.ndarray) -> str:
    """Whether each message is charged what its bytes hold, apart from framing."""
    message = compressor.compress(v, draw(len(v)))
    packed = message.encode()
    for said, name in ((message.payload_bits, "payload_bits"), (packed.payload_bits, "encode()")):
        framing = 8 * np.asarray(packed.sizes) - said
        for i in np.flatnonzero((framing < 0) | (framing > HEADER)):
            return f"{name} has {said[i]} bits for a message of {8 * packed.sizes[i]} bits"
    if not np.array_equal(message.payload_bits, packed.payload_bits):
        return f"payload_bits {message.payload_bits}, but encode() charges {packed.payload_bits}"
    paper = compressor.paper_bits(message)
    if np.shape(paper) != (len(v),) or np.any(np.asarray(paper) < 0):
        return f"paper_bits is {paper!r}; it must have a number >= 0 for each of {len(v)} workers"
    return ""


def told_sizes(compressor: Compressor, v: np.ndarray) -> str:
    """Whether receivers that know the sizes beforehand cut the bytes at the right places."""
    own = draw(len(v))
    packed, told = compressor.compress(v, own).encode(), compressor.form(own).sizes
    if packed.data.size != packed.sizes.sum():
        return f"the sizes add up to {packed.sizes.sum()}, the bytes are {packed.data.size}"
    if told is not None and not np.array_equal(told, packed.sizes):
        return f"the form says {told}, encoded are {packed.sizes} bytes"
    return ""


def alike(compressor: Compressor, v: np.ndarray, split: Sequence[int]) -> str:
    """Whether blocks of workers, cut at ``split``, send what one block of all workers sends."""
    whole = compressor.compress(v, draw(len(v)))
    cuts = list(pairwise(split))
    blocks = [compressor.compress(v[a:b], draw(b - a, first=a)) for a, b in cuts]
    where = f"{len(v)} workers in blocks of {', '.join(str(b - a) for a, b in cuts)}"
    if len({block.form.sizes is None for block in blocks}) > 1:
        return f"{where}: only some blocks know the sizes of their messages"
    packed = [block.encode() for block in blocks]
    data = np.concatenate([p.data for p in packed])
    if data.tobytes() != whole.encode().data.tobytes():
        return f"{where}: other bytes than in one block"
    if np.vstack([b.decoded() for b in blocks]).tobytes() != whole.decoded().tobytes():
        return f"{where}: other vectors than in one block"
    return ""


def stateless(compressor: Compressor, v: np.ndarray) -> str:
    """Whether a message depends on v and the draw alone, and keeps its values."""
    first, own = compressor.compress(v.copy(), draw(len(v))), v.copy()
    message = compressor.compress(own, draw(len(v)))
    before = message.decoded().copy()
    if first.decoded().tobytes() != before.tobytes():
        return "compressing the same vectors again gives another message"
    compressor.compress(2 * v[::-1], draw(len(v), round=8))
    own[:] = 9
    if message.decoded().tobytes() != before.tobytes():
        return "a message changes when its vectors do, or when the next ones are compressed"
    for other in (np.asfortranarray(v), np.repeat(v, 2, axis=1)[:, ::2]):
        if compressor.compress(other, draw(len(v))).decoded().tobytes() != before.tobytes():
            return "the message depends on how v lies in memory"
    return ""


def diverging(compressor: Compressor, v: np.ndarray) -> str:
    """Whether vectors that are not finite cross the wire."""
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        v = v.copy()
        v[:, -1:] = bad
        with np.errstate(all="ignore"):
            problem = round_trip(compressor, v)
        if problem:
            return f"a value is {bad}: {problem}"
    return ""


def _each(spec: Compressor, check) -> str:
    """The first failure over dimensions, precisions and blocks."""
    for d in _dimensions(spec):
        for precision in (SINGLE, DOUBLE):
            compressor = spec.bind(d, WORKERS, precision)
            for m in BLOCKS:
                if problem := check(compressor, vectors(m, d, precision)):
                    return problem
    return ""


def _dimensions(spec: Compressor) -> list[int]:
    """The `DIMENSIONS` that the compressor's parameters fit; the error of the last if none."""
    found: list[int] = []
    for d in DIMENSIONS:
        try:
            bound = spec.bind(d, WORKERS, SINGLE)
        except InputError:
            if d == DIMENSIONS[-1] and not found:
                raise
            continue
        if bound.fitted and not _works(bound):
            raise NotChecked("it is fitted to a problem, so only its runs are checked")
        found.append(d)
    return found


def _works(bound: Compressor) -> bool:
    """Whether a compressor with `prepare` also compresses without."""
    try:
        bound.compress(vectors(1, bound.d), draw(1)).encode()
    except Exception:
        return False
    return True


def _split(spec: Compressor) -> str:
    d = _dimensions(spec)[0]
    compressor = spec.bind(d, WORKERS, SINGLE)
    return next(filter(None, (alike(compressor, vectors(WORKERS, d), s) for s in SPLITS)), "")


def _constants(spec: Compressor, check) -> str:
    return check(spec.bind(_dimensions(spec)[0], DRAWS, SINGLE))
