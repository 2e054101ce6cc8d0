"""Random messages of every kind, and bits that are refused, for tests."""

import numpy as np
import pytest

from mpisim.compressors.rank import nearly_square
from mpisim.core.errors import WireError
from mpisim.wire.base import Form, Message, Precision
from mpisim.wire.codecs import CODECS
from mpisim.wire.composed import Sum, SumForm
from mpisim.wire.exponents import Exponents, ExponentsForm
from mpisim.wire.factors import Factors, FactorsForm, Spectral, SpectralForm
from mpisim.wire.fewer import Fewer, FewerForm
from mpisim.wire.levels import Levels, LevelsForm
from mpisim.wire.signs import Flags, FlagsForm, Points, PointsForm, SignsForm
from mpisim.wire.sparse import Explicit, ExplicitForm, Seeded, SeededForm
from mpisim.wire.values import Dense, DenseForm
from tests.wire import string_elias

WIDTHS = [np.dtype("float32"), np.dtype("float64")]
PRECISIONS = [Precision(wire, arithmetic) for wire in WIDTHS for arithmetic in WIDTHS]
KINDS = ["dense", "seeded", "explicit", "entropy explicit", "levels", "block levels"]
KINDS += ["worker levels", "e1 levels", "entropy levels", "exponents", "entropy exponents"]
KINDS += ["signs", "points", "entropy points", "sum", "factors", "entropy factors", "fewer"]
KINDS += ["entropy fewer", "spectral", "entropy spectral", "flags"]


def random_message(
    kind: str, rng: np.random.Generator, d: int, m: int, precision: Precision
) -> Message:
    """A message of ``m`` workers in dimension ``d``."""
    wire = precision.wire
    if kind == "dense":
        return Dense(DenseForm(d, m, precision), _floats(rng, (m, d), wire))
    if kind == "seeded":
        ptr, indices = _subsets(rng, d, rng.integers(0, d + 1, m))
        form = SeededForm.of(d, precision, ptr, indices, 1.7)
        return Seeded(form, _floats(rng, (indices.size,), wire))
    codec = "entropy" if kind.startswith("entropy ") else "paper"
    if kind.endswith("fewer"):
        k = int(rng.integers(1, d + 1))
        ptr, indices = _subsets(rng, d, rng.integers(0, k + 1, m))
        form = FewerForm(d, m, precision, k, codec)
        return Fewer(form, ptr, indices, _floats(rng, (ptr[-1],), wire))
    if kind.endswith("explicit"):
        k = int(rng.integers(1, d + 1))
        indices = _subsets(rng, d, [k] * m)[1].reshape(m, k)
        form = ExplicitForm(d, m, precision, k, codec)
        return Explicit(form, indices, _floats(rng, (m, k), wire))
    if kind.endswith("exponents"):
        codes = rng.integers(0, 512, (m, d), np.uint16)
        if rng.random() < 0.5:  # as of normal numbers: the model of the entropy code fits
            powers = np.frexp(rng.standard_normal((m, d)))[1] + int(rng.choice([30, 110, 125]))
            codes = (np.maximum(powers, 0) + (codes & 256)).astype(np.uint16)
        return Exponents(ExponentsForm(d, m, precision, codec), codes)
    if kind == "flags":
        return Flags(FlagsForm(1, m, precision), rng.random(m) < 0.5)
    if kind == "signs":
        scales = np.abs(_finite(rng, (m,), wire))
        return SignsForm(d, m, precision).pack(scales, rng.standard_normal((m, d)))
    if kind.endswith("points"):
        shares = (0.6, 0.25, 0.15) if kind.startswith("entropy") else ()
        form = PointsForm(d, m, precision, np.array([-5.0, -2, -0.5, 0.5, 2, 5]), shares)
        scales = np.abs(_finite(rng, (m, 1), wire))
        scales[rng.random((m, 1)) < 0.2] = rng.choice([0.0, np.nan])
        return Points(form, scales, rng.integers(0, 6, (m, d)))
    if kind == "sum":
        kinds = "entropy points", "fewer", "points"
        parts = tuple(random_message(one, rng, d, m, precision) for one in kinds)
        return Sum(SumForm(m, precision, tuple(part.form for part in parts)), parts)
    if kind.endswith("spectral"):  # of a matrix (D, D), with what is left of d as zeros
        side = int(rng.integers(1, 1 + max(1, int(np.sqrt(2 * d) - 0.5))))
        form = SpectralForm(d, m, precision, side, int(rng.integers(1, side + 1)), codec)
        return Spectral(form, _floats(rng, form.shape, wire))
    if kind.endswith("factors"):
        cut = int(rng.integers(0, d + 1))
        shapes = tuple(nearly_square(size) for size in (cut, d - cut) if size)
        form = FactorsForm(d, m, precision, shapes, int(rng.integers(1, 4)), codec)
        return Factors(form, _floats(rng, form.shape, wire))
    return _levels(kind, rng, d, m, precision)


