"""`mpisim check` passes what mpisim has and what its templates make, and sees each mistake."""

from __future__ import annotations

import re
import sys

import pytest

from mpisim.analysis.plugin import ranks, registered
from mpisim.analysis.plugin.check import check
from mpisim.analysis.plugin.outcome import NotChecked
from mpisim.analysis.plugin.problem import checks as problem_checks
from mpisim.cli import main
from mpisim.core.schema import build
from mpisim.methods.names import METHODS
from mpisim.problems import PROBLEMS

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
    "state that no checkpoint holds": (
        METHOD,
        ("        self.h_i = 0", "        self.seen = []\n        self.h_i = 0"),
        "runs",
        "'seen' changes from round to round, but is a list",
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


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """plugin(text): the path of a file with it; what it registers is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)

    def make(text: str, name: str):
        path = tmp_path / f"plugin_{re.sub(r'[^a-z]', '_', name)}.py"
        path.write_text(HEAD + text)
        return path

    yield make
    for names in registered.KINDS.values():
        for own, cls in names.loaded().items():
            if cls.__module__.startswith("plugin_"):
                del names[own]
    METHODS.pop("mine", None)
    for name in [name for name in sys.modules if name.startswith("plugin_")]:
        del sys.modules[name]


@pytest.fixture
def one_process(monkeypatch):
    """No mpirun."""

    def none(folder):
        raise NotChecked("there is no mpirun on PATH")

    monkeypatch.setattr(ranks, "start", none)


def failed(outcomes) -> dict[str, str]:
    return {one.what: one.why for one in outcomes if one.failed}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_seen(name, plugin, one_process):
    text, (right, wrong), what, why = MISTAKES[name]
    assert right in text
    wrong_text = text.replace(right, wrong)
    if name == "f that is not convex":
        wrong_text = wrong_text.replace("return x - self", "return -x + self")
        wrong_text = wrong_text.replace("    size:", "    convex = True\n    size:")
    found = failed(check(plugin(wrong_text, name)))
    reasons = [found[key] for key in found if re.search(what, key)]
    assert reasons and re.search(why, reasons[0]), found
    assert "\n" not in reasons[0]


def test_what_is_right_passes(plugin, one_process, capsys):
    text = COMPRESSOR + METHOD.replace("Mine", "Ours") + PROBLEM.replace("Mine", "Squares")
    assert main(["check", str(plugin(text, "right"))]) == 0
    said = capsys.readouterr().out
    assert " 0 failed, " in said and said.count("there is no mpirun on PATH") == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "registers nothing; expected: a compressor, estimator"),
        (
            COMPRESSOR.replace("k: int", "k: dict").replace('    examples = ({"k": 3},)\n', ""),
            "compressor 'mine': the key 'k' has no default, so its class must say what to try",
        ),
        ("1 / 0", "cannot be loaded: "),
    ],
)
def test_bad_input_is_one_line(text, said, plugin, capsys):
    assert main(["check", str(plugin(text, "bad"))]) == 2
    line = capsys.readouterr().err.rstrip("\n")
    assert said in line and "\n" not in line


def test_a_failure_is_exit_code_1(plugin, one_process, capsys):
    text, (right, wrong), *_ = MISTAKES["an alpha that is too large"]
    assert main(["check", str(plugin(text.replace(right, wrong), "alpha"))]) == 1
    assert re.search(
        r"^failed +compressor mine \(k = 3\): E", capsys.readouterr().out, re.MULTILINE
    )


OURS = {
    "quadratic": {"dimension": 12, "noise": 0.3, "lambda_": 0.01},
    "autoencoder": {"data": "sample", "images": 40, "code_size": 2},
    "logistic": {"data": "sample", "l2": 0.01},
    "nonconvex-loss": {"data": "sample"},
    "logistic-nonconvex-reg": {"data": "sample"},
    "least-squares": {"data": "sample"},
}


@pytest.mark.parametrize("name", OURS)
def test_our_problems_pass(name):
    table = {key.rstrip("_"): value for key, value in OURS[name].items()}
    for what, run in problem_checks(build(PROBLEMS[name], table, "problem")):
        try:
            assert run() == "", what
        except NotChecked:
            assert "L_i" in what or "what it says" in what
