"""Logistic regression on the sample by the book, and draws by their addresses, for plain loops."""

import numpy as np

from mpisim.core.numerics import philox
from mpisim.core.rng import Draw, Streams, purpose_key
from tests.helpers import dense, table

N, SEED = 6, 5


def tables(method, compressor=None, l2=0.1, **run):
    """Of logistic regression on the sample, in float64."""
    run = {"seed": SEED, "wire": "float64"} | run
    problem = {"name": "logistic", "l2": l2}
    return table({"stepsize": 0.3} | method, compressor, workers=N, problem=problem, **run)


def near(x, other, tolerance=1e-12):
    """Whether two points are the same, but for roundings."""
    return np.linalg.norm(x - other) <= tolerance * np.linalg.norm(other)


class Loop:
    """The rows of N clients; ``k``: the round that draws are of."""

    def __init__(self, l2=0.1):
        self.a, self.y = dense("sample")
        self.m, self.d, self.k, self.l2 = len(self.a) // N, self.a.shape[1], 0, l2

    def gradient(self, i, x, rows=None):
        """Of f_i, or of the mean over some of its rows."""
        rows = i * self.m + (np.arange(self.m) if rows is None else rows)
        a, y = self.a[rows], self.y[rows]
        return -a.T @ (y / (1 + np.exp(y * (a @ x)))) / len(rows) + self.l2 * x

    def gradients(self, xs):
        """A point for each client."""
        return np.array([self.gradient(i, x) for i, x in enumerate(xs)])

    def every(self, x):
        """One point for all clients."""
        return self.gradients(np.tile(x, (N, 1)))

    def coin(self, p, number=0):
        return philox.uniform(SEED, purpose_key("coin"), self.k, number) < p

    def clients(self, r):
        """Who takes part, drawn without replacement."""
        return Draw(Streams(SEED), "sample", self.k, 0, 1).subsets(N, r)[0]

    def randk(self, v, purpose, K=20, message=0):
        kept = Draw(Streams(SEED), purpose, self.k, 0, N, None, message).subsets(self.d, K)
        out = np.zeros((N, self.d))
        for i, row in enumerate(kept):
            out[i, row] = self.d / K * v[i, row]
        return out
