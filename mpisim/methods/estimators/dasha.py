"""DASHA: compressed differences that also correct what the server knows of each worker."""

from __future__ import annotations

import dataclasses
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from mpisim.comm.star import Upload
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.estimators.base import Theory, estimator, probability, unbiased
from mpisim.methods.estimators.batches import First, Participation
from mpisim.theory import dasha
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee


@estimator("dasha")
class Dasha(Participation):
    """DASHA (Tyurin and Richtarik, 2023).

    h_i^{t+1} = grad f_i(x^{t+1})
    m_i^{t+1} = C_i(h_i^{t+1} - h_i^t - a (g_i^t - h_i^t))
    g_i^{t+1} = g_i^t + m_i^{t+1}
    g^{t+1}   = g^t + (1/n) sum_i m_i^{t+1}

    a : momentum; "theory" is 1 / (2 omega + 1).
    On a simulated fleet it is DASHA-PP, by its published code, with p_a = availability
    (1 - dropout) and b = p_a / (2 - p_a). Those whose messages arrive have

    k_i       = grad f_i(x^{t+1}) - grad f_i(x^t) - b (h_i^t - grad f_i(x^t))
    m_i^{t+1} = C_i(k_i / p_a - a (g_i^t - h_i^t)),  h_i^{t+1} = h_i^t + k_i / p_a

    and the others keep h_i and g_i, with m_i = 0. The code's momentum is a p_a.

    start : g_i^0 = h_i^0, sent uncompressed ("dense"), or g_i^0 = 0, for which nothing is sent
        ("zero": the published code of DASHA). h_i^0 is the same in both.
    """

    a: float | Theory = "theory"
    start_: Literal["dense", "zero"] = "dense"
    unbiased = partial = True

    x = Shared("x^t")
    h_i = PerWorker("estimates of grad f_i(x^t)")
    g_i = PerWorker("what the server knows of h_i")
    g = AtServer("the mean of g_i")

    def check(self) -> None:
        if self.a == "theory":
            self.a = dasha.momentum(unbiased(self.compressor, self.compressor.omega, "a"))
        self.a = probability(self.a, 1.0, "a")
        super().check()

    def first(self, x: np.ndarray) -> np.ndarray | LazyRows:
        """h_i^0."""
        return self.oracle.gradients(x) if self.star.simulated else self.oracle.lazy_gradients(x)

    def next(self, x: np.ndarray, old: np.ndarray) -> np.ndarray | LazyRows:
        """h_i^{t+1}, at x = x^{t+1}; ``old`` is x^t."""
        return self.oracle.lazy_gradients(x)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.x, self.h_i = x, self.first(x)
        self.arrived(None, 1, dense=True, sent=self.start_ == "dense")
        if self.start_ == "dense":
            return self.send_uncompressed()
        self.g_i = self.star.zeros(*self.h_i.shape)
        self.g = self.star.zeros(len(x))
        return self.g

    def estimate(self, x: np.ndarray) -> np.ndarray:
        old, self.x = self.x, x
        S = self.clients_of(self.arrived(None, 2))
        if S.S is not None:
            return self.estimate_of(S.S, S.local, x, old)
        h_i = self.next(x, old)
        m_i = self.compress(h_i - self.h_i - self.a * (self.g_i - self.h_i))
        self.h_i, self.g_i = h_i, m_i.add_to(self.g_i)
        return self.add(m_i)

    def estimate_of(self, S: np.ndarray, local: Any, x: np.ndarray, old: np.ndarray) -> np.ndarray:
        """DASHA-PP's g^{t+1}; ``local``: those of S that are of this rank."""
        p_a, star = self.p_a, self.star
        before, h_i, g_i = self.oracle.gradients(old, local), self.h_i[local], self.g_i[local]
        k_i = self.oracle.gradients(x, local) - before - p_a / (2 - p_a) * (h_i - before)
        m_i = star.compress(self.compressor, k_i / p_a - self.a * (g_i - h_i), clients=S)
        self.h_i[local], self.g_i[local] = h_i + k_i / p_a, g_i + m_i.decoded()
        self.g = self.g + len(S) / star.n * star.mean(m_i)
        return star.broadcast(self.g)

    def add(self, m_i: Upload) -> np.ndarray:
        """g^{t+1}."""
        self.g = self.g + self.star.mean(m_i)
        return self.star.broadcast(self.g)

    def send_uncompressed(self) -> np.ndarray:
        """g_i = h_i."""
        m_i = self.star.dense(self.h_i)
        self.g_i, self.g = m_i.decoded(), self.star.mean(m_i)
        return self.star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return dasha.dasha(setting, float(self.a))

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [dasha.dasha_row(case, self.theory_step(case.setting))]


