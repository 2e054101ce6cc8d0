"""Compressors of compressors: one after the other, or one for each layer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mpisim.compressors.base import Compressor, Identity, WorkerRows, compressor
from mpisim.compressors.quantization import Natural, Qsgd
from mpisim.core.errors import InputError
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.rng import Draw, Streams
from mpisim.theory.compression import FLOAT_BITS, Groups
from mpisim.wire.base import Message, pack_tensors
from mpisim.wire.composed import Composed, ComposedForm, Parts, PartsForm, Stratum
from mpisim.wire.sparse import Seeded, SeededForm


@compressor("compose", "compose", {})
class Compose(Compressor):
    """C(Q(v)) with C = ``outer`` and Q = ``inner``, drawn independently (PermK paper, Lemma 9).

    outer : a compressor whose coordinates server and workers both know: permk, block-permutation,
        permuted-subsets, randk, rand-tau, bernoulli
    inner : an unbiased one that rounds each coordinate for itself, given the norm of the whole v:
        qsgd, natural, identity; or one that keeps coordinates, independently of other workers:
        randk, rand-tau, bernoulli

    With an inner one that keeps coordinates, the message holds the values at those that both keep.
    Otherwise it holds the coordinates that the outer one keeps, as the inner one writes them; a
    worker that keeps nothing sends nothing, or a length. Only kept coordinates are rounded, which
    is equivalent because Q rounds them independently. omega = (1 + omega_C) (1 + omega_Q) - 1. With
    V = E|(1/n) sum Q_i(a_i) - (1/n) sum a_i|^2, at most (omega_Q / n) (1/n) sum |a_i|^2 because
    workers round independently,

        A = (1 + omega_Q) A_C + (1 - B_C) omega_Q / n,   B = B_C.

    This differs from the paper: the proof of Lemma 9 bounds the distance to the mean of the
    Q_i(a_i), not to the mean of the a_i, and so lacks (1 - B_C) V, which is 0 for B_C = 1: PermK
    with d >= n.
    """

    outer: Compressor
    inner: Compressor

    def check(self) -> None:
        self.outer, self.inner = outer, inner = self.bind_inner("outer"), self.bind_inner("inner")
        if not outer.seeded:
            raise InputError(
                f"compressor.outer.name: {outer.name!r} is not allowed; it must keep coordinates"
                " that server and workers both know, as permk and randk do"
            )
        self._sparse = inner.seeded and not inner.correlated and inner.omega is not None
        if not (self._sparse or isinstance(inner, Qsgd | Natural | Identity)):
            raise InputError(
                f"compressor.inner.name: {inner.name!r} is not allowed; it must be qsgd, natural,"
                " identity, or unbiased with coordinates of its part, as randk and rand-tau"
            )
        self.correlated, self.fitted = outer.correlated, outer.fitted
        self.on_device = self._sparse  # coordinates are known before v is looked at
        self.random_length |= self._sparse  # so many are kept by both
        self._sized = inner.form(Draw(Streams(0), "", 0, 0, 0)).sizes is not None
        self._inner_of: dict[int, Compressor] = {}

    def prepare(self, star: Uplink, problem: Objective) -> None:
        self.outer.prepare(star, problem)

    def _inner(self, k: int) -> Compressor:
        """``inner`` for vectors of k kept coordinates."""
        if k not in self._inner_of:
            self._inner_of[k] = self.inner.bind(k, self.n, self.precision)
        return self._inner_of[k]

    def form(self, draw: Draw) -> ComposedForm | SeededForm:
        return self._both(draw) if self._sparse else self._rounded(draw)

    def _both(self, draw: Draw) -> SeededForm:
        """The coordinates that both keep."""
        inner = self.inner.form(dataclasses.replace(draw, purpose=f"{draw.purpose}/inner"))
        return self.outer.form(draw).intersection(inner)  # type: ignore[attr-defined]

    def _rounded(self, draw: Draw) -> ComposedForm:
        kept = self.outer.form(draw)
        counts = kept.counts  # type: ignore[attr-defined]
        strata = []
        for k in np.unique(counts[counts > 0]).tolist():
            rows = np.flatnonzero(counts == k)
            strata.append(Stratum(rows, self._inner(k).form(_part_of(draw, rows, k))))
        return ComposedForm(kept, tuple(strata), self._sized)  # type: ignore[arg-type]

    def compress(self, v: np.ndarray, draw: Draw) -> Composed | Seeded:
        if self._sparse:
            return self._both(draw).take(v)
        form = self._rounded(draw)
        messages: list[Message] = []
        for stratum in form.strata:
            rows, k = stratum.rows, stratum.form.d
            at = form.kept.indices[form.places(stratum)]
            inner, part, kept = self._inner(k), _part_of(draw, rows, k), v[rows[:, None], at]
            if isinstance(self.inner, Qsgd):  # its norm is that of all coordinates
                norms = self.inner.norms(v[rows])
                messages.append(cast(Qsgd, inner).compress_with(norms, kept, part))
            else:
                messages.append(inner.compress(kept, part))
        return Composed(form, tuple(messages))

    @property
    def omega(self) -> float | None:
        outer, inner = self.outer.omega, self.inner.omega
        return None if outer is None or inner is None else (1 + outer) * (1 + inner) - 1

    @property
    def A(self) -> float | None:
        outer, beta, inner = self.outer.A, self.outer.B, self.inner.omega
        if outer is None or beta is None or inner is None:
            return None
        return (1 + inner) * outer + (1 - beta) * inner / self.n

    @property
    def B(self) -> float | None:
        return self.outer.B

    @property
    def by_group(self) -> Groups | None:
        groups, inner = self.outer.by_group, self.inner.omega
        if groups is None or inner is None:
            return None
        A = (1 + inner) * groups.A + (1 - groups.B) * inner / groups.sizes
        return dataclasses.replace(groups, A=A)

    @property
    def density(self) -> float:
        return self.outer.density * self.inner.density / self.d

    def paper_bits(self, message: Message) -> np.ndarray:
        """What the inner compressor's paper charges for a vector of the kept coordinates."""
        if isinstance(message, Seeded):
            return FLOAT_BITS * message.form.counts
        assert isinstance(message, Composed)
        each = zip(message.form.strata, message.messages, strict=True)
        bits = [self._inner(stratum.form.d).paper_bits(part) for stratum, part in each]
        return message.form.by_worker(bits)


