"""Local steps: some clients go their own way from x^k, and the server averages where they end."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from math import inf
from typing import Literal

import numpy as np

from mpisim.core.schema import require
from mpisim.core.state import AtServer, PerWorker
from mpisim.methods.estimators.base import Clients, estimator
from mpisim.methods.estimators.batches import Participation
from mpisim.theory import derived
from mpisim.theory.setting import Setting, Step
from mpisim.theory.stepsizes import theorem_only_for


@dataclasses.dataclass(eq=False)
class LocalSteps(Participation):
    """What the methods share: the clients of a round, and gradients at points of their own.

    The server's x^k is sent to the clients of the round alone. The step size of the ``[method]``
    table is eta_l, that of the clients' steps; the optimizer has eta_g.
    """

    local_steps: int
    server_stepsize: float = 1.0
    batch: int | float | None = None
    participants: int | None = None

    server_point = True
    estimates_gradient = False

    def check(self) -> None:
        steps, eta_g = self.local_steps, self.server_stepsize
        require(steps >= 1, "method.local_steps", steps, "an integer >= 1")
        require(0 < eta_g < inf, "method.server_stepsize", eta_g, "a finite number > 0")
        self.require_participants(self.participants)
        self.b = None if self.batch is None else self.batch_size("batch")
        super().check()

    def samples_of(self) -> np.ndarray | int:
        return super().samples_of() if self.b is None else self.b

    def rows(self, x: np.ndarray, clients: Clients) -> np.ndarray:
        """x (d,) for each client of this rank, a new array (clients, d)."""
        count = self.star.m if clients.local is None else len(clients.local)
        return self.star.zeros(count, len(x)) + x

    def gradients(self, y_i: np.ndarray, clients: Clients) -> np.ndarray:
        """g_i(y_i), shape (clients, d); y_i : one point (d,), or one for each client."""
        return self.gradients_at(y_i, clients, self.b)

    def mean(self, v_i: np.ndarray, clients: Clients) -> np.ndarray:
        """(1/r) sum over S of C(v_i), at the server."""
        return self.star.mean(self.star.compress(self.compressor, v_i, clients=clients.S))

    def theory_step(self, setting: Setting) -> Step:
        if self.batch is not None or self.participants not in (None, self.star.n):
            raise theorem_only_for(self.name, "full gradients of all clients")
        return self.full_step(setting)

    @abstractmethod
    def full_step(self, setting: Setting) -> Step:
        """eta_l with full gradients of all clients."""


@estimator("fedavg")
class FedAvg(LocalSteps):
    """FedAvg (McMahan et al., 2017), also called local SGD.

    S^k     = r clients, drawn at random, which get x^k
    y_i     = x^k, then K times  y_i = y_i - eta_l g_i(y_i)
    x^{k+1} = x^k + eta_g (1/r) sum over S^k of C(y_i - x^k)

    local_steps : K
    server_stepsize : eta_g; 1 averages the y_i
    batch : samples of g_i, or a share of m, drawn anew in each step, without replacement; full
        gradients unless given
    participants : r, drawn without replacement; all clients unless given

    All clients weigh the same, as in f. Another optimizer takes the mean of x - y_i for a gradient,
    and eta_g for its step size (Reddi et al., Adaptive federated optimization, 2021).
    On a simulated fleet the mean is of those whose messages arrive.
    """

    partial = True

    def start(self, x: np.ndarray) -> np.ndarray:
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        clients, eta_l = self.drawn_clients(self.participants), self.star.stepsize
        x = self.star.broadcast(x, clients=clients.S)
        clients = self.clients_of(self.arrived(clients.S, self.local_steps))
        y_i = self.rows(x, clients)
        for _ in range(self.local_steps):
            y_i -= eta_l * self.local_gradients(y_i, x, clients)
        return -self.mean(y_i - x, clients)

    def local_gradients(self, y_i: np.ndarray, x: np.ndarray, clients: Clients) -> np.ndarray:
        """Of what the clients minimise, at y_i (clients, d), from x (d,)."""
        return self.gradients(y_i, clients)

    def full_step(self, setting: Setting) -> Step:
        return derived.fedavg(setting, self.local_steps, self.server_stepsize)


@estimator("fedprox")
class FedProx(FedAvg):
    """FedProx (Li et al., 2020), with K gradient steps as the inexact solver.

    Like FedAvg, but client i minimises f_i(y) + (mu / 2) |y - x^k|^2:

    y_i = y_i - eta_l (g_i(y_i) + mu (y_i - x^k))

    mu : a number >= 0; 0 is FedAvg

    The other keys are FedAvg's.
    """

    mu: float = dataclasses.field(kw_only=True)

    def check(self) -> None:
        require(0 <= self.mu < inf, "method.mu", self.mu, "a finite number >= 0")
        super().check()

    def local_gradients(self, y_i: np.ndarray, x: np.ndarray, clients: Clients) -> np.ndarray:
        return self.gradients(y_i, clients) + self.mu * (y_i - x)

    def full_step(self, setting: Setting) -> Step:
        return derived.fedavg(setting, self.local_steps, self.server_stepsize, self.mu)


@estimator("scaffold")
class Scaffold(LocalSteps):
    """SCAFFOLD (Karimireddy et al., 2020).

    S^k     = r clients, drawn at random, which get x^k and c
    y_i     = x^k, then K times  y_i = y_i - eta_l (g_i(y_i) - c_i + c)
    c_i^+   = g_i(x^k)  (option I), or  c_i - c + (x^k - y_i) / (K eta_l)  (option II)
    x^{k+1} = x^k + eta_g (1/r) sum over S^k of C(y_i - x^k)
    c       = c + (1/n) sum over S^k of C(c_i^+ - c_i)
    c_i     = c_i + C(c_i^+ - c_i)

    option : of c_i^+; with "I" g_i(x^k) has a minibatch of its own

    The other keys are FedAvg's; c_i^0 = 0.
    """

    option: Literal["I", "II"] = "II"

    c_i = PerWorker("control variates")
    c = AtServer("their mean")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.c_i = self.star.zeros(self.star.m, len(x))
        self.c = self.star.zeros(len(x))
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        clients = self.drawn_clients(self.participants)
        K, eta_l = self.local_steps, self.star.stepsize
        x = self.star.broadcast(x, clients=clients.S)
        c = self.star.broadcast(self.c, clients=clients.S)
        local = slice(None) if clients.local is None else clients.local
        y_i, c_i = self.rows(x, clients), self.c_i[local]
        for _ in range(K):
            y_i -= eta_l * (self.gradients(y_i, clients) - c_i + c)
        if self.option == "I":
            c_plus = self.gradients(x, clients)
        else:
            c_plus = c_i - c + (x - y_i) / (K * eta_l)
        change = c_plus - c_i
        dx = self.mean(y_i - x, clients)
        dc_i = self.star.compress(self.compressor, change, clients=clients.S)
        self.c_i[local] = c_i + dc_i.decoded()
        share = 1.0 if clients.S is None else len(clients.S) / self.star.n
        self.c = self.c + share * self.star.mean(dc_i)
        return -dx

    def full_step(self, setting: Setting) -> Step:
        return derived.scaffold(setting, self.local_steps, self.server_stepsize)