@estimator("dasha-page")
class DashaPage(Dasha):
    """DASHA-PAGE, for finite sums (Tyurin and Richtarik, 2023).

    h_i^{t+1} = grad f_i(x^{t+1})  with probability p, else
                h_i^t + (1/B) sum_j (grad f_ij(x^{t+1}) - grad f_ij(x^t))

    batch : B, a number of samples or a share of m, drawn with replacement as in the published code.
    p : all workers share the coin, as there; "theory" is B / (m + B). h_i^0 = grad f_i(x^0).
    """

    batch: int | float = dataclasses.field(kw_only=True)
    p: float | Theory = "theory"
    partial = False
    letters: ClassVar[dict[str, str]] = {"batch": "B", "big_batch": "B'"}

    def check(self) -> None:
        super().check()
        self.B = B = self.batch_size("batch")
        # as in the published code, `ZeroMarinaPageMasterAlgorithm`
        self.p = probability(self.p, B / (self.oracle.samples + B))

    def first(self, x: np.ndarray) -> np.ndarray:
        return self.oracle.gradients(x)

    def next(self, x: np.ndarray, old: np.ndarray) -> np.ndarray:
        if self.star.coin(float(self.p)):
            return self.oracle.gradients(x)
        batch = self.star.draw("batch").samples(self.oracle.rows, self.B)
        return self.h_i + self.oracle.batch_changes(x, old, batch)

    def theory_step(self, setting: Setting) -> Step:
        return dasha.page(setting, float(self.a), float(self.p), self.B)

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [dasha.page_row(case, self.theory_step(case.setting), float(self.p), self.B)]


@estimator("byz-dasha-page")
class ByzDashaPage(DashaPage):
    """Byz-DASHA-PAGE: DASHA-PAGE whose server combines the g_i by the rule of ``[server]``.

    With m_i^{t+1} as in DASHA-PAGE,

        g_i^{t+1} = g_i^t + m_i^{t+1}, at the server, too
        g^{t+1}   = rule(g_1^{t+1}, ..., g_n^{t+1})

    A rule for vectors that good workers agree on is one for the g_i, not for the m_i. With the mean
    it is DASHA-PAGE. The keys are DASHA-PAGE's.
    """

    G = AtServer("all g_i, (n, d)")

    def add(self, m_i: Upload) -> np.ndarray:
        self.G = self.G + self.star.collect(m_i)
        return self.star.broadcast(self.star.combine(self.G))

    def start(self, x: np.ndarray) -> np.ndarray:
        self.G = self.star.zeros(self.star.n, len(x))
        return super().start(x)

    def send_uncompressed(self) -> np.ndarray:
        m_i = self.star.dense(self.h_i)
        self.g_i, self.G = m_i.decoded(), self.star.collect(m_i)
        return self.star.broadcast(self.star.combine(self.G))

    def guarantees(self, case: Case) -> list[Guarantee]:
        return []


class DashaOnline(Dasha):
    """What DASHA-MVR and DASHA-SYNC-MVR share: samples drawn from D_i, with replacement."""

    batch: int | float
    big_batch: int | float
    first_batch: First
    partial = False
    letters: ClassVar[dict[str, str]] = DashaPage.letters

    def check(self) -> None:
        super().check()
        self.B, self.big_B = self.batch_size("batch"), self.batch_size("big_batch")
        factor = self.first_factor()
        self.first_B = self.first_batch_size(self.first_batch, self.B, self.big_B, factor)
        self.first_batch = self.first_batch and self.first_B

    def first_factor(self) -> float:
        """Of omega B in the "published" first batch."""
        return 1.0

    def samples(self) -> np.ndarray:
        """xi_i^{t+1}: sample numbers, shape (m, B)."""
        return self.star.draw("batch").samples(self.oracle.rows, self.B)

    def first(self, x: np.ndarray) -> np.ndarray:
        return self.sampled_gradients(x, self.first_B)