def _part_of(draw: Draw, rows: np.ndarray, k: int) -> Draw:
    """Q's draw for those workers of ``draw`` that keep k coordinates."""
    numbers = draw.first + draw.members[rows]
    return dataclasses.replace(draw, purpose=f"{draw.purpose}/inner/{k}", clients=numbers)


def _of_layers(extreme: Callable, constant: str) -> Any:
    """The property that is the largest or the least of the layers', None if there is a None."""

    def of_all(self: Layerwise) -> float | None:
        values = [getattr(layer, constant) for layer in self.layers]
        return None if None in values else extreme(values)

    return property(of_all)


@compressor("layerwise", "layerwise", {})
class Layerwise(Compressor):
    """C(v) = (C^1(v^1), ..., C^L(v^L)) for the layers v^l of v, each drawn independently.

    inner : the compressor of each layer, bound to its length: a share of d is one of the layer's

    The layers are the problem's (`Problem.layers`); a problem without has one. The bounds of all
    layers hold together: omega, A and 1 - alpha are the largest of the layers', B the least, zeta
    is the sum. Paper bits are the sum of the layers'.
    """

    inner: Compressor
    omega, A = _of_layers(max, "omega"), _of_layers(max, "A")
    alpha, B = _of_layers(min, "alpha"), _of_layers(min, "B")

    def check(self) -> None:
        self._bind_layers((self.d,))

    def prepare(self, star: Uplink, problem: Objective) -> None:
        self._bind_layers(problem.layers)

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        raise InputError("compressor.inner.name: 'layerwise' is not allowed inside 'smooth', where"
                         " vectors have no layers")  # fmt: skip

    def _bind_layers(self, layers: tuple[int, ...]) -> None:
        self.layers = [self.bind_inner("inner", d) for d in layers]
        first = self.layers[0]
        if first.fitted:
            raise InputError(
                f"compressor.inner.name: {first.name!r} is not allowed; it is fitted to the problem"
            )
        self.correlated, self.on_device = first.correlated, first.on_device

    def _draws(self, draw: Draw) -> list[Draw]:
        purposes = (f"{draw.purpose}/layer {layer}" for layer in range(len(self.layers)))
        return [dataclasses.replace(draw, purpose=purpose) for purpose in purposes]

    def form(self, draw: Draw) -> PartsForm:
        each = zip(self.layers, self._draws(draw), strict=True)
        forms = tuple(layer.form(part) for layer, part in each)
        return PartsForm(draw.workers, self.precision, forms)

    def compress(self, v: np.ndarray, draw: Draw) -> Message:
        parts, start = [], 0
        for layer, part in zip(self.layers, self._draws(draw), strict=True):
            parts.append(layer.compress(v[:, start : start + layer.d], part))
            start += layer.d
        form = PartsForm(draw.workers, self.precision, tuple(part.form for part in parts))
        if isinstance(v, np.ndarray):
            return Parts(form, tuple(parts))
        return pack_tensors(form, parts, v.device)

    @property
    def density(self) -> float:
        return sum(layer.density for layer in self.layers)

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Parts)
        each = zip(self.layers, message.parts, strict=True)
        return np.array([layer.paper_bits(part) for layer, part in each]).sum(axis=0)
