"""What every compressor must do, checked in one process.

Each check takes a bound compressor and vectors (m, d), and raises `Broken`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.errors import InputError
from mpisim.core.rng import Draw
from mpisim.testing.moments import DRAWS, alpha, density, draw, omega, vectors
from mpisim.testing.runs import Broken, Check, NotChecked, demand, demand_same
from mpisim.wire.base import Precision
from mpisim.wire.sparse import SeededForm

SINGLE = Precision(np.dtype("float32"), np.dtype("float64"))
DOUBLE = Precision(np.dtype("float64"), np.dtype("float64"))
PRECISIONS = SINGLE, DOUBLE, Precision(np.dtype("float32"), np.dtype("float32"))
DIMENSIONS = (12, 50, 300)
WORKERS = 7
BLOCKS = (0, 1, WORKERS)  # workers on a rank
SPLITS = (range(WORKERS + 1), (0, 2, 7), (0, 3, 3, 7))
CLIENTS = (1, 3, 6)
FRESH = 20  # rounds, and seeds, that are compared


def compressor_checks(spec: Compressor) -> list[Check]:
    """The checks of a compressor that is not bound yet."""

    def blocks(check: Callable[[Compressor, np.ndarray], None]) -> Callable[[], None]:
        return lambda: _each(spec, check)

    @cache
    def bound() -> Compressor:
        some = spec.bind(_dimensions(spec)[0], WORKERS, SINGLE)
        return some if some.correlated else spec.bind(some.d, DRAWS, SINGLE)

    def draws(check: Callable[[Compressor], None]) -> Callable[[], None]:
        return lambda: check(bound())

    return [
        Check("decode(encode(message)) is the message, to the bit", blocks(round_trip)),
        Check("payload bits are those that are encoded", blocks(charged)),
        Check("sizes that its form tells are those of the bytes", blocks(form_sizes)),
        Check("a worker's message is the same on any rank", blocks(alike)),
        Check("the same draw gives the same message", blocks(stateless)),
        Check("other rounds and seeds give other messages", lambda: fresh(spec)),
        Check("it keeps nothing from round to round", lambda: keeps_nothing(spec)),
        Check("infinite and NaN values can be sent", blocks(diverging)),
        Check("E C(v) = v and E|C(v) - v|^2 <= omega |v|^2", draws(omega)),
        Check("E|C(v) - v|^2 <= (1 - alpha) |v|^2", draws(alpha)),
        Check("C(v) has zeta non-zeros at most, on average", draws(density)),
    ]


def _each(spec: Compressor, check: Callable[[Compressor, np.ndarray], None]) -> None:
    for d in _dimensions(spec):
        for precision in PRECISIONS:
            compressor = spec.bind(d, WORKERS, precision)
            for m in BLOCKS:
                check(compressor, vectors(m, d, precision))


def _dimensions(spec: Compressor) -> list[int]:
    """The `DIMENSIONS` that the compressor's parameters fit; the error of the last if none."""
    fitting: list[int] = []
    for d in DIMENSIONS:
        try:
            bound = spec.bind(d, WORKERS, SINGLE)
        except InputError:
            if d == DIMENSIONS[-1] and not fitting:
                raise
            continue
        if bound.fitted:  # does it compress without `prepare`?
            try:
                bound.compress(vectors(1, d), draw(1)).encode()
            except Exception:
                why = "it is fitted to a problem, so only its runs are checked"
                raise NotChecked(why) from None
        fitting.append(d)
    return fitting


def round_trip(compressor: Compressor, v: np.ndarray) -> None:
    """The server decodes what the workers go on with."""
    drawn = draw(len(v))
    message, form = compressor.compress(v, drawn), compressor.form(drawn)
    packed, decoded = message.encode(), message.decoded()
    where = f"{len(v)} workers, d = {v.shape[1]}"
    right = decoded.shape == v.shape and decoded.dtype == compressor.precision.arithmetic
    wrong = f"decoded() is {decoded.dtype} {decoded.shape}, not {v.dtype} {v.shape}"
    demand(right, f"{where}: {wrong}")
    if isinstance(form, SeededForm):
        ascend = all(np.all(np.diff(row) > 0) for row in np.split(form.indices, form.ptr[1:-1]))
        demand(ascend, f"{where}: a worker's coordinates must ascend, each once")
    sizes, why = np.abs(decoded).sum(axis=0), f"{where}: total() is not the sum of decoded()"
    if np.isfinite(sizes).all():
        away = np.abs(message.total() - decoded.sum(axis=0))
        demand(np.all(away <= 1e-4 * sizes.max()), why)
    for again in (form.decode(packed.data, packed.sizes), message.arrived(packed)):
        demand_same(again.decoded(), decoded, f"{where}: the server decodes another vector")
        demand_same(again.encode().data, packed.data, f"{where}: decoded, it has another encoding")