@estimator("dasha-mvr")
class DashaMVR(DashaOnline):
    """DASHA-MVR, the online case (Tyurin and Richtarik, 2023).

    h_i^{t+1} = (1/B) sum grad f_i(x^{t+1}; xi) + (1 - b) (h_i^t - (1/B) sum grad f_i(x^t; xi))

    batch : B, a number of samples or a share of m.
    big_batch : B', which decides b and the first batch.
    b : momentum; "theory" is derived here: the b with which the guarantee has the floor of
        DASHA-SYNC-MVR's with the same B'. "published" is min(B / B', sqrt(B / B') / omega).
    first_batch : of h_i^0; B' unless given. "published" is max(B', omega sqrt(B B')).
    """

    batch: int | float = dataclasses.field(kw_only=True)
    big_batch: int | float = 0.5
    b: float | Literal["theory", "published"] = "theory"
    first_batch: First = None

    def check(self) -> None:
        super().check()
        if isinstance(self.b, str):
            omega = unbiased(self.compressor, self.compressor.omega, "b", self.b)
            rule = dasha.mvr_momentum if self.b == "theory" else dasha.published_momentum
            self.b = rule(omega, self.B, self.big_B)
        self.b = probability(self.b, self.b, "b")

    def first_factor(self) -> float:
        return sqrt(self.big_B / self.B)

    def next(self, x: np.ndarray, old: np.ndarray) -> np.ndarray:
        xi = self.samples()
        new, before = self.oracle.batch_gradients(x, xi), self.oracle.batch_gradients(old, xi)
        return new + (1 - float(self.b)) * (self.h_i - before)

    def theory_step(self, setting: Setting) -> Step:
        return dasha.mvr(setting, float(self.a), float(self.b), self.B)

    def guarantees(self, case: Case) -> list[Guarantee]:
        step = self.theory_step(case.setting)
        return [dasha.mvr_row(case, step, float(self.b), self.B, self.first_B)]


@estimator("dasha-sync-mvr")
class DashaSyncMVR(DashaOnline):
    """DASHA-SYNC-MVR, the online case (Tyurin and Richtarik, 2023).

    h_i^{t+1} = h_i^t + (1/B) sum (grad f_i(x^{t+1}; xi) - grad f_i(x^t; xi)), compressed, or, with
    probability p, g_i^{t+1} = h_i^{t+1} = (1/B') sum grad f_i(x^{t+1}; xi), uncompressed

    batch : B, a number of samples or a share of m.
    big_batch : B'.
    p : all workers share the coin; "theory" is min(zeta_C / d, B / B'), for RandK the published p.
    first_batch : of h_i^0; B' unless given. "published" is max(B', omega B).
    """

    batch: int | float = dataclasses.field(kw_only=True)
    big_batch: int | float = 0.5
    p: float | Theory = "theory"
    first_batch: First = None

    def check(self) -> None:
        super().check()
        zeta, d = self.compressor.density, self.compressor.d
        self.p = probability(self.p, min(zeta / d, self.B / self.big_B))

    def next(self, x: np.ndarray, old: np.ndarray) -> np.ndarray:
        return self.h_i + self.oracle.batch_changes(x, old, self.samples())

    def estimate(self, x: np.ndarray) -> np.ndarray:
        if not self.star.coin(float(self.p)):
            return super().estimate(x)
        self.x, self.h_i = x, self.sampled_gradients(x, self.big_B)
        return self.send_uncompressed()

    def theory_step(self, setting: Setting) -> Step:
        return dasha.sync_mvr(setting, float(self.a), float(self.p), self.B)

    def guarantees(self, case: Case) -> list[Guarantee]:
        step = self.theory_step(case.setting)
        sizes = self.B, self.big_B, self.first_B
        return [dasha.sync_mvr_row(case, step, float(self.p), *sizes)]
