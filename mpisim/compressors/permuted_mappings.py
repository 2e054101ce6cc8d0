"""Given linear mappings, dealt by a shared permutation (PermK paper, Definition 8)."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.deal import shuffle
from mpisim.core.errors import InputError
from mpisim.core.numerics.eigen import eigvalsh
from mpisim.core.numerics.sums import product
from mpisim.core.rng import Draw
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message
from mpisim.wire.values import SynthesisForm, Synthesized

Matrix = list[list[float]]
ROUNDING = 1e-6  # by which the mean of the mappings may miss the identity: decimals in a file


@compressor("permuted-mappings", "permuted mappings", {})
class PermutedMappings(Compressor):
    """C_i = Q_{pi_i}, with n given linear mappings Q_j and a permutation pi that all workers share.

    analysis : n lists of rows r; a worker with Q_j sends the numbers <r, v>
    synthesis : as many rows s each; receivers add the numbers times the rows s. The rows of
        ``analysis`` unless given. So Q_j(v) = sum_t s_jt <r_jt, v>.

    (1/n) sum Q_j = I is required: Condition 3. With S = sum Q_j^T Q_j, E|C_i(x)|^2 = x^T S x / n,
    so the least omega of Condition 1 is lambda_max(S) / n - 1. As in the proof of Lemma 11,

        E|(1/n) sum C_i(a_i) - abar|^2 = (1/n) sum_i (a_i - abar)^T E (a_i - abar),
        E = (S / n - I) / (n - 1),

    so that A = B = lambda_max(E) = omega / (n - 1). Condition 2, S = theta I, is not needed. With
    it this is Lemma 11 with the least omega, theta / n - 1, and an equality.
    """

    analysis: list[Matrix]
    synthesis: list[Matrix] | None = None
    correlated = True

    def check(self) -> None:
        first, n, d = self._rows("analysis", self.analysis), self.n, self.d
        second = first if self.synthesis is None else self._rows("synthesis", self.synthesis)
        if [len(rows) for rows in first] != [len(rows) for rows in second]:
            raise InputError(
                "compressor.synthesis: must have as many rows for each mapping as"
                " compressor.analysis"
            )
        every = [product(s.T.copy(), r) for r, s in zip(first, second, strict=True)]
        if np.abs(sum(every) / n - np.eye(d)).max() > ROUNDING:
            raise InputError(
                "compressor.analysis: the mean of the mappings is not the identity"
                " (PermK paper, Definition 8, Condition 3)"
            )
        S = sum(product(q.T.copy(), q) for q in every)
        self._omega = max(0.0, float(eigvalsh(S)[-1]) / n - 1)
        arithmetic = self.precision.arithmetic
        self._ptr = np.cumsum([0, *map(len, first)])
        self.random_length = len(set(map(len, first))) > 1
        self._analysis = np.concatenate(first).astype(arithmetic)
        self._synthesis = np.concatenate(second).astype(arithmetic)

    def _rows(self, key: str, given: list[Matrix]) -> list[np.ndarray]:
        """The rows of each mapping, shape (rows, d), float64; `InputError` unless they fit."""
        n, d = self.n, self.d
        if len(given) != n:
            raise InputError(f"compressor.{key}: has {len(given)} lists for n = {n} workers")
        if any(len(row) != d for rows in given for row in rows):
            raise InputError(f"compressor.{key}: each row must have d = {d} numbers")
        arrays = [np.array(rows, np.float64).reshape(len(rows), d) for rows in given]
        if not all(np.isfinite(rows).all() for rows in arrays):
            raise InputError(f"compressor.{key}: numbers must be finite")
        return arrays

    def form(self, draw: Draw) -> SynthesisForm:
        again = draw.repetitions
        every = np.tile(np.arange(self.n), (1 + again.max(initial=0), 1))
        for repetition, row in enumerate(every):
            shuffle(draw.shared_words(self.n, repetition), row)
        which = every[again, draw.first + draw.members]
        return SynthesisForm(
            self.d, draw.workers, self.precision, self._ptr, self._synthesis, which
        )

    def compress(self, v: np.ndarray, draw: Draw) -> Synthesized:
        form = self.form(draw)
        values = np.empty(form.counts.sum(), self.precision.arithmetic)
        _coefficients(np.ascontiguousarray(v), self._ptr, self._analysis, form.which, values)
        with np.errstate(over="ignore"):
            return Synthesized(form, values.astype(self.precision.wire, copy=False))

    @property
    def omega(self) -> float:
        return self._omega

    @property
    def A(self) -> float:
        return self._omega / (self.n - 1) if self.n > 1 else 0.0

    @property
    def B(self) -> float:
        return self.A

    @property
    def density(self) -> float:
        """The expected number of values sent; C(v) itself may have no zeros."""
        return float(self._ptr[-1]) / self.n

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Synthesized)
        return FLOAT_BITS * message.form.counts


@njit(cache=True)
def _coefficients(v, ptr, rows, which, values):
    """<row, v_i> for the rows of worker i's map, each sum in the order of the coordinates."""
    t = 0
    for i in range(which.size):
        for r in range(ptr[which[i]], ptr[which[i] + 1]):
            total = rows[r, 0] * v[i, 0]
            for j in range(1, v.shape[1]):
                total += rows[r, j] * v[i, j]
            values[t] = total
            t += 1
