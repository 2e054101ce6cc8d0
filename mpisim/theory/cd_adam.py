"""CD-Adam, Theorem 6.4: the constants M_1 to M_5, the step, the batch and the rounds; its lemmas.

Misprints of the paper, and how they are read here: sqrt(d nu^{-1/2}) in (B.1) and (B.2) is
sqrt(d) nu^{-1/2}, the bound of |V^{-1/2}| that (B.19) goes on with.
"""

from __future__ import annotations

import dataclasses
from math import ceil, inf, sqrt

from mpisim.core.numerics.functions import power
from mpisim.theory.tables import round_up


@dataclasses.dataclass
class Theorem64:
    """The theorem for a problem, a compressor and AMSGrad's parameters, in the paper's letters.

    n workers with at most N samples each, dimension d; L : of every f_i; delta_f : f(x_1) - inf f;
    pi : E|C(x) - x|^2 <= pi |x|^2, in [0, 1); G, G_inf : bounds of a sample's gradient in the
    Euclidean and the maximum norm; sigma : of its standard deviation; beta1, nu : AMSGrad's;
    batch : the experiment's tau, None with full gradients. The constants of the proof follow from
    these.
    """

    n: int
    N: int
    d: int
    L: float
    delta_f: float
    pi: float
    G: float
    G_inf: float
    sigma: float
    beta1: float
    nu: float
    batch: int | None = None

    def __post_init__(self) -> None:
        self.root = sqrt(self.pi)
        # (1 + sqrt(pi))^2 / (1 - sqrt(pi))^2: the compressed gradients' bound over G
        self.C_2 = power((1 + self.root) / (1 - self.root), 2)
        # bound of the doubly compressed gradient
        self.G_tilde = self.C_2 * self.G
        # 2 (G_tilde_inf^2 + nu)^{1/2}
        self.C = 2 * sqrt(power(self.C_2 * self.G_inf, 2) + self.nu)
        # 2 L + 3 L (beta_1 / (1 - beta_1))^2
        self.C_1 = self.L * (2 + 3 * power(self.beta1 / (1 - self.beta1), 2))
        # C Delta f
        self.M_1 = self.C * self.delta_f
        # C G G_tilde / ((1 - beta_1) sqrt(nu))
        self.M_2 = self.C * self.G * self.G_tilde / ((1 - self.beta1) * sqrt(self.nu))
        # 32 C C_1 G_tilde^2 / nu + 2 sqrt(pi) C L G G_tilde sqrt(d) / (nu (1 - sqrt(pi))^2)
        drift = 2 * self.root * self.C * self.L * self.G * self.G_tilde * sqrt(self.d)
        first = 32 * self.C * self.C_1 * power(self.G_tilde, 2)
        self.M_3 = (first + drift / power(1 - self.root, 2)) / self.nu
        # 4 C C_1 / nu
        self.M_4 = 4 * self.C * self.C_1 / self.nu
        # 4 sqrt(pi) C G / (sqrt(nu) (1 - sqrt(pi))^2)
        self.M_5 = 4 * self.root * self.C * self.G / (sqrt(self.nu) * power(1 - self.root, 2))

    def alpha(self, epsilon: float) -> float:
        """The largest step, n epsilon / (6 n M_3 + 6 M_4 sigma^2): (6.1)."""
        noise = 6 * self.M_4 * power(self.sigma, 2)
        return self.n * epsilon / (6 * self.n * self.M_3 + noise)

    def tau(self, epsilon: float) -> int:
        """The least batch: (6.1)."""
        square = power(3 * self.M_5 * self.sigma, 2)
        if square == inf:
            return self.N
        share = square / ((self.N - 1) * power(epsilon, 2) + square) if square > 0 else 0.0
        return min(self.N, max(1, ceil(self.N * share)))

    def T(self, epsilon: float) -> float:
        """The least number of rounds, rounded up: (6.1)."""
        slow = 36 * self.M_1 * (self.M_3 + self.M_4 * power(self.sigma, 2) / self.n)
        return round_up(slow / power(epsilon, 2) + 3 * self.M_2 / epsilon)

    def bound(self, T: float, alpha: float, tau: int) -> float:
        """(B.22): min_t E|grad f(x_t)|^2 is at most this, if alpha <= nu / (4 C C_1)."""
        steady = alpha * (self.M_3 + self.M_4 * power(self.sigma, 2) / self.n)
        start = self.M_1 / (T * alpha) + self.M_2 / T
        return start + steady + self.M_5 * self.noise(tau)

    def noise(self, tau: int) -> float:
        """sigma sqrt((N - tau) / (tau (N - 1))), a minibatch's standard deviation: Lemma B.3."""
        if tau >= self.N:
            return 0.0
        return self.sigma * sqrt((self.N - tau) / (tau * (self.N - 1)))

    def worker_error(self, alpha: float, tau: int) -> float:
        """E|g^_t - g_t| in the long run: Lemma B.5. From g^_0 = 0 add sqrt(pi)^t G in round t.

        The lemma leaves the start out, where the first gradient has no predecessor to be close to.
        """
        drift = self.L * self.G_tilde * alpha * sqrt(self.d / self.nu)
        return self.root / (1 - self.root) * (drift + 2 * self.noise(tau))

    def server_error(self, alpha: float, tau: int) -> float:
        """E|g~_t - g^_t| in the long run: Lemma B.6.

        From g~_0 = 0 add t sqrt(pi)^t (1 + sqrt(pi)) G in round t.
        """
        return (1 + self.root) / (1 - self.root) * self.worker_error(alpha, tau)

    def orders(self, epsilon: float) -> dict[str, float]:
        """Table 1 with constant 1: the constants' and T's dependence on pi."""
        G, G_inf, near = self.G, self.G_inf, 1 - self.pi
        M_1 = self.delta_f * G_inf / power(near, 2)
        M_2 = G * G * G_inf / power(near, 4)
        M_3 = (1 + self.L * sqrt(self.d)) * G * G * G_inf / power(near, 6)
        M_4 = G_inf / power(near, 2)
        noise = M_4 * power(self.sigma, 2) / self.n
        T = M_1 * (M_3 + noise) / power(epsilon, 2) + M_2 / epsilon
        M_5 = G * G_inf / power(near, 4)
        return {"M_1": M_1, "M_2": M_2, "M_3": M_3, "M_4": M_4, "M_5": M_5, "T": T}
