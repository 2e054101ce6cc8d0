"""Plugins that are right, and the mistakes that `mpisim check` must see."""

HEAD = """
import numpy as np
import mpisim
from mpisim.wire import SeededForm

KEPT = []
"""
COMPRESSOR = """
@mpisim.compressor("mine")
class Mine(mpisim.Compressor):
    k: int
    seeded = True
    examples = ({"k": 3},)

    def form(self, draw):
        indices = draw.subsets(self.d, self.k)
        return SeededForm.of_rows(self.d, self.precision, indices, self.d / self.k)

    def compress(self, v, draw):
        return self.form(draw).take(v)

    @property
    def omega(self):
        return self.d / self.k - 1

    @property
    def density(self):
        return float(self.k)
"""
METHOD = """
@mpisim.method("mine")
class Mine(mpisim.Estimator):
    h_i = mpisim.PerWorker("what workers have sent")

    def start(self, x):
        self.h_i = 0 * self.oracle.gradients(x)
        return self.estimate(x)

    def estimate(self, x):
        m_i = self.compress(self.oracle.gradients(x) - self.h_i)
        g = self.star.average(m_i) + self.star.mean_of(self.h_i)
        self.h_i = m_i.add_to(self.h_i)
        return g
""".replace(" + self.star.mean_of(self.h_i)", "")
PROBLEM = """
@mpisim.problem("mine")
class Mine(mpisim.Problem):
    size: int = 3
    workers: int | None = None

    def load(self, n, first, count, seed, dtype):
        self.n, self.first, self.m, self.d, self.dtype = n, first, count, self.size, dtype
        self.rows, self.identical, self.identity = np.ones(count, np.int64), n == 1, "mine"
        self.shifts = np.arange(first, first + count)[:, None]

    def losses(self, x):
        return ((x - self.shifts) ** 2).sum(axis=1) / 2

    def gradients(self, x):
        return x - self.shifts

    def batch_gradients(self, x, batch):
        return self.gradients(x)
"""
APPENDS = """
        self.seen.append(1)
        return self.form(draw).take(v)

    def check(self):
        self.seen = []
"""
# A part, what is replaced by what, the check that must fail, and why.
MISTAKES = {
    "a missing scale": (
        COMPRESSOR,
        ("self.d / self.k)", "1.0)"),
        r"E C\(v\) = v",
        r"the mean of coordinate \d+ is \S+, not",
    ),
    "an omega that is too small": (
        COMPRESSOR,
        ("return self.d / self.k - 1", "return 0.9 * (self.d / self.k - 1)"),
        r"E C\(v\) = v",
        "on average, omega = 2.7",
    ),
    "the same coordinates for all": (
        COMPRESSOR,
        (
            "draw.subsets(self.d, self.k)",
            "np.tile(draw.block(0, 1).subsets(self.d, self.k), (draw.workers, 1))",
        ),
        r"E C\(v\) = v",
        "mean of coordinate|independently",
    ),
    "an alpha that is too large": (
        COMPRESSOR,
        (
            "    def density",
            "    def alpha(self):\n        return 0.5\n\n    @property\n    def density",
        ),
        r"\(1 - alpha\)",
        r"on average, 1 - alpha = 0\.5",
    ),
    "too few non-zeros": (
        COMPRESSOR,
        ("return float(self.k)", "return self.k - 0.5"),
        "zeta non-zeros",
        "3, zeta = 2.5",
    ),
    "a generator of its own": (
        COMPRESSOR,
        ("self.form(draw).take(v)", "self.form(draw).take(v + np.random.default_rng().normal())"),
        "the same draw gives the same message",
        "gives another message",
    ),
    "an attribute that is set": (
        COMPRESSOR,
        (
            "return self.form(draw).take(v)",
            "self.seen = v.sum()\n        return self.form(draw).take(v)",
        ),
        "keeps nothing",
        "its attribute 'seen' is set in a run, but a compressor has no state",
    ),
    "a list that grows": (
        COMPRESSOR,
        ("        return self.form(draw).take(v)", APPENDS),
        "keeps nothing",
        "its attribute seen.1 changes in a run",
    ),
    "messages kept outside": (
        COMPRESSOR,
        (
            "return self.form(draw).take(v)",
            "KEPT.append(draw.round)\n        return self.form(draw).take(v + len({*KEPT}))",
        ),
        "keeps nothing",
        "a message depends on those of earlier rounds",
    ),
    "the block's mean": (
        COMPRESSOR,
        ("take(v)", "take(v - v.mean(axis=0, keepdims=True))"),
        "the same on any rank",
        "workers in blocks of",
    ),
    "an error": (
        COMPRESSOR,
        ("take(v)", "take(v).no_such_thing"),
        "decode",
        r"plugin_\w+\.py:\d+: AttributeError: ",
    ),
    "state that is not declared": (
        METHOD,
        ("        self.h_i = 0", "        self.seen = []\n        self.h_i = 0"),
        "runs",
        r"'seen' is set in a run, but is not declared; write `seen = Shared\(\)`",
    ),
    "state that no checkpoint holds": (
        METHOD,
        ("return self.estimate(x)", "g, self.h_i = self.estimate(x), {1, 2}\n        return g"),
        "runs",
        r"Mine\.h_i: a checkpoint cannot hold a set",
    ),
    "state outside of the estimator": (
        METHOD,
        ("return g", "KEPT.append(1)\n        return g * len(KEPT)"),
        "two parts",
        "rounds/loss",
    ),
    "a wrong gradient": (
        PROBLEM,
        ("return x - self.shifts", "return x - 1.001 * self.shifts"),
        "slopes of the losses",
        "worker 1: f_i rises by",
    ),
    "a gradient of the block": (
        PROBLEM,
        ("return x - self.shifts", "return x - self.shifts + 1e-9 * self.m"),
        "same on any rank",
        "other gradients than in one block",
    ),
    "an array that is used again": (
        PROBLEM,
        (
            "return x - self.shifts",
            "self.out = getattr(self, 'out', np.empty((self.m, self.d)))\n"
            "        self.out[:] = x - self.shifts\n        return self.out",
        ),
        "results are the caller's",
        "a later call changes them",
    ),
    "a batch of half the size": (
        PROBLEM,
        ("return self.gradients(x)\n", "return self.gradients(x) / 2\n"),
        "all samples of a worker",
        "a batch of all samples",
    ),
    "an L that is too small": (
        PROBLEM,
        (
            "    def losses",
            "    def largest_hessian(self):\n"
            "        from types import SimpleNamespace\n"
            "        return SimpleNamespace(norms=lambda: np.full(self.m, 0.9))\n\n    def losses",
        ),
        "L_i",
        r"L_i = 0\.9",
    ),
    "f that is not convex": (
        PROBLEM,
        ("** 2).sum(axis=1) / 2", "** 2).sum(axis=1) / -2"),
        "what it says of f",
        "is not convex",
    ),
}
