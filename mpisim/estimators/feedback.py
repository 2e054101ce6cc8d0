"""Biased compressors made safe: error feedback, and EF21 (Markov compression)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mpisim.estimators.base import Estimator, estimator
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("ef")
class ErrorFeedback(Estimator):
    """Error feedback (Seide et al., 2014), at the workers: what C lost is sent later.

    c_i^k     = C(e_i^k + grad f_i(x^k))
    e_i^{k+1} = e_i^k + grad f_i(x^k) - c_i^k
    g^k       = (1/n) sum_i c_i^k

    The step size stands outside, as in the CD-Adam paper's comparison; for a constant step this
    is the classical form with gamma inside C when C is positively homogeneous.
    """

    worker_state = ("e_i",)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.e_i = np.zeros((self.star.m, x.size), self.star.precision.arithmetic)
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        v_i = self.e_i + self.oracle.gradients(x)
        c_i = self.compress(v_i)
        self.e_i = v_i - c_i.decoded()
        return self.star.average(c_i)


@estimator("ef21")
class EF21(Estimator):
    """EF21 (Richtarik et al., 2021; PermK paper, Appendix E): Markov compression of gradients.

    c_i^k     = C(grad f_i(x^{k+1}) - g_i^k)
    g_i^{k+1} = g_i^k + c_i^k
    g^{k+1}   = g^k + (1/n) sum_i c_i^k

    start : g_i^0 is grad f_i(x^0) ("dense"), C(grad f_i(x^0)) ("compressed"), or 0 ("zero").
    """

    start_: Literal["dense", "compressed", "zero"] = "dense"
    worker_state = ("g_i",)
    server_state = ("g",)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.g_i = np.zeros((self.star.m, x.size), self.star.precision.arithmetic)
        self.g = np.zeros(x.size, self.star.precision.arithmetic)
        if self.start_ == "zero":
            return self.g
        gradients = self.oracle.gradients(x)
        c_i = self.star.dense(gradients) if self.start_ == "dense" else self.compress(gradients)
        self.g_i = c_i.decoded()
        self.g = self.star.mean(c_i)
        return self.star.broadcast(self.g)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        c_i = self.compress(self.oracle.gradients(x) - self.g_i)
        self.g_i = self.g_i + c_i.decoded()
        self.g = self.g + self.star.mean(c_i)
        return self.star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.ef21(setting)