def charged(compressor: Compressor, v: np.ndarray) -> None:
    """Each message is charged what its bytes hold, apart from framing."""
    message = compressor.compress(v, draw(len(v)))
    packed = message.encode()
    bits, encoded = message.payload_bits, packed.payload_bits
    demand(np.array_equal(bits, encoded), f"payload_bits {bits}, but encode() charges {encoded}")
    sent = 8 * np.asarray(packed.sizes)
    for i in np.flatnonzero((sent < bits) | (sent - bits > _framing(message))):
        raise Broken(f"payload_bits has {bits[i]} bits for a message of {sent[i]} bits")
    paper = compressor.paper_bits(message)
    right = np.shape(paper) == (len(v),) and not np.any(np.asarray(paper) < 0)
    allowed = f"a number >= 0 for each of {len(v)} workers"
    demand(right, f"paper_bits is {paper!r}; it must have {allowed}")


def _framing(message: Any) -> int:
    """Bits at most: a flag and 7 of padding for each part of a message, and the sizes of parts."""
    if hasattr(message, "inner"):
        return _framing(message.inner)
    parts = getattr(message, "parts", ())
    return 8 * getattr(message.form, "head", 0) + sum(map(_framing, parts)) if parts else 8


def form_sizes(compressor: Compressor, v: np.ndarray) -> None:
    """Receivers that know the sizes beforehand cut the bytes at the right places."""
    drawn = draw(len(v))
    packed, sizes = compressor.compress(v, drawn).encode(), compressor.form(drawn).sizes
    total, size = packed.sizes.sum(), packed.data.size
    demand(size == total, f"the sizes add up to {total}, the bytes are {size}")
    right = sizes is None or np.array_equal(sizes, packed.sizes)
    demand(right, f"the form says {sizes}, encoded are {packed.sizes} bytes")
    if not compressor.random_length:  # a simulated clock takes those of one round for all
        other = compressor.form(draw(len(v), round=8)).sizes
        why = "sizes differ from round to round, but random_length is False"
        demand(np.array_equal(sizes, other), why)  # type: ignore[arg-type]


def alike(compressor: Compressor, v: np.ndarray) -> None:
    """`WORKERS` workers in any blocks, and those that take part, send what one block sends."""
    if len(v) != WORKERS:
        return
    together = compressor.compress(v, draw(len(v)))
    for split in SPLITS:
        cuts = list(pairwise(split))
        blocks = [compressor.compress(v[a:b], draw(b - a, first=a)) for a, b in cuts]
        where = f"{len(v)} workers in blocks of {', '.join(str(b - a) for a, b in cuts)}"
        unlike = len({block.form.sizes is None for block in blocks}) > 1
        demand(not unlike, f"{where}: only some blocks know the sizes of their messages")
        data = np.concatenate([block.encode().data for block in blocks])
        demand_same(data, together.encode().data, f"{where}: other bytes than in one block")
        decoded = np.vstack([block.decoded() for block in blocks])
        demand_same(decoded, together.decoded(), f"{where}: other vectors than in one block")
    drawn = dataclasses.replace(draw(WORKERS), clients=np.array(CLIENTS))
    try:
        message = compressor.compress(v[drawn.members], drawn)
    except InputError:  # it needs more of them
        return
    packed = message.encode()
    decoded = compressor.form(drawn).decode(packed.data, packed.sizes).decoded()
    right = message.decoded() if compressor.correlated else together.decoded()[drawn.members]
    demand_same(decoded, right, f"where workers {CLIENTS} alone send: other vectors than of all")


