"""FedNL: Newton's method with Hessians that the server learns from compressed differences."""

from __future__ import annotations

from math import inf, sqrt
from typing import Literal

import numpy as np

from mpisim.compressors.base import Compressor, Identity
from mpisim.core.errors import InputError
from mpisim.core.machine import require_memory
from mpisim.core.numerics.eigen import eigh, solve, triangle_size, triangles_times, unpacked
from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import squared_norms, times_vector
from mpisim.core.schema import require
from mpisim.core.state import AtServer, PerWorker
from mpisim.methods.estimators.base import STATES, Estimator, Theory, estimator, probability
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step

LONGEST = 60  # factors of a line search


@estimator("fednl")
class FedNL(Estimator):
    """FedNL (Safaryan, Islamov, Qian, Richtarik, 2022, arXiv 2106.02969).

    S_i^k     = C(hess f_i(x^k) - H_i^k),  l_i^k = |H_i^k - hess f_i(x^k)|_F
    H_i^{k+1} = H_i^k + alpha S_i^k
    g^k       = [H^k]_mu^{-1} grad f(x^k)  (option A), or  (H^k + l^k I)^{-1} grad f(x^k)  (B)

    hessian : C, of vectors with the d (d + 1) / 2 numbers of a triangle, in which those off the
        diagonal are multiplied by sqrt(2): { name = "topk", k = 1000 }, or "symmetric-rank-k"
    option : "A" raises the eigenvalues of H^k to at least mu, "B" adds l^k, the mean of the l_i^k
    alpha : "theory" is 1 / (1 + omega) of an unbiased C, else 1 - sqrt(1 - alpha) of a biased one
    regularisation : mu of option A

    The step is stepsize g^k. "theory" is 1, Newton's, with exact gradients. Let hess f be
    M-Lipschitz and at least mu I. Then with option B

    |x^{k+1} - x*| <= (2 l^k |x^k - x*| + M/2 |x^k - x*|^2) / mu.

    This is because l^k is at least |H^k - hess f(x^k)|, and (H^k + l^k I) (x^{k+1} - x*) is
    (H^k + l^k I - hess f(x^k)) (x^k - x*) plus Taylor's remainder. So the method converges if x^0
    is near x*, and the smaller l^k is, the faster.

    H_i^0 = hess f_i(x^0) is sent uncompressed. Gradients are, too, unless the ``[compressor]`` is
    not the identity. Convex problems alone have Hessians. A rule of ``[server]`` other than the
    mean may give an H^k that is not positive definite: option A raises its eigenvalues, with B the
    step is NaN.
    """

    hessian: Compressor
    option: Literal["A", "B"] = "B"
    alpha: float | Theory = "theory"
    regularisation: float | None = None

    server_point = True
    estimates_gradient = False
    replayed = False  # without Hessians
    H_i = PerWorker("triangles of the Hessians' estimates")
    H = AtServer("their mean")

    def check(self) -> None:
        d, problem = self.compressor.d, self.oracle.problem
        size = triangle_size(d)
        if not problem.convex:
            raise InputError(f"problem.name: {problem.name!r} is not convex, and FedNL needs that")
        require_memory(self.star.m * self.numbers(d) + 3 * d * d, "method.name", self.name)
        self._number = Identity().bind(1, self.star.n, self.star.precision)
        self.hessian = C = self.bind_key("hessian", self.hessian, size)
        contraction = C.alpha or 0.0
        theory = 1 - sqrt(1 - contraction) if C.omega is None else 1 / (1 + C.omega)
        if isinstance(self.alpha, str) and not theory:
            raise InputError(
                f"method.hessian.name: {C.name!r} has neither omega nor alpha, and"
                ' method.alpha = "theory" needs one of them'
            )
        self.alpha = probability(self.alpha, theory, "alpha")
        mu, given = self.regularisation, self.option == "A"
        allowed = 'a finite number > 0 with option = "A", absent with "B"'
        good = 0 < mu < inf if given and mu is not None else (mu is None) != given
        require(good, "method.regularisation", mu, allowed)

    def numbers(self, d: int) -> int:
        return STATES * triangle_size(d)

    def start(self, x: np.ndarray) -> np.ndarray:
        hessians = self.star.dense(self.oracle.hessians(x))
        self.H_i, self.H = hessians.decoded(), self.star.mean(hessians)
        return self.direction(self.gradient(x), 0.0)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        return self.step_from(self.star.broadcast(x))

    def step_from(self, x: np.ndarray) -> np.ndarray:
        """g^k at x^k, which the workers know."""
        difference = self.oracle.hessians(x) - self.H_i
        S_i = self.star.compress(self.hessian, difference, "hessian")
        l_i = norms(difference)
        self.H_i = S_i.add_to(self.H_i, float(self.alpha))
        l = self.star.mean(self.star.dense(l_i))  # noqa: E741 - the paper's letter
        g = self.direction(self.gradient(x), float(l[0]))
        self.H = self.H + self.alpha * self.star.mean(S_i)
        return g

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), at the server."""
        return self.star.mean(self.compress(self.oracle.gradients(x)))

    def theory_step(self, setting: Setting) -> Step:
        stepsizes.without_pl(setting, self.name)
        if setting.alpha != 1:
            raise stepsizes.theorem_only_for(self.name, "uncompressed gradients")
        return Step(1.0, "derived for Newton's method near x*: 1")

    def direction(self, gradient: np.ndarray, l: float) -> np.ndarray:  # noqa: E741
        """g^k, at the server; zeros elsewhere."""
        if not self.star.is_server:
            return gradient
        d, right = len(gradient), gradient.astype(np.float64)
        H = unpacked(self.H, d)
        if self.regularisation is None:
            return solve(H + l * np.eye(d), right).astype(gradient.dtype)
        values, vectors = eigh(H)
        raised = np.ascontiguousarray(vectors / np.maximum(values, self.regularisation))
        g = times_vector(raised, times_vector(np.ascontiguousarray(vectors.T), right))
        return g.astype(gradient.dtype)


@estimator("fednl-ls")
class FedNLLS(FedNL):
    """FedNL-LS: FedNL with a line search (Safaryan, Islamov, Qian, Richtarik, 2022).

    d^k     = -[H^k]_mu^{-1} grad f(x^k)
    x^{k+1} = x^k + gamma^s d^k, s = 0, 1, ... the first with
              f(x^k + gamma^s d^k) <= f(x^k) + c gamma^s <grad f(x^k), d^k>

    c : in (0, 1/2]
    gamma : in (0, 1)

    The server sends d^k, and then gamma^s; workers answer f_i(x^k + gamma^s d^k) - f_i(x^k). A
    factor of 0 ends the search, after 60 at the latest: then x^{k+1} = x^k. Use stepsize = 1. The
    other keys are FedNL's; option "A" takes mu in ``regularisation``.
    """

    c: float = 0.49
    gamma: float = 0.5

    slope = AtServer("<grad f(x^k), d^k>")

    def check(self) -> None:
        super().check()
        require(0 < self.c <= 0.5, "method.c", self.c, "a number in (0, 1/2]")
        require(0 < self.gamma < 1, "method.gamma", self.gamma, "a number in (0, 1)")

    def start(self, x: np.ndarray) -> np.ndarray:
        return self.searched(x, super().start(x))

    def step_from(self, x: np.ndarray) -> np.ndarray:
        return self.searched(x, super().step_from(x))

    def direction(self, gradient: np.ndarray, l: float) -> np.ndarray:  # noqa: E741
        g = super().direction(gradient, l)
        self.slope = -float(dot(gradient, g))
        return g

    def searched(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """gamma^s g."""
        star, d, taken = self.star, -self.star.broadcast(g), 0.0
        before = self.oracle.losses(x)
        for s in range(LONGEST):
            trial = 0.0 if taken else self.gamma**s
            factor = float(star.broadcast(np.array([trial]))[0])
            if factor == 0:
                break
            change = (self.oracle.losses(x + factor * d) - before)[:, None]
            mean = float(star.mean(star.dense(change))[0])
            taken = factor if star.is_server and mean <= self.c * factor * self.slope else 0.0
        return -taken * d


@estimator("fednl-pp")
class FedNLPP(FedNL):
    """FedNL-PP: FedNL with some clients (Safaryan, Islamov, Qian, Richtarik, 2022).

    x^{k+1} = (H^k + l^k I)^{-1} g^k, sent to r clients, drawn at random, which set
    H_i     = H_i + alpha C(hess f_i(x^{k+1}) - H_i)
    l_i     = |H_i - hess f_i(x^{k+1})|_F
    g_i     = (H_i + l_i I) x^{k+1} - grad f_i(x^{k+1})

    They send what has changed. H^k, l^k and g^k are the means over all workers.

    participants : r, drawn without replacement; all workers unless given

    The log's x^k is x^k; a row does not see its round. Use stepsize = 1. The other keys are
    FedNL's with option "B". At the start all send H_i and g_i uncompressed.
    """

    participants: int | None = None

    l_i = PerWorker("l_i, (m, 1)")
    g_i = PerWorker("g_i")
    l = AtServer("their mean")  # noqa: E741
    g = AtServer("their mean")

    def check(self) -> None:
        super().check()
        self.require_participants(self.participants)
        require(self.option == "B", "method.option", self.option, '"B" with FedNL-PP')

    def start(self, x: np.ndarray) -> np.ndarray:
        hessians = self.star.dense(self.oracle.hessians(x))
        self.H_i, self.H = hessians.decoded(), self.star.mean(hessians)
        self.l_i, self.l = self.star.zeros(self.star.m, 1), self.star.zeros(1)
        sent = self.star.dense(triangles_times(self.H_i, x) - self.oracle.gradients(x))
        self.g_i, self.g = sent.decoded(), self.star.mean(sent)
        return self.next_step(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        star, at_server, r = self.star, x, self.participants or self.star.n
        clients = self.drawn_clients(self.participants)
        x = star.broadcast(x, clients=clients.S)
        local = np.arange(star.m) if clients.local is None else clients.local
        hessians = self.oracle.hessians(x, local)
        C_i = star.compress(self.hessian, hessians - self.H_i[local], "hessian", clients.S)
        H_i = self.H_i[local] + self.alpha * C_i.decoded()
        l_i = norms(H_i - hessians)
        g_i = triangles_times(H_i, x) + l_i * x - self.oracle.gradients(x, local)
        dl_i = star.compress(self._number, l_i - self.l_i[local], "dense", clients.S)
        dg_i = star.compress(self.compressor, g_i - self.g_i[local], clients=clients.S)
        self.H_i[local] = H_i
        self.l_i[local] = self.l_i[local] + dl_i.decoded()
        self.g_i[local] = self.g_i[local] + dg_i.decoded()
        self.H = self.H + r / star.n * float(self.alpha) * star.mean(C_i)
        self.l = self.l + r / star.n * star.mean(dl_i)
        self.g = self.g + r / star.n * star.mean(dg_i)
        return self.next_step(at_server)

    def next_step(self, x: np.ndarray) -> np.ndarray:
        """x^k - x^{k+1}, at the server; zeros elsewhere."""
        if not self.star.is_server:
            return 0 * self.g
        return x - self.direction(self.g, float(self.l[0]))


def norms(rows: np.ndarray) -> np.ndarray:
    """|row| of each row (m, k), shape (m, 1)."""
    return np.sqrt(squared_norms(rows))[:, None]
