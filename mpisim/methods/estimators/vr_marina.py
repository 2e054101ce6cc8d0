"""VR-MARINA: MARINA with minibatch differences, for finite sums and online."""

from __future__ import annotations

from math import inf

import numpy as np

from mpisim.core.state import AtServer, Shared
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability
from mpisim.methods.estimators.batches import First, batch_size, first_batch_size
from mpisim.theory import stepsizes, tables
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee


@estimator("vr-marina")
class VRMarina(Estimator):
    """VR-MARINA, finite-sum case: MARINA, Algorithm 2 (Gorbunov et al., 2021).

    batch : b', a number of samples or a share of m; each worker draws independently, without
        replacement, so that b' = m is MARINA.
    p : probability of a round with full gradients; "theory" is min(zeta_Q / d, b' / (m + b'))
        (Corollary 3.1).
    """

    batch: int | float
    p: float | Theory = "theory"

    x = Shared("x^k")
    g = AtServer("g^k")

    def check(self) -> None:
        self.b = batch_size(self.batch, self.oracle.samples, "batch")
        zeta, d = self.compressor.density, self.compressor.d
        theory = stepsizes.vr_marina_probability(zeta, d, self.b, self.full_size())
        self.p = probability(self.p, theory)

    def full_size(self) -> int:
        """Samples in the gradient of a round with c_k = 1."""
        return self.oracle.samples

    def full(self, x: np.ndarray) -> np.ndarray:
        """Line 8, c_k = 1: grad f_i(x), shape (m, d)."""
        return self.oracle.gradients(x)

    def first(self, x: np.ndarray) -> np.ndarray:
        """The gradients of g^0, shape (m, d)."""
        return self.full(x)

    def minibatch(self) -> np.ndarray:
        """I'_{i,k}: sample numbers, shape (m, b')."""
        return self.star.draw("batch").batches(self.oracle.rows, self.b)

    def start(self, x: np.ndarray) -> np.ndarray:  # line 2
        self.x = x
        self.g = self.star.mean(self.star.dense(self.first(x)))
        return self.star.broadcast(self.g)

    def estimate(self, x: np.ndarray) -> np.ndarray:  # lines 4-10
        old, self.x = self.x, x
        if self.star.coin(float(self.p)):  # c_k = 1
            self.g = self.star.mean(self.star.dense(self.full(x)))
        else:  # g^{k+1} = g^k + (1/n) sum_i Q((1/b') sum_j grad f_ij(x^{k+1}) - grad f_ij(x^k))
            change_i = self.oracle.batch_changes(x, old, self.minibatch())
            self.g = self.g + self.star.mean(self.compress(change_i))
        return self.star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.vr_marina(setting, float(self.p), self.noise_batch())

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [self.guarantee(case)] if case.setting.independent else []

    def guarantee(self, case: Case) -> Guarantee:
        """The row, for independent unbiased compressors."""
        return tables.vr_marina(case, float(self.p), self.noise_batch())

    def batch_sizes(self) -> dict[str, int]:
        return {"batch": self.b}

    def noise_batch(self) -> float:
        """b' in the variance of the minibatches: infinite if they are whole shards."""
        samples = self.star.sum_over_workers(self.oracle.rows[:, None].astype(float))[0]
        return inf if samples == self.star.n * self.b else self.b


@estimator("vr-marina-online")
class OnlineVRMarina(VRMarina):
    """VR-MARINA, online case: MARINA, Section 3.2 and Algorithm 3 (Gorbunov et al., 2021).

    The distribution D_i is the worker's samples, drawn with replacement in every round.

    batch : b', of the compressed differences.
    big_batch : b, of the rounds with c_k = 1.
    first_batch : of g^0; b unless given. "published" is max(b, omega b'), as in the published code
        of DASHA, which has this method for comparison.
    p : "theory" is min(zeta_Q / d, b' / (b + b')) (Corollary 3.2).
    """

    big_batch: int | float = 0.5
    first_batch: First = None

    def check(self) -> None:
        self.big_b = batch_size(self.big_batch, self.oracle.samples, "big_batch")
        super().check()
        self.first_b = first_batch_size(self, self.first_batch, self.b, self.big_b)
        self.first_batch = self.first_batch and self.first_b

    def full_size(self) -> int:
        return self.big_b

    def full(self, x: np.ndarray) -> np.ndarray:
        """(1/b) sum over I_{i,k} of grad f_xi(x), shape (m, d)."""
        return self.mean_gradients(x, self.big_b)

    def first(self, x: np.ndarray) -> np.ndarray:
        return self.mean_gradients(x, self.first_b)

    def mean_gradients(self, x: np.ndarray, size: int) -> np.ndarray:
        """Of ``size`` samples drawn from D_i, shape (m, d)."""
        batch = self.star.draw("big batch").samples(self.oracle.rows, size)
        return self.oracle.batch_gradients(x, batch)

    def batch_sizes(self) -> dict[str, int]:
        return {"batch": self.b, "big_batch": self.big_b}

    def guarantee(self, case: Case) -> Guarantee:
        return tables.online(case, float(self.p))

    def noise_batch(self) -> float:
        return self.b

    def minibatch(self) -> np.ndarray:
        """I'_{i,k}: sample numbers, drawn independently from D_i, shape (m, b')."""
        return self.star.draw("batch").samples(self.oracle.rows, self.b)