def _subsets(rng, d, counts) -> tuple[np.ndarray, np.ndarray]:
    """So many coordinates of each worker: where they start, and ascending indices."""
    rows = [np.sort(rng.choice(d, k, replace=False)) for k in counts]
    return np.cumsum([0, *counts]), np.concatenate([np.empty(0, np.int64), *rows])


def _levels(kind, rng, d, m, precision) -> Levels:
    codec = kind.split()[0] if kind.split()[0] in CODECS else "elias"
    s = float(rng.choice([1, 3, 200, 70000, 2**31 - 1]))
    form = LevelsForm.uniform(d, m, precision, s, codec)
    if kind != "levels":
        starts = np.array([0, d // 3, d // 3, d - d // 4, d])
        steps = rng.uniform(0.2, 300, d if kind == "block levels" else (m, d))
        form = LevelsForm(d, m, precision, steps, starts, codec)
    limits = np.broadcast_to(form.limits, (m, d))
    sparse = rng.random((m, d)) < rng.choice([0.01, 0.5, 1])
    levels = np.where(sparse, rng.integers(-limits, limits + 1), 0).astype(form.dtype)
    norms = np.abs(_finite(rng, (m, form.norms), precision.wire)) + precision.wire.type(1e-30)
    none = rng.random(norms.shape) < 0.3
    norms[none] = rng.choice([0.0, np.nan], int(none.sum()))
    for b in range(form.norms):
        levels[none[:, b], form.starts[b] : form.starts[b + 1]] = 0
    return Levels(form, norms, levels)


def _finite(rng, shape, wire):
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-20, 20)).astype(wire)


def _floats(rng, shape, wire):
    values = _finite(rng, shape, wire)
    odd = rng.random(shape) < 0.1
    values[odd] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], int(odd.sum()))
    return values


def contents(message: Message) -> dict[str, bytes]:
    """What the message holds, to the bit."""
    names = ("values", "indices", "ptr", "norms", "levels", "codes", "scales")
    names += ("bits", "which", "flags")
    fields = {n: getattr(message, n) for n in names if hasattr(message, n)}
    result = {n: (a.dtype.str + str(a.shape)).encode() + a.tobytes() for n, a in fields.items()}
    for number, part in enumerate(getattr(message, "parts", ())):
        result |= {f"{number} {name}": value for name, value in contents(part).items()}
    if hasattr(message, "inner"):
        result |= contents(message.inner)
    return result


def received(message: Message) -> Message:
    """What the receiver decodes."""
    packed = message.encode()
    return message.form.decode(packed.data, packed.sizes)


def refused(form: Form, bits: str, match: str) -> None:
    """These bits are no message of a worker."""
    data = np.frombuffer(string_elias.to_bytes(bits), np.uint8)
    with pytest.raises(WireError, match=match):
        form.decode(data, np.array([data.size]))
