"""PP-MARINA: MARINA with only some clients in a compressed round."""

from __future__ import annotations

import numpy as np

from mpisim.core.schema import require
from mpisim.core.state import Shared
from mpisim.methods.estimators.base import Theory, estimator
from mpisim.methods.estimators.marina import MarinaFamily
from mpisim.theory import stepsizes, tables
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee


@estimator("pp-marina")
class PPMarina(MarinaFamily):
    """PP-MARINA, Algorithm 4 (Gorbunov et al., 2021, Section 4).

    participants : r, clients drawn in a compressed round, i.i.d. uniformly with replacement. A
        client drawn twice sends two messages, compressed independently; the others send nothing.
    p : "theory" is zeta_Q r / (d n) (Corollary 4.1).

    A drawn client may not have taken part before, so it computes both gradients of the difference:
    2 m sample gradients, also if it is drawn more than once.
    """

    p: float | Theory = "theory"
    participants: int = 1

    x = Shared("x^k")

    def check(self) -> None:
        r, n = self.participants, self.star.n
        require(1 <= r <= n, "method.participants", r, f"an integer from 1 to n = {n}")
        super().check()

    def theory_p(self) -> float:
        zeta, d = self.compressor.density, self.compressor.d
        return stepsizes.pp_marina_probability(zeta, d, self.participants, self.star.n)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return super().start(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        old, self.x, star = self.x, x, self.star
        if star.coin(float(self.p)):  # c_k = 1
            self.g = star.mean(star.dense(self.oracle.lazy_gradients(x)))
        else:  # g^{k+1} = g^k + (1/r) sum over I'_k of Q(grad f_i(x^{k+1}) - grad f_i(x^k))
            clients = star.sample(self.participants)
            begin, end = np.searchsorted(clients, (star.first, star.first + star.m))
            mine, rows = np.unique(clients[begin:end] - star.first, return_inverse=True)
            difference = self.oracle.gradients(x, mine) - self.oracle.gradients(old, mine)
            if mine.size < rows.size:  # of a client drawn twice, computed once
                difference = difference[rows]
            upload = star.compress(self.compressor, difference, clients=clients)
            self.g = self.g + star.mean(upload)
        return star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.pp_marina(setting, float(self.p), self.participants)

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [tables.pp_marina(case, float(self.p))] if case.setting.independent else []
