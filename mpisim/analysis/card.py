"""The report card of a compressor: bits, errors, constants and time, all measured.

For any compressor with an error |C(v) - v|^2 <= alpha |v|^2 that sends b bits for d coordinates,
alpha 4^(b/d) >= 1 (Safaryan, Shulgin, Richtarik, 2020: the uncertainty principle). Alpha is the
worst over all v. Vectors whose entries have very different sizes may have less error, while those
of normal entries are spread evenly over the sphere.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import exp, lgamma, log, nan, pi, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import hyp2f1

from mpisim.analysis import style
from mpisim.analysis.card_bits import entropies
from mpisim.analysis.formatting import TABLES, number, rendered, table
from mpisim.compressors import Compressor, make
from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.core.schema import require
from mpisim.wire.base import Precision

SINGLE = Precision(np.dtype(np.float32), np.dtype(np.float64))
WORKERS = 64
TOGETHER = (1, 4, 16, 64)  # workers whose mean is taken
REPEATS = 5
LARGEST = 10_000_000
ROUNDINGS = 1e-12  # errors of float32 are smaller
HEAD = (
    *("d", "vectors", "bits/coordinate", "p5", "p95", "entropy", "slack"),
    *("NMSE", "+-", "scaled", "above bound", "above sphere"),
)
CHART: dict[str, list[dict[str, Any]]] = TABLES["chart"]


class Row(NamedTuple):
    """A compressor on vectors of one kind.

    bits : of each message without framing, for each coordinate, shape (workers,)
    entropy : bits of an ideal code, by what they are for, for each coordinate: `entropies`
    errors : |C(v) - v|^2 / |v|^2, shape (workers,)
    scaled : the same on average for the best multiple of C
    """

    d: int
    vectors: str
    bits: np.ndarray
    entropy: Mapping[str, float]
    errors: np.ndarray
    scaled: float

    @property
    def above_bound(self) -> float:
        """4^(b/d) times the error of the best multiple: at least 1 in the worst case."""
        return float(self.scaled * 4 ** self.bits.mean())

    @property
    def above_sphere(self) -> float:
        """The error of the best multiple over the least on average over the sphere: `sphere`.

        NaN for d = 1, where a bit leaves none.
        """
        if self.d == 1:
            return nan
        bits, least = sphere(self.d)
        b = self.bits.mean()
        inside = np.exp(np.interp(b, bits, np.log(least)))
        return float(self.scaled / inside * 4 ** max(0.0, b - bits[-1]))

    def cells(self) -> tuple[Any, ...]:
        """The cells of a table under `HEAD`; the interval has two standard errors."""
        low, high = np.quantile(self.bits, [0.05, 0.95]).tolist()
        ideal, bits = sum(self.entropy.values()), float(self.bits.mean())
        slack = f"{100 * (bits / ideal - 1):.1f}%" if ideal > 0 else "-"
        code = bits, low, high, ideal, slack
        mean = float(self.errors.mean())
        error = mean, self.spread, self.scaled, self.above_bound, self.above_sphere
        return self.d, self.vectors, *code, *error

    @property
    def spread(self) -> float:
        """Two standard errors of the mean of ``errors``."""
        return float(2 * self.errors.std(ddof=1) / len(self.errors) ** 0.5)


@cache
def sphere(d: int) -> tuple[np.ndarray, np.ndarray]:
    """(bits a coordinate, ascending; the least NMSE on average over vectors of equal length).

    A code of b bits cuts the unit sphere into 2^b cells, here of equal areas. The error of a cell
    with the mean c is 1 - |c|^2. No cell of its area has a longer mean than a cap, of angle t say:
    |c| = 1 / F and area = Gamma(d/2) sin(t)^(d-1) F / (2 sqrt(pi) Gamma((d+1)/2)), F = F(1/2,
    (d-1)/2; (d+1)/2; sin(t)^2), integrated in closed form. For d = 1 both cells are points.
    """
    if d == 1:
        return np.array([0.0, 1.0]), np.array([1.0, 1e-300])
    a, sines = (d - 1) / 2, 1 - np.linspace(0, 1, 800)[:-1] ** 4
    sines = np.concatenate([2.0 ** np.linspace(-20, -8, 200), sines[::-1]])
    F = hyp2f1(0.5, a, a + 1, sines**2)
    F[-1] = sqrt(pi) * exp(lgamma(a + 1) - lgamma(a + 0.5))
    sines, F = sines[np.isfinite(F)], F[np.isfinite(F)]
    nats = lgamma(a + 1) - lgamma(a + 0.5) + log(2 * sqrt(pi)) - 2 * a * np.log(sines) - np.log(F)
    least = -np.expm1(-2 * np.log(F))
    return np.append(0, (nats / log(2) / d)[::-1]), np.append(1, least[::-1])


VECTORS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, d: rng.standard_normal((WORKERS, d)),
    "heavy tails": lambda rng, d: rng.standard_t(2, (WORKERS, d)),
    "ones": lambda rng, d: np.ones((WORKERS, d)),
    "one large": lambda rng, d: np.tile(np.where(np.arange(d) == d // 2, 1, 1e-3), (WORKERS, 1)),
}


def bound_to(spec: Mapping[str, Any], d: int, workers: int = WORKERS) -> Compressor:
    """The compressor of a table in dimension d; `InputError` if it cannot do without a problem."""
    require(1 <= d <= LARGEST, "--d", d, f"an integer from 1 to {LARGEST}")
    compressor = make(spec).bind(d, workers, SINGLE)
    if compressor.fitted:
        try:
            compressor.compress(np.ones((1, d)), _draw(1))
        except Exception:
            line = f"card: {spec['name']!r} is fitted to a problem, and a card has none"
            raise InputError(line) from None
    return compressor


def measure(compressor: Compressor, kind: str, given: np.ndarray | None = None) -> Row:
    """What ``compressor`` does to `WORKERS` vectors of a ``kind`` of `VECTORS`, or those given."""
    v = VECTORS[kind](np.random.default_rng(0), compressor.d) if given is None else given
    message = compressor.compress(v, _draw(len(v)))
    c, bits = message.decoded(), message.payload_bits
    squares = (v**2).sum(axis=1)
    errors = ((c - v) ** 2).sum(axis=1) / squares
    along, size = ((c * v).sum(axis=1) / squares).mean(), ((c**2).sum(axis=1) / squares).mean()
    scaled = float(1 - along**2 / size) if size > 0 else 1.0
    each = {name: count / compressor.d for name, count in entropies(message).items()}
    return Row(compressor.d, kind, bits / compressor.d, each, errors, max(0.0, scaled))


def vectors_of(path: Path) -> np.ndarray:
    """The vectors in a .npy file, shape (workers, d), none of them zero; `InputError` if wrong."""
    try:
        v = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--vectors: {str(path)!r} cannot be read: {error}") from None
    shaped = isinstance(v, np.ndarray) and v.ndim == 2 and v.dtype.kind == "f" and len(v) > 1
    allowed = "an array of floats, shape (vectors, d), at least two vectors, finite and not zero"
    good = shaped and np.isfinite(v).all() and v.any(axis=1).all()
    require(good, "--vectors", str(path), allowed)
    return v.astype(np.float64)


def least_dimension(spec: Mapping[str, Any], d: int) -> int | None:
    """The least power of two, up to d, where messages are shorter than 32 bits a coordinate.

    Normal vectors, framing included; None where there is none.
    """
    for size in (1 << t for t in range(d.bit_length())):
        try:
            compressor = bound_to(spec, size)
        except InputError:  # k > d, say
            continue
        v = VECTORS["normal"](np.random.default_rng(0), size)
        packed = compressor.compress(v, _draw(len(v))).encode()
        unknown = SINGLE.bits if compressor.form(_draw(1)).sizes is None else 0
        if 8 * packed.sizes.mean() + unknown < SINGLE.bits * size:
            return size
    return None


def _draw(workers: int, round: int = 0) -> Draw:
    return Draw(Streams(1), "up", round, 0, workers)


def mean_errors(spec: Mapping[str, Any], d: int) -> list[float]:
    """|mean of C_i(v) - v|^2 / |v|^2 on average, of each number of workers in `TOGETHER`."""
    v, errors = np.random.default_rng(2).standard_normal(d), []
    for n in TOGETHER:
        compressor, rows = bound_to(spec, d, n), np.tile(v, (n, 1))
        sums = [compressor.compress(rows, _draw(n, t)).total() for t in range(4 * REPEATS)]
        errors.append(float(np.mean([((c / n - v) ** 2).sum() for c in sums]) / (v @ v)))
    return errors


def _time_line(compressor: Compressor, bits: float) -> str:
    """The median times, and on which links they are less than what is saved of 32 bits."""
    v = np.random.default_rng(3).standard_normal((1, compressor.d))
    draw, times = _draw(1), np.empty((REPEATS + 1, 2))
    for row in times:
        start = time.perf_counter()
        packed = compressor.compress(v, draw).encode()
        middle = time.perf_counter()
        compressor.form(draw).decode(packed.data, packed.sizes).decoded()
        row[:] = middle - start, time.perf_counter() - middle
    encode, decode = np.median(times[1:], axis=0).tolist()  # the first call may compile
    each = " and ".join(f"{1e9 * t / compressor.d:.3g} ns" for t in (encode, decode))
    rate = compressor.d * (SINGLE.bits - bits) / (encode + decode) / 1e6
    pays = f"pays on links below {rate:.4g} Mbit/s" if rate > 0 else "sends no less than 32 bits"
    return f"  encode and decode: {each} a coordinate; {pays}"


def page(text: str, picture: bytes) -> str:
    """A card and its chart (PNG) as an HTML page of its own."""
    title, _, rest = text.partition("\n")
    source = base64.b64encode(picture).decode()
    return rendered("card.html", title=title, rest=rest, source=source)


def lines(
    spec: Mapping[str, Any], dimensions: Sequence[int], given: np.ndarray | None = None
) -> Iterator[str]:
    """The card of a compressor as text; also on the vectors ``given``, in their dimension."""
    keys = [f"{key} = {value}" for key, value in spec.items() if key != "name"]
    title = f"{spec['name']} ({', '.join(keys)})" if keys else str(spec["name"])
    yield f"{title}: {WORKERS} workers, float32 on the wire"
    compressors = [bound_to(spec, d) for d in dimensions]
    rows = [measure(compressor, kind) for compressor in compressors for kind in VECTORS]
    if given is not None:
        rows.append(measure(bound_to(spec, given.shape[1], len(given)), "given", given))
    cells = [[number(cell, 4) for cell in row.cells()] for row in rows]
    yield table(HEAD, cells, right=range(2, 12))
    yield str(TABLES["card"]["legend"])
    for compressor in compressors:
        yield f"\nd = {compressor.d}"
        here = [row for row in rows if row.d == compressor.d]
        shares = ", ".join(f"{name} {number(bits, 4)}" for name, bits in here[0].entropy.items())
        yield f"  entropy of normal vectors, bits a coordinate: {shares}"
        row = max(here, key=lambda row: row.errors.mean())
        worst, spread = row.errors.mean(), f"+- {row.spread:.1g} measured ({row.vectors})"
        if compressor.omega is not None:
            yield f"  omega: {number(compressor.omega)} claimed, {worst:.4g} {spread}"
        if compressor.alpha is not None:
            yield f"  alpha: {number(compressor.alpha)} claimed, {1 - worst:.4g} {spread}"
        errors = mean_errors(spec, compressor.d)
        if (A := compressor.A) is not None and (B := compressor.B) is not None:
            constants = f"A: {number(A)}, B: {number(B)}, A - B: {number(A - B)} claimed"
            yield f"  {constants} of {WORKERS} workers, {errors[-1]:.4g} measured"
        pairs = [f"{e:.4g} (n = {n})" for n, e in zip(TOGETHER, errors, strict=True)]
        power = np.polyfit(np.log(TOGETHER), np.log(np.maximum(errors, ROUNDINGS)), 1)[0]
        slope = f"; slope {power:.2f}" * (min(errors) >= ROUNDINGS)  # else some are roundings alone
        yield f"  NMSE of the mean of n workers: {', '.join(pairs)}{slope}"
        yield _time_line(compressor, max(row.bits.mean() for row in here))
    least = least_dimension(spec, max(dimensions))
    if least is not None:
        yield f"messages are shorter than 32 bits a coordinate from d = {least} on (powers of two)"


def points_of(
    tables: Sequence[Mapping[str, Any]], d: int, vectors: str
) -> list[tuple[float, float]]:
    """(bits a coordinate, NMSE of the best multiple) of each compressor."""
    rows = [measure(bound_to(one, d), vectors) for one in tables]
    return [(float(row.bits.mean()), row.scaled) for row in rows]


def chart(d: int, spec: Mapping[str, Any] | None = None, vectors: str = "normal") -> Any:
    """A figure: bits a coordinate against the NMSE of `CHART` and of ``spec``, and the bound."""
    with style.styled():
        figure, axes = style.new_figure((style.WIDE, 5.0))
        this = f"{spec['name']}, this card" if spec else ""
        shown = CHART | ({this: [dict(spec)]} if spec else {})
        for place, (label, tables) in enumerate(shown.items()):
            points = points_of(tables, d, vectors)
            shape = place + place // len(style.COLOURS)  # no colour has the same marker twice
            look = style.curve(place, place // 4, shape, 1) | {"markevery": 1}
            if label == this:
                look |= {"marker": "*", "color": "black", "markersize": 14}
            axes.plot(*zip(*points, strict=True), label=label, **look)
        bits = np.geomspace(0.05, 40, 400)
        axes.plot(bits, 4.0**-bits, color=style.GREY, label="bound: NMSE = 4^(-b/d)")
        axes.plot(*sphere(d), color=style.GREY, linestyle=":", label="least on the sphere")
        axes.set(xscale="log", yscale="log", xlim=(0.05, 40), ylim=(1e-6, 2))
        axes.set(xlabel="bits a coordinate", ylabel="NMSE of the best multiple")
        axes.set_title(f"d = {d}, {vectors} vectors")
        figure.legend(loc="outside right upper")
    return figure
