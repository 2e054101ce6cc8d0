"""The constants of a compressor, as the theorems see it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from mpisim.core.numerics.eigen import eigvalsh

FLOAT_BITS = 32  # what the papers charge for one value, whatever the wire precision


class CompressorConstants:
    """Constants of C_1, ..., C_n: R^d -> R^d; a compressor overrides those it knows."""

    name: ClassVar[str]
    d: int
    n: int
    correlated: bool = False  # do the workers' draws depend on each other?

    @property
    def omega(self) -> float | None:
        """E[C(v)] = v and E|C(v) - v|^2 <= omega |v|^2, or None if C is biased."""
        return None

    @property
    def shift_omega(self) -> float | None:
        """omega in the norm in which DIANA learns its shifts; `smooth` has another norm."""
        return self.omega

    @property
    def alpha(self) -> float | None:
        """E|C(v) - v|^2 <= (1 - alpha) |v|^2, or None if C is not contractive.

        An unbiased C with omega < 1 is contractive, with alpha = 1 - omega.
        """
        return 1 - self.omega if self.omega is not None and self.omega < 1 else None

    @property
    def A(self) -> float | None:
        """A of the AB inequality (PermK paper, Assumption 4), or None if C is biased:

        E|(1/n) sum C_i(a_i) - (1/n) sum a_i|^2 <= A (1/n) sum |a_i|^2 - B |(1/n) sum a_i|^2.

        omega / n for workers that draw independently (Lemma 1), omega for others, by convexity.
        """
        if self.omega is None:
            return None
        return self.omega if self.correlated else self.omega / self.n

    @property
    def B(self) -> float | None:
        """B of the AB inequality: 0 unless the compressor knows better."""
        return 0.0 if self.omega is not None else None

    @property
    def by_group(self) -> Groups | None:
        """A and B inside groups of workers that draw independently, or None for one group."""
        return None

    @property
    def density(self) -> float:
        """zeta: a bound on the expected number of non-zeros of C(v) (MARINA, Def. 1.1)."""
        return float(self.d)

    @property
    def cal_L_max(self) -> float | None:
        """max_i cal-L_i of SAQ, the smoothness-aware quantization paper; None: omega max_i L_i."""
        return None

    def cal_L_i(self, L_i: np.ndarray) -> np.ndarray:
        """cal-L(C_i, L_i) of this rank's workers, shape (m,); without matrices omega L_i.

        L_i : their smoothness constants, shape (m,); C must be unbiased
        """
        assert self.omega is not None
        return self.omega * L_i

    def dual_squares(self, v: np.ndarray, L_i: np.ndarray) -> np.ndarray:
        """|v_i|^2 in the norm of L_i^†, shape (m,); without matrices |v_i|^2 / L_i.

        v : shape (m, d), of this rank's workers; L_i : as in `cal_L_i`
        """
        return (v.astype(np.float64) ** 2).sum(axis=1) / L_i

    def cal_L(self, matrix: np.ndarray, worker: int) -> float | None:
        """cal-L(C_i, L_i), or a bound, for a worker of this rank (numbered over all ranks).

        E|C_i(x) - x|_L^2 <= cal-L |x|^2; ``matrix`` is L, shape (d, d). By default
        omega lambda_max(L), or None if C is biased.
        """
        if self.omega is None:
            return None
        return self.omega * max(0.0, float(eigvalsh(matrix)[-1]))


@dataclasses.dataclass(frozen=True)
class Groups:
    """A partition of the workers into groups that compress independently (PermK paper, App. M).

    label : array, shape (n,), int64
        The group of each worker, 0 to g - 1.
    A, B : array, shape (g,)
        A_{G_k} and B_{G_k}: Assumption 6.
    """

    label: np.ndarray
    A: np.ndarray
    B: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """|G_k|, shape (g,), int64."""
        return np.bincount(self.label)

    @property
    def joint_A(self) -> float:
        """An A for all workers: max_k A_{G_k} |G_k| / n, by Lemma 17."""
        return float((self.A * self.sizes).max()) / self.label.size

    @property
    def joint_B(self) -> float:
        """A B for all workers: 1 / sum_k (1 / B_{G_k}), by Lemma 17 and Cauchy-Schwarz:

        |sum_k w_k a_k|^2 <= (sum_k 1 / B_k) (sum_k B_k w_k^2 |a_k|^2), with w_k = |G_k| / n.
        """
        return float(1 / (1 / self.B).sum()) if (self.B > 0).all() else 0.0


def input_variance(n: int, copies: int) -> float:
    """A = B = (n - q) / ((n - 1) q) if q = ``copies`` of n workers keep each coordinate.

    A single worker keeps all without error: 0, where the formula is 0/0 (and Theorem 1 has 1).
    """
    return (n - copies) / ((n - 1) * copies) if n > 1 else 0.0
