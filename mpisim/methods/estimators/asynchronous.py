"""Methods on an event clock: when a message arrives decides what is computed.

A client gets a point, computes a minibatch gradient there, and sends it. Its seconds are those of
its link, its speed and its bytes, from the table ``[fleet]``. The simulated time is state, a
function of the experiment alone: the same on any number of ranks, and in a resumed run. Without a
fleet all clients are equal, links take no time, and a sample takes a second.

The methods assume that all workers have the same data. Where they have not, fast clients count
more. A message's length must be known before its values are: it decides when the message arrives.
"""

from __future__ import annotations

from math import ceil, inf

import numpy as np

from mpisim.comm.fleet import Fleet
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.core.state import PerWorker, Shared
from mpisim.methods.estimators.base import Clients, estimator, unbiased
from mpisim.methods.estimators.batches import Clocked

EQUAL = Fleet("unlimited", seconds=1.0)
SYNCHRONOUS = ("availability", "dropout", "deadline", "invited")  # keys of rounds that wait


class Asynchronous(Clocked):
    """What the methods share: the clock, the clients' points, and the next arrival.

    A round is a step of the server.

    one_by_one : whether the server uses each message on its own
    """

    server_point = True
    on_events = partial = True
    one_by_one = True
    batch: int | float | None
    local_steps = 1

    arrives = Shared("when each worker's message arrives (n,); infinity for one that waits")
    since = Shared("the round of the point that each worker computes at (n,)")
    delay = Shared("mean number of steps between the points and the use of the last messages")
    point = PerWorker("the point that each worker computes at")

    def check(self) -> None:
        star, fleet = self.star, self.star.fleet or EQUAL
        for key in SYNCHRONOUS:
            if getattr(fleet, key) != getattr(EQUAL, key):
                raise InputError(f"fleet.{key}: is not allowed with method {self.name!r}")
        if self.one_by_one:  # no rules and attacks that are about several messages at once
            here = f"is not allowed with method {self.name!r}, whose messages arrive one by one"
            if star.server.robust:
                raise InputError(f"server: a rule other than the mean {here}")
            if star.attack is not None and star.attack.of_the_mean:
                raise InputError(f"attack.name: {star.attack.name!r} {here}")
        self.b = None if self.batch is None else self.batch_size("batch")
        samples = self.local_steps * (self.samples_of() if self.b is None else self.b)
        self.timing = t = self.client_seconds(fleet, samples)
        self.down, self.computing, self.up = t.latency + t.down, t.computing, t.latency + t.up

    def start(self, x: np.ndarray) -> np.ndarray:
        star = self.star
        self.now = self.spent = self.delay = 0.0
        self.arrives, self.since = np.full(star.n, inf), np.zeros(star.n, np.int64)
        self.point = star.zeros(star.m, len(x))
        return self.estimate(x)

    def give(self, x: np.ndarray, workers: np.ndarray) -> None:
        """Send x^k to these workers, ascending, which begin to compute there."""
        if not workers.size:
            return
        star = self.star
        x = star.broadcast(x, clients=workers)
        self.point[self.clients_of(workers).local] = x
        self.since[workers] = star.round
        self.arrives[workers] = self.now + self.down[workers] + (self.computing + self.up)[workers]

    def give_waiting(self, x: np.ndarray) -> None:
        """Send x^k to the workers that wait."""
        self.give(x, np.flatnonzero(np.isinf(self.arrives)))

    def receive(self) -> tuple[int, np.ndarray]:
        """The worker whose message arrives next, the lower one of two, and C(v_i) at the server."""
        i, star = int(np.argmin(self.arrives)), self.star
        self.now, self.arrives[i] = float(self.arrives[i]), inf
        self.spent = self.spent + float(self.computing[i])
        clients = self.clients_of(np.array([i]))
        v_i = self.message(self.point[clients.local], clients)
        return i, star.mean(star.compress(self.compressor, v_i, clients=clients.S))

    def message(self, x_i: np.ndarray, clients: Clients) -> np.ndarray:
        """What a worker sends from its point: x_i (1, d), or (0, d) where it is of another rank."""
        return self.gradients_at(x_i, clients, self.b)

    def age(self, i: int) -> int:
        """Steps of the server since worker i got its point."""
        return int(self.star.round - self.since[i])


