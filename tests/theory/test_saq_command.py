"""What `mpisim theory` prints of SAQ's theorems, against NumPy."""

import json

import numpy as np
import pytest
from mpi4py import MPI

from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from mpisim.theory.smoothness import matrices
from tests.helpers import table
from tests.theory.support import theory

PROBLEM = {"name": "logistic", "data": "sample", "l2": 0.01}
QUANT = {"name": "smooth", "inner": {"name": "quant-plus"}}


def report(capsys, method: dict, compressor: dict, problem: dict = PROBLEM) -> str:
    tables = {"problem": problem | {"workers": 5}, "method": {"stepsize": "theory"} | method}
    tables |= {"compressor": compressor, "run": {"rounds": 1}}
    settings = [f"{name}={inline(keys)}" for name, keys in tables.items()]
    return theory(capsys, *settings, epsilon="0.001")


def inline(value) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{" + ", ".join(f"{key} = {inline(x)}" for key, x in value.items()) + "}"


def line(text: str, *start: str) -> list[str]:
    """The cells of the first line that begins with these."""
    lines = [one.split() for one in text.split("SAQ paper, constants")[1].splitlines()]
    wanted = " ".join(start).split()
    return next(cells for cells in lines if cells[: len(wanted)] == wanted)


class Derived:
    """The setting of `report` in NumPy, with the compressor's own cal-L_i and omega."""

    def __init__(self, method: dict, compressor: dict):
        tables = table({"stepsize": 1.0} | method, compressor, workers=5, rounds=0, problem=PROBLEM)
        e = Setup(parse(tables), MPI.COMM_SELF)
        self.compressor, self.n, self.mu = e.compressor, 5, 0.01
        self.M = matrices(e.problem)
        self.tops = np.linalg.eigvalsh(self.M)[:, -1]
        self.L = np.linalg.eigvalsh(self.M.mean(axis=0))[-1]
        x_star = e.cache.minimiser(e.star)[0]
        self.start = np.sum((e.problem.initial_point() - x_star) ** 2)
        self.at_star = e.problem.double().gradients(x_star)


def test_own_row_of_diana_plus(capsys):
    text = report(capsys, {"name": "diana"}, QUANT)
    s = Derived({"name": "diana"}, QUANT)
    cal_L, omega = s.compressor.cal_L_max, s.compressor.inner.omega
    gamma = 1 / (s.L + 6 * cal_L / s.n)
    rho = min(gamma * s.mu, 0.5 / (1 + omega))
    own = line(text, "Theorem 2 DIANA+ smooth(quant-plus)")[4:]
    expected = [omega, cal_L, gamma, -1 / np.log1p(-rho), np.ceil(np.log(1000) / -np.log1p(-rho))]
    assert [float(x) for x in own] == pytest.approx(expected, rel=1e-3)
    squares = [g @ np.linalg.solve(M, g) for g, M in zip(s.at_star, s.M, strict=True)]
    phi = s.start + 4 * cal_L * (1 + omega) / s.n * gamma**2 * np.mean(squares)
    assert float(line(text, "Phi^0")[1]) == pytest.approx(phi / s.start, rel=1e-4)
    assert phi / s.start > 1.0001
    theory = line(text, "Theorem 6 DIANA+ quant+")[4:]  # the same, without rounding on the wire
    assert [float(x) for x in theory] == pytest.approx(expected, rel=1e-3)
    tables = text.split("SAQ paper, constants")[0]
    assert "SAQ's Theorem 2" in tables and "  DIANA  " not in tables


@pytest.mark.parametrize("compressor", [QUANT, {"name": "randk", "k": 30}], ids=["plus", "plain"])
def test_floor_of_dcgd(capsys, compressor):
    text = report(capsys, {"name": "dcgd"}, compressor)
    s = Derived({"name": "dcgd"}, compressor)
    if compressor is QUANT:
        cal_L = [s.compressor.inner.cal_L(M, i) for i, M in enumerate(s.M)]
        squares = [g @ np.linalg.solve(M, g) for g, M in zip(s.at_star, s.M, strict=True)]
        worst = max(cal_L)
    else:
        omega = 123 / 30 - 1
        cal_L, squares = omega * s.tops, (s.at_star**2).sum(axis=1) / s.tops
        worst = omega * s.tops.max()
    sigma = np.mean(np.array(cal_L) * squares)
    gamma = 1 / (s.L + 2 * worst / s.n)
    assert float(line(text, "sigma*_+")[1]) == pytest.approx(sigma, rel=1e-4)
    floor = 2 * gamma * sigma / (s.mu * s.n) / s.start
    assert float(line(text, "floor")[1]) == pytest.approx(floor, rel=1e-4)
    name = "DCGD+ smooth(quant-plus)" if compressor is QUANT else "DCGD randk"
    assert float(line(text, f"Theorem 1 {name}")[6]) == pytest.approx(gamma, rel=1e-4)


def test_where_the_theorems_say_nothing(capsys):
    none = "none: f must be strongly convex"
    assert none in report(capsys, {"name": "diana"}, QUANT, PROBLEM | {"l2": 0.0})
    loss = {"name": "nonconvex-loss", "data": "sample"}
    assert none in report(capsys, {"name": "diana"}, {"name": "randk", "k": 9}, loss)
    randk, heavy = {"name": "randk", "k": 9}, {"optimizer": "heavy-ball", "stepsize": 0.1}
    others = [({"name": "gd"}, {"name": "identity"}), ({"name": "marina"}, randk)]
    for method, compressor in [*others, ({"name": "diana"} | heavy, randk)]:
        assert "SAQ paper" not in report(capsys, method, compressor)
