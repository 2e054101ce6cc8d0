"""Plain loops: losses by the book on the shards of clients, draws by their addresses, AMSGrad."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from mpisim.comm.links import on_wire
from mpisim.core.numerics import philox
from mpisim.core.rng import Draw, Streams, purpose_key
from tests.helpers import dense, run_tables, table

N, SEED = 6, 5
SLOPES = {  # phi'(y a.x)
    "logistic": lambda z: -1 / (1 + np.exp(z)),
    "nonconvex-loss": lambda z: -2 / (1 + np.exp(-z)) / (1 + np.exp(z)) ** 2,
}


def tables(method, compressor=None, l2=0.1, fleet=None, **run):
    """Of logistic regression on the sample, in float64."""
    run = {"seed": SEED, "wire": "float64"} | run
    problem = {"name": "logistic", "l2": l2}
    made = table({"stepsize": 0.3} | method, compressor, workers=N, problem=problem, **run)
    return made | ({"fleet": fleet} if fleet else {})


def near(x, other, tolerance=1e-12):
    """Whether two points are the same, but for roundings."""
    return np.linalg.norm(x - other) <= tolerance * np.linalg.norm(other)


def top(v, k):
    """Row-wise TopK; ties: the lower index wins."""
    kept = np.zeros_like(v)
    for i, row in enumerate(v):
        best = sorted(range(len(row)), key=lambda j: (-abs(row[j]), j))[:k]
        kept[i, best] = row[best]
    return kept


class Loop:
    """The rows of n clients; ``k``: the round that draws are of."""

    def __init__(self, l2=0.1, data="sample", n=N, loss="logistic"):
        self.a, y = dense(data)
        self.y, self.n, self.data, self.slope = y.copy(), n, data, SLOPES[loss]
        self.m, self.d, self.k, self.l2 = len(self.a) // n, self.a.shape[1], 0, l2
        self.problem = {"name": loss} | ({"l2": l2} if l2 else {})

    def run(self, method, compressor=None, **run):
        """The end of the run that the loop is the reference of."""
        run = {"seed": SEED, "wire": "float64"} | run
        return run_tables(table(method, compressor, self.data, self.n, problem=self.problem, **run))

    def gradient(self, i, x, rows=None):
        """Of f_i, or of the mean over some of its rows.

        Every column is summed in the same order: equal ones, of which mushrooms has dozens, have
        equal sums, so that TopK has ties to break.
        """
        rows = i * self.m + (np.arange(self.m) if rows is None else rows)
        a, y = self.a[rows], self.y[rows]
        weights = y * self.slope(y * (a @ x))
        return np.add.reduce(a * weights[:, None], axis=0) / len(rows) + self.penalty(x)

    def penalty(self, x):
        """Its gradient."""
        return self.l2 * x

    def gradients(self, xs):
        """A point for each client."""
        return np.array([self.gradient(i, x) for i, x in enumerate(xs)])

    def every(self, x, batch=None):
        """One point for all clients; ``batch``: the rows of each."""
        rows = [None] * self.n if batch is None else batch
        return np.array([self.gradient(i, x, some) for i, some in enumerate(rows)])

    def coin(self, p, number=0):
        return philox.uniform(SEED, purpose_key("coin"), self.k, number) < p

    def steps(self, p):
        """The steps of a round that ends when a coin shows 1."""
        for number in count():
            yield
            if self.coin(p, number):
                return

    def clients(self, r):
        """Who takes part, drawn without replacement."""
        return Draw(Streams(SEED), "sample", self.k, 0, 1).subsets(self.n, r)[0]

    def batch(self, b):
        """Rows of each client, drawn without replacement."""
        return Draw(Streams(SEED), "batch", self.k, 0, self.n).batches(np.full(self.n, self.m), b)

    def samples(self, b, purpose="batch"):
        """Rows of each client, drawn with replacement."""
        return Draw(Streams(SEED), purpose, self.k, 0, self.n).samples(np.full(self.n, self.m), b)

    def randk(self, v, purpose, K=20, message=0, clients=None):
        """Of each row of v; ``clients``: whose rows these are, unless they are all."""
        draw = Draw(Streams(SEED), purpose, self.k, 0, N, clients, message)
        out, kept = np.zeros_like(v), draw.subsets(v.shape[1], K)
        sent = v.shape[1] / K * np.take_along_axis(v, kept, axis=1)
        np.put_along_axis(out, kept, sent, axis=1)
        return out


UP, DOWN, LATENCY = 1e6, 4e6, 0.01
LINKS = "1mbit/4mbit,10ms"


class TimedLoop(Loop):
    """On the clock of a fleet, from x = 0; messages up and down are dense."""

    def __init__(self, l2):
        super().__init__(l2)
        self.x, self.now, self.times = np.zeros(self.d), 0.0, [0.0]
        bits = on_wire(np.array([64.0 * self.d]), 1)[0]
        self.down, self.up = LATENCY + bits / DOWN, LATENCY + bits / UP

    def step(self, change):
        self.x, self.k = self.x - change, self.k + 1
        self.times.append(self.now)


def sign(v):
    """(|v|_1 / d) sign(v), row by row, the sign of 0 is +1."""
    return np.abs(v).mean(axis=-1, keepdims=True) * np.where(v < 0, -1.0, 1.0)


class Markov:
    """CD-Adam, Algorithm 1, lines 5 to 12."""

    def __init__(self, c):
        self.c, self.hat_i, self.hat, self.tilde = c, 0.0, 0.0, 0.0

    def __call__(self, g_i):
        c_i = self.c(g_i - self.hat_i)
        self.hat_i, self.hat = self.hat_i + c_i, self.hat + c_i.mean(axis=0)
        self.tilde = self.tilde + self.c(self.hat - self.tilde)
        return self.hat, self.tilde


class Feedback:
    def __init__(self, c):
        self.c, self.e_i, self.e = c, 0.0, 0.0

    def __call__(self, g_i):
        c_i = self.c(g_i + self.e_i)
        self.e_i, mean = self.e_i + g_i - c_i, c_i.mean(axis=0)
        c = self.c(mean + self.e)
        self.e = self.e + mean - c
        return mean, c


def naive(c):
    return lambda g_i: (c(g_i).mean(axis=0), c(c(g_i).mean(axis=0)))


def plain(c):
    return lambda g_i: (g_i.mean(axis=0),) * 2


def amsgrad(gradients, d, exchange, gamma, nu=1e-8) -> Iterator[tuple]:
    """x, g_i, g^, g~, v and sqrt(vhat + nu) of each round; ``exchange``: g_i -> (g^, g~)."""
    x = m = v = vhat = np.zeros(d)
    while True:
        g_i = gradients(x)
        g_hat, g = exchange(g_i)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        vhat = np.maximum(vhat, v)
        root = np.sqrt(vhat + nu)
        x = x - gamma * m / root
        yield x, g_i, g_hat, g, v, root