@estimator("asynchronous-sgd")
class AsynchronousSGD(Asynchronous):
    """Asynchronous SGD: x^{k+1} = x^k - gamma_k g_i(x^{k - tau}), with the message that arrives.

    batch : samples of a gradient, or a share of m; full gradients unless given
    delay_adaptive : gamma_k = gamma n / max(n, tau); else gamma
    """

    batch: int | float | None = None
    delay_adaptive: bool = True

    def estimate(self, x: np.ndarray) -> np.ndarray:
        self.give_waiting(x)
        i, g_i = self.receive()
        self.delay = tau = float(self.age(i))
        n = self.star.n
        return g_i * (n / max(n, tau)) if self.delay_adaptive else g_i


@estimator("rennala")
class Rennala(Asynchronous):
    """Rennala SGD (Tyurin, Richtárik, 2023): the mean of the first B gradients at x^k.

    In each round all workers stop and begin at x^k. One whose message has arrived computes there
    again. In the paper a worker does not stop: it sends the gradient it has begun, which the server
    ignores, and then gets x^k.

    collected : B
    batch : samples of a gradient, or a share of m; full gradients unless given
    """

    collected: int
    batch: int | float | None = None

    def check(self) -> None:
        require(self.collected >= 1, "method.collected", self.collected, "an integer >= 1")
        super().check()

    def estimate(self, x: np.ndarray) -> np.ndarray:
        self.give(x, np.arange(self.star.n))
        total = self.star.zeros(len(x))
        for _ in range(self.collected):
            i, g_i = self.receive()
            total = total + g_i
            self.arrives[i] = self.now + self.computing[i] + self.up[i]
        self.delay = 0.0
        return total / self.collected


@estimator("ringmaster")
class Ringmaster(Asynchronous):
    """Ringmaster ASGD (Maranjyan, Tyurin, Richtárik, 2025), with calculation stops.

    x^{k+1} = x^k - gamma g_i(x^{k - tau}), tau < R: a worker whose point is R steps old stops, and
    begins at x^k.

    threshold : R; 1 uses gradients at x^k alone
    batch : samples of a gradient, or a share of m; full gradients unless given
    """

    threshold: int
    batch: int | float | None = None

    def check(self) -> None:
        require(self.threshold >= 1, "method.threshold", self.threshold, "an integer >= 1")
        super().check()

    def estimate(self, x: np.ndarray) -> np.ndarray:
        old = self.star.round - self.since >= self.threshold
        self.give(x, np.flatnonzero(np.isinf(self.arrives) | old))
        i, g_i = self.receive()
        self.delay = float(self.age(i))
        return g_i


@estimator("fedbuff")
class FedBuff(Asynchronous):
    """FedBuff (Nguyen et al., 2022): a step with every K updates that have arrived, however old.

    A client takes local steps from the point it has, y = y - eta_l g_i(y), and sends x - y. It then
    gets the newest point. The step size of the ``[method]`` table is eta_l, with its schedule that
    of the round in which the client began.

    buffer : K
    local_steps : of a client
    server_stepsize : eta_g, x^{k+1} = x^k - eta_g (1/K) sum of C(x - y)
    batch : samples of g_i, or a share of m, drawn anew in each step; full gradients unless given
    """

    buffer: int
    local_steps: int = 1
    server_stepsize: float = 1.0
    batch: int | float | None = None

    eta_l = Shared("the step size with which each worker began (n,)")

    def check(self) -> None:
        steps, eta_g = self.local_steps, self.server_stepsize
        require(self.buffer >= 1, "method.buffer", self.buffer, "an integer >= 1")
        require(steps >= 1, "method.local_steps", steps, "an integer >= 1")
        require(0 < eta_g < inf, "method.server_stepsize", eta_g, "a finite number > 0")
        super().check()

    def start(self, x: np.ndarray) -> np.ndarray:
        self.eta_l = np.zeros(self.star.n)
        return super().start(x)

    def give(self, x: np.ndarray, workers: np.ndarray) -> None:
        self.eta_l[workers] = self.star.stepsize
        super().give(x, workers)

    def message(self, x_i: np.ndarray, clients: Clients) -> np.ndarray:
        y_i, eta_l = x_i, float(self.eta_l[clients.S][0])
        for _ in range(self.local_steps):
            y_i = y_i - eta_l * self.gradients_at(y_i, clients, self.b)
        return x_i - y_i

    def estimate(self, x: np.ndarray) -> np.ndarray:
        total, ages = self.star.zeros(len(x)), 0
        for _ in range(self.buffer):
            self.give_waiting(x)
            i, v_i = self.receive()
            total, ages = total + v_i, ages + self.age(i)
        self.delay = ages / self.buffer
        return total / self.buffer


