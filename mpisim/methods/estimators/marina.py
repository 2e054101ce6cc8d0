"""MARINA: compressed gradient differences, and full gradients in some rounds.

PP-MARINA has only some clients in a compressed round, VR-MARINA minibatch differences.
"""

from __future__ import annotations

from math import inf

import numpy as np

from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.estimators.base import Theory, estimator, probability
from mpisim.methods.estimators.batches import First, Minibatches, Participation
from mpisim.theory import stepsizes, tables
from mpisim.theory.setting import MarinaTheorem, Setting, Step
from mpisim.theory.tables import Case, Guarantee


class MarinaFamily(Participation):
    """What MARINA and PP-MARINA share: p, and g^0 = grad f(x^0)."""

    p: float | Theory
    unbiased = True

    grad = PerWorker("grad f_i(x^k)")
    g = AtServer("g^k")

    def check(self) -> None:
        self.p = probability(self.p, self.theory_p())
        super().check()

    def theory_p(self) -> float:
        """p by the corollary."""
        return stepsizes.marina_probability(self.compressor.density, self.compressor.d)

    def start(self, x: np.ndarray) -> np.ndarray:  # line 2: g^0 = grad f(x^0)
        self.grad = self.oracle.lazy_gradients(x)
        self.g = self.star.mean(self.star.dense(self.grad))
        return self.star.broadcast(self.g)


@estimator("marina")
class Marina(MarinaFamily):
    """MARINA, Algorithm 1 (Gorbunov et al., 2021; PermK paper, Algorithm 1).

    p : probability of a round with full gradients; "theory" is zeta_Q / d (Corollary 2.1).
    theorem : of a "theory" step: "marina", with one L for f and the f_i, or "permk", the PermK
        paper's with L_-, L_+ and L_±; always the latter for correlated compressors.

    This differs from the published code: workers draw independently, and they send the compressed
    difference, which the server adds to its g^k, not the sum of both.
    """

    p: float | Theory = "theory"
    theorem: MarinaTheorem = "marina"
    permk_tables = in_ensembles = True

    def check(self) -> None:
        super().check()
        if self.compressor.correlated:
            self.theorem = "permk"

    def estimate(self, x: np.ndarray) -> np.ndarray:  # lines 4-10
        old, self.grad = self.grad, self.oracle.lazy_gradients(x)
        if self.star.coin(float(self.p)):  # c_k = 1
            self.g = self.star.mean(self.star.dense(self.grad))
        else:  # g^{k+1} = g^k + (1/n) sum_i Q(grad f_i(x^{k+1}) - grad f_i(x^k))
            self.g = self.g + self.star.mean(self.compress(self.grad - old))
        return self.star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.marina(setting, float(self.p), self.theorem)

    def guarantees(self, case: Case) -> list[Guarantee]:
        if case.setting.omega is None:
            return []
        return [tables.marina(case, float(self.p), self.theorem)]


@estimator("pp-marina")
class PPMarina(MarinaFamily):
    """PP-MARINA, Algorithm 4 (Gorbunov et al., 2021, Section 4).

    participants : r, clients drawn in a compressed round, i.i.d. uniformly with replacement. A
        client drawn twice sends two messages, compressed independently; the others send nothing.
    p : "theory" is zeta_Q r / (d n) (Corollary 4.1).

    A drawn client may not have taken part before, so it computes both gradients of the difference:
    2 m sample gradients, also if it is drawn more than once. On a simulated fleet the means are of
    those whose messages arrive, also with c_k = 1, where g^k then is no longer exact.
    """

    p: float | Theory = "theory"
    participants: int = 1
    partial = replaced = True

    x = Shared("x^k")

    def check(self) -> None:
        self.require_participants(self.participants)
        super().check()

    def theory_p(self) -> float:
        zeta, d = self.compressor.density, self.compressor.d
        return stepsizes.pp_marina_probability(zeta, d, self.participants, self.star.n)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        self.arrived(None, 1, dense=True)
        return super().start(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        old, self.x, star = self.x, x, self.star
        if star.coin(float(self.p)):  # c_k = 1
            clients = self.clients_of(self.arrived(None, 1, dense=True))
            if clients.S is None:
                self.g = star.mean(star.dense(self.oracle.lazy_gradients(x)))
            elif clients.S.size:
                g_i = self.oracle.gradients(x, clients.local)
                self.g = star.mean(star.dense(g_i, clients.S))
        else:  # g^{k+1} = g^k + (1/r) sum over I'_k of Q(grad f_i(x^{k+1}) - grad f_i(x^k))
            clients = self.clients_of(self.arrived(star.sample(self.participants), 2))
            local = np.asarray(clients.local)
            drawn, rows = np.unique(local, return_inverse=True)
            lazy = self.oracle.lazy_gradients
            difference = lazy(x, drawn) - lazy(old, drawn)
            if drawn.size < rows.size:  # of a client drawn twice, computed once
                difference = difference[rows]
            upload = star.compress(self.compressor, difference, clients=clients.S)
            self.g = self.g + star.mean(upload)
        return star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.pp_marina(setting, float(self.p), self.participants)

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [tables.pp_marina(case, float(self.p))] if case.setting.independent else []


@estimator("vr-marina")
class VRMarina(Minibatches):
    """VR-MARINA, finite-sum case: MARINA, Algorithm 2 (Gorbunov et al., 2021).

    batch : b', a number of samples or a share of m; each worker draws independently, without
        replacement, so that b' = m is MARINA.
    p : probability of a round with full gradients; "theory" is min(zeta_Q / d, b' / (m + b'))
        (Corollary 3.1).
    """

    batch: int | float
    p: float | Theory = "theory"
    unbiased = True

    x = Shared("x^k")
    g = AtServer("g^k")

    def check(self) -> None:
        self.b = self.batch_size("batch")
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
        row = tables.vr_marina
        return [row(case, float(self.p), self.noise_batch())] if case.setting.independent else []

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
        self.big_b = self.batch_size("big_batch")
        super().check()
        self.first_b = self.first_batch_size(self.first_batch, self.b, self.big_b)
        self.first_batch = self.first_batch and self.first_b

    def full_size(self) -> int:
        return self.big_b

    def full(self, x: np.ndarray) -> np.ndarray:
        """(1/b) sum over I_{i,k} of grad f_xi(x), shape (m, d)."""
        return self.sampled_gradients(x, self.big_b)

    def first(self, x: np.ndarray) -> np.ndarray:
        return self.sampled_gradients(x, self.first_b)

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [tables.online(case, float(self.p))] if case.setting.independent else []

    def noise_batch(self) -> float:
        return self.b

    def minibatch(self) -> np.ndarray:
        """I'_{i,k}: sample numbers, drawn independently from D_i, shape (m, b')."""
        return self.star.draw("batch").samples(self.oracle.rows, self.b)
