"""FedNL: Newton's method with Hessians that the server learns from compressed differences."""

from __future__ import annotations

from math import inf, sqrt
from typing import Literal

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.errors import InputError
from mpisim.core.machine import require_memory
from mpisim.core.numerics import triangles
from mpisim.core.numerics.eigen import eigh
from mpisim.core.numerics.lanes import dot
from mpisim.core.schema import require
from mpisim.core.state import AtServer, PerWorker
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability

ARRAYS = 4  # of a triangle for each worker, that a round needs


@estimator("fednl")
class FedNL(Estimator):
    """FedNL (Safaryan, Islamov, Qian, Richtarik, 2022, Algorithm 1).

    S_i^k     = C(hess f_i(x^k) - H_i^k),  l_i^k = |H_i^k - hess f_i(x^k)|_F
    H_i^{k+1} = H_i^k + alpha S_i^k
    g^k       = [H^k]_mu^{-1} grad f(x^k)  (option A), or  (H^k + l^k I)^{-1} grad f(x^k)  (B)

    hessian : C, of vectors with the d (d + 1) / 2 numbers of a triangle, in which those off the
        diagonal are multiplied by sqrt(2): { name = "topk", k = 1000 }
    option : "A" raises the eigenvalues of H^k to at least mu, "B" adds l^k, the mean of the l_i^k
    alpha : "theory" is 1 / (1 + omega) of an unbiased C, else 1 - sqrt(1 - its alpha)
    regularisation : mu of option A

    The step is stepsize g^k: Newton's is 1. H_i^0 = hess f_i(x^0) is sent uncompressed. Gradients
    are, too, unless the ``[compressor]`` is not the identity. Convex problems alone have Hessians.
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
        size = triangles.size(d)
        if not problem.convex:
            raise InputError(f"problem.name: {problem.name!r} is not convex, and FedNL needs that")
        require_memory(ARRAYS * self.star.m * size + 3 * d * d, "method.name", "fednl")
        self.hessian = C = self.bind_key("hessian", self.hessian, size)
        contraction = C.alpha or 0.0
        theory = 1 - sqrt(1 - contraction) if C.omega is None else 1 / (1 + C.omega)
        self.alpha = probability(self.alpha, theory, "alpha")
        mu, given = self.regularisation, self.option == "A"
        allowed = 'a finite number > 0 with option = "A", absent with "B"'
        good = 0 < mu < inf if given and mu is not None else (mu is None) != given
        require(good, "method.regularisation", mu, allowed)

    def start(self, x: np.ndarray) -> np.ndarray:
        hessians = self.star.dense(self.oracle.hessians(x))
        self.H_i, self.H = hessians.decoded(), self.star.mean(hessians)
        return self.direction(self.gradient(x), 0.0)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        x = self.star.broadcast(x)
        difference = self.oracle.hessians(x) - self.H_i
        S_i = self.star.compress(self.hessian, difference, "hessian")
        l_i = np.array([[sqrt(dot(row, row))] for row in difference]).reshape(-1, 1)
        l = self.star.mean(self.star.dense(l_i))  # noqa: E741 - the paper's letter
        g = self.direction(self.gradient(x), float(l[0]))
        self.H_i = self.H_i + self.alpha * S_i.decoded()
        self.H = self.H + self.alpha * self.star.mean(S_i)
        return g

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """grad f(x), at the server."""
        return self.star.mean(self.compress(self.oracle.gradients(x)))

    def direction(self, gradient: np.ndarray, l: float) -> np.ndarray:  # noqa: E741
        """g^k, at the server; zeros elsewhere."""
        if not self.star.is_server:
            return gradient
        d = len(gradient)
        H = triangles.unpacked(self.H, d)
        if self.regularisation is None:
            return triangles.solve(H + l * np.eye(d), gradient)
        values, vectors = eigh(H)
        raised = np.ascontiguousarray(vectors / np.maximum(values, self.regularisation))
        products = np.array([dot(v, gradient) for v in np.ascontiguousarray(vectors.T)])
        return np.array([dot(row, products) for row in raised])