def stateless(compressor: Compressor, v: np.ndarray) -> None:
    """A message depends on v and the draw alone, and keeps its values."""
    first, reused = compressor.compress(v.copy(), draw(len(v))), v.copy()
    message = compressor.compress(reused, draw(len(v)))
    demand(reused.tobytes() == v.tobytes(), "compress changes v in place")
    before = message.decoded().tobytes()
    same = first.decoded().tobytes() == before
    demand(same, "compressing the same vectors again gives another message")
    compressor.compress(2 * v[::-1], draw(len(v), round=8))
    reused[:] = 9
    why = "when its vectors do, or when the next ones are compressed"
    demand(message.decoded().tobytes() == before, f"a message changes {why}")
    for other in (np.asfortranarray(v), np.repeat(v, 2, axis=1)[:, ::2]):
        same = compressor.compress(other, draw(len(v))).decoded().tobytes() == before
        demand(same, "the message depends on how v lies in memory")


def fresh(spec: Compressor) -> None:
    """Messages of one vector change with the round and the seed, if they often differ."""
    compressor = spec.bind(_dimensions(spec)[0], WORKERS, SINGLE)
    if not compressor.omega:
        raise NotChecked("its omega is None or 0")
    v = np.tile(vectors(1, compressor.d), (WORKERS, 1))

    first = compressor.compress(v, draw(WORKERS)).decoded()

    def share(draws: Iterable[Draw]) -> float:
        changes = [compressor.compress(v, one).decoded() != first for one in draws]
        return float(np.any(changes, axis=2).mean())

    rounds = share(draw(WORKERS, round=k) for k in range(FRESH))
    seeds = share(draw(WORKERS, seed=k) for k in range(FRESH))
    often = max(rounds, seeds, (first[1:] != first[0]).any(axis=1).mean())
    for name, changed in (("round", rounds), ("seed", seeds)):
        why = f"messages of one vector differ, but not with the {name}; draw from `draw` alone"
        demand(changed or often < (0.5 if compressor.correlated else 0.15), why)


def keeps_nothing(spec: Compressor) -> None:
    """After many rounds it is what it is after the last of them alone, and sends the same.

    No checkpoint holds what a compressor sets, or changes in place, while a run is on. It may keep
    what it computed for the last draw.
    """
    d = _dimensions(spec)[0]
    v, last = vectors(WORKERS, d), draw(WORKERS, round=9)
    alone, after_many = (spec.bind(d, WORKERS, SINGLE) for _ in range(2))
    alone.seal()
    after_many.seal()
    message = alone.compress(v, last).decoded()
    for k in range(4):
        after_many.compress(k * v, draw(WORKERS, round=k)).encode()
    other = after_many.compress(v, last).decoded()
    name = _difference(vars(after_many), vars(alone))
    why = "changes in a run, but a compressor has no state: no checkpoint would hold it"
    demand(not name, f"its attribute {name} {why}")
    demand(message.tobytes() == other.tobytes(), "a message depends on those of earlier rounds")


def _difference(a: Any, b: Any, name: str = "") -> str:
    """The name of an attribute or item in which two objects differ; empty if they do not."""
    if type(a) is not type(b):
        return name
    if isinstance(a, np.ndarray):
        return name if a.dtype != b.dtype or a.tobytes() != b.tobytes() else ""
    if not isinstance(a, dict | list | tuple) and hasattr(a, "__dict__") and not callable(a):
        a, b = vars(a), vars(b)
    if isinstance(a, list | tuple):
        a, b = dict(enumerate(a)), dict(enumerate(b))
    if not isinstance(a, dict):
        opaque = type(a).__eq__ is object.__eq__
        return "" if opaque or a == b or a != a else name
    for key in a | b:
        inner = f"{name}.{key}" if name else str(key)
        if key not in a or key not in b:
            return inner
        if different := _difference(a[key], b[key], inner):
            return different
    return ""


def diverging(compressor: Compressor, v: np.ndarray) -> None:
    """Vectors that are not finite cross the wire."""
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        v = v.copy()
        try:
            with np.errstate(all="ignore"):
                v[:, -1:] = bad
                round_trip(compressor, v)
        except Broken as broken:
            raise Broken(f"a value is {bad}: {broken}") from None