@estimator("shadowheart")
class Shadowheart(Asynchronous):
    """Shadowheart SGD (Tyurin, Pozzi, Ilin, Richtárik, 2024), by its published code.

    In each round worker i computes b_i = floor(t / h_i) gradients of samples at x^k. It sends their
    mean g_i in m_i = min(floor(t / tau_i), ceil(1 + omega)) messages, the code's option, which are
    compressed independently of each other:

    g^k = sum_i w_i b_i sum_j C_ij(g_i) / sum_i w_i b_i m_i
    w_i = 1 / (b_i omega + (omega + m_i) s)

    h_i and tau_i are the seconds of a sample and of a message's bits, and t is the equilibrium
    time. Workers with b_i = 0 or m_i = 0 rest. Broadcasts and latencies, which the analysis leaves
    out, add to the round's time.

    noise : s = sigma^2 / epsilon, of a sample's gradient at the accuracy that is wanted
    """

    noise: float
    unbiased = True
    one_by_one = False
    batch = 1  # h_i is of a sample

    def check(self) -> None:
        s = self.noise
        require(0 <= s < inf, "method.noise", s, "a finite number >= 0")
        super().check()
        omega = unbiased(self.compressor, self.compressor.omega, "noise", repr(s))
        h, tau = self.computing, self.timing.up
        require(bool(h.min() > 0), "fleet.seconds", (self.star.fleet or EQUAL).seconds, "> 0")
        self.active, b, m, w = allocation(h, tau, omega, s)
        self.b_i, self.m_i = b.astype(np.int64), m.astype(np.int64)
        self.weight = w * b * m.sum() / (w * b * m).sum()  # of a message; their mean is 1
        taken = self.down + self.timing.latency
        self.lasts = float((taken[self.active] + b * h[self.active] + m * tau[self.active]).max())

    def estimate(self, x: np.ndarray) -> np.ndarray:
        star = self.star
        x = star.broadcast(x, clients=self.active)
        senders = self.active.repeat(self.m_i)
        first, end = np.searchsorted(senders, (star.first, star.first + star.m))
        v_i = star.zeros(int(end - first), len(x))
        for i, b, weight in zip(self.active, self.b_i, self.weight, strict=True):
            draw = star.draw("batch", clients := np.array([i]))
            if star.first <= i < star.first + star.m:
                batch = draw.samples(self.oracle.rows[local := clients - star.first], int(b))
                g_i = self.oracle.batch_gradients(x[None], batch, local)
                v_i[senders[first:end] == i] = float(weight) * g_i
        self.now = self.now + self.lasts
        self.spent = self.spent + float((self.b_i * self.computing[self.active]).sum())
        return star.mean(star.compress(self.compressor, v_i, clients=senders))


def allocation(
    h: np.ndarray, tau: np.ndarray, omega: float, s: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The workers that do not rest, and their b_i, m_i and w_i."""
    t = equilibrium_time(h, tau, omega, s)
    with np.errstate(divide="ignore"):
        b, m = np.floor(t / h), np.minimum(np.floor(t / tau), ceil(1 + omega))
    active = np.flatnonzero((b > 0) & (m > 0))
    b, m = b[active], m[active]
    w = 1 / (b * omega + (omega + m) * s) if omega + s else np.ones(len(b))
    return active, b, m, w


def equilibrium_time(h: np.ndarray, tau: np.ndarray, omega: float, s: float) -> float:
    """min over j of max(h_j, tau_j, t_j), workers in the order of max(h_j, tau_j).

    t_j solves  1 / t = sum over i <= j of 1 / (2 tau_i omega + 4 tau_i omega h_i s / t + 2 h_i s),
    as in the published code.
    """
    order = np.argsort(np.maximum(h, tau), kind="stable")
    h, tau = h[order], tau[order]
    best = inf
    for j in range(1, len(h) + 1):
        linear, inverse = 2 * (tau * omega + h * s)[:j], (4 * tau * omega * h * s)[:j]
        low, high = 0.0, float((linear + np.sqrt(inverse))[0])  # a bound of t_1, the largest
        least = float(max(h[j - 1], tau[j - 1]))
        if least >= best:
            break
        if linear.min() == 0:
            return least
        for _ in range(80):  # t / (linear + inverse / t) grows with t
            t = (low + high) / 2
            enough = t * float((1 / (linear + inverse / t)).sum()) >= 1
            low, high = (low, t) if enough else (t, high)
        best = min(best, max(least, high))
    return best
