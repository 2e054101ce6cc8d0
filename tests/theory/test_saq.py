"""SAQ's theorems by hand, derived in NumPy, and as `mpisim theory` prints them."""

import dataclasses
import tomllib
from itertools import pairwise
from math import ceil, log, sqrt

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.theory import saq
from mpisim.theory.smoothness import matrices
from tests.compressors.smooth_support import spd
from tests.helpers import set_up, some_of
from tests.theory.support import setting, theory


def diagonals(L: np.ndarray) -> np.ndarray:
    return L.diagonal(axis1=1, axis2=2)


def plus(cal_L=3.0, mu=0.01, **keys):
    return dataclasses.replace(setting(8.0, mu=mu, **keys), cal_L_max=cal_L, convex=True)


def test_rates_by_hand():
    """L = 4, n = 2: 1 / (4 + 6 * 3 / 2) = 1/13, and 1 / (4 + 2 * 3 / 2) = 1/7."""
    two = saq.theorem_2(plus(), 9.0)
    assert two.method == "DIANA+" and two.step.gamma == pytest.approx(1 / 13)
    assert two.rho == pytest.approx(0.01 / 13)
    assert two.e_fold == pytest.approx(1300, abs=1)
    assert two.rounds(1e-3) == ceil(log(1e3) / -log(1 - 0.01 / 13))
    one = saq.theorem_1(plus(), 9.0)
    assert one.method == "DCGD+" and one.step.gamma == pytest.approx(1 / 7)
    assert one.rho == pytest.approx(0.01 / 7)
    slow = saq.theorem_2(plus(mu=4.0), 99.0)  # alpha / 2 decides
    assert slow.rho == pytest.approx(1 / 200)
    assert saq.theorem_2(plus(mu=4.0), 99.0, alpha=0.002).rho == pytest.approx(0.001)
    plain = dataclasses.replace(plus(), cal_L_max=None)  # omega L_max = 56
    assert saq.theorem_2(plain, 8.0).step.gamma == pytest.approx(1 / (4 + 6 * 56 / 2))
    assert saq.theorem_1(plain, 8.0).method == "DCGD"
    assert saq.theorem_1(plain, 8.0).cal_L_max == 56


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_theorem_2_needs_a_small_alpha(alpha):
    with pytest.raises(InputError, match="0 < alpha <= 1 / "):
        saq.theorem_2(plus(), 9.0, alpha)


def fitted(theorem: int, row: np.ndarray, n: int, mu: float) -> tuple[float, float]:
    """omega_i and cal-L_i, straight from D.2, D.3, (25), (28), (10) and (14)."""
    d, A = row.size, row / (n * mu)
    if theorem in (5, 6):
        w = row if theorem == 5 else np.sqrt(1 + A**2)
        h = np.sqrt(w.sum() / w) / (d / n)
        return min((h**2).sum(), np.linalg.norm(h)), min(row @ h**2, np.linalg.norm(row * h))
    edges = [*[*range(0, d, d // n)][:n], d]
    sizes = np.diff(edges)
    norms = np.array([np.linalg.norm(row[a:b]) for a, b in pairwise(edges)])
    w = norms if theorem == 3 else np.sqrt(sizes) + norms / (n * mu)
    # sum 1/h^2 + sqrt(d_l)/h = d/n for h = delta / w: a polynomial in delta
    delta = max(np.roots([d / n, -(np.sqrt(sizes) * w).sum(), -(w**2).sum()]).real)
    h = delta / w
    assert (1 / h**2 + np.sqrt(sizes) / h).sum() == pytest.approx(d / n)
    traces = np.array([row[a:b].sum() for a, b in pairwise(edges)])
    pairs = (h**2 * sizes, h * np.sqrt(sizes)), (h**2 * traces, h * norms)
    return tuple(np.minimum(*pair).max() for pair in pairs)


SIZES = [(3, 12), (4, 14), (2, 3), (5, 25)]


@pytest.mark.parametrize(("n", "d"), SIZES)
@some_of(8, theorem=saq.THEOREMS, mu=[1e-3, 0.3])
def test_fits_are_the_appendices(theorem, n, d, mu):
    quantizers = saq.Quantizers(n, d, mu)
    for row in diagonals(spd(n, d)):
        fit, (omega, cal_L) = quantizers.fit(theorem, row), fitted(theorem, row, n, mu)
        assert fit.omega == pytest.approx(omega) and fit.cal_L == pytest.approx(cal_L)
        goal = cal_L / (n * mu) + (omega if theorem in (4, 6) else 0)
        assert fit.goal == pytest.approx(goal)


def test_bounds_by_nu_1_are_the_appendices():
    """For d_l = d / n: D.2 ends with 2 nu_1 kappa / sqrt(n d), and D.3 to E.4 likewise."""
    n, d, mu, nu_1, L_max = 4, 36, 0.01, 3.0, 2.0
    quantizers, kappa = saq.Quantizers(n, d, mu), L_max / mu
    expected = {
        3: 2 * nu_1 * kappa / sqrt(n * d),
        4: 2 * n * (1 + nu_1 * kappa / (n * sqrt(n * d)))
        + 2 * sqrt(n) * (1 + nu_1 * kappa / (n * sqrt(d))),
        5: nu_1 * kappa / d,
        6: sqrt(2) * n + sqrt(2) * nu_1 * kappa / d,
    }
    for theorem, value in expected.items():
        assert quantizers.bound(theorem, nu_1, L_max) == pytest.approx(value), theorem
    orders = {3: 50.0, 4: 4 + 50 + 200 / 12, 5: 50 + 200 / 36, 6: 4 + 50 + 200 / 36}
    for theorem, value in orders.items():
        assert quantizers.order(theorem, L_max) == pytest.approx(value), theorem


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("theorem", saq.THEOREMS)
def test_each_bound_is_above_the_one_before(theorem, n, d):
    """goal <= bound by T_B, T_1 and the trace <= bound by nu_1; L <= nu L_max / n: (21)."""
    for seed in range(5):
        L, mu = spd(n, d, seed), 10.0 ** -(seed % 5)
        quantizers, rows = saq.Quantizers(n, d, mu), diagonals(L)
        L_i = np.linalg.eigvalsh(L)[:, -1]
        largest = max(saq.nu_1(row) for row in rows)
        for row in rows:
            fit = quantizers.fit(theorem, row)
            assert fit.goal <= fit.bound * (1 + 1e-12)
            assert fit.bound <= quantizers.bound(theorem, largest, L_i.max()) * (1 + 1e-12)
        top = np.linalg.eigvalsh(L.mean(axis=0))[-1]
        assert top <= saq.nu(L_i) * L_i.max() / n * (1 + 1e-12)


LOGISTIC = "problem={ name = 'logistic', data = 'sample', l2 = 0.01, workers = 5 }"
QUANT = "compressor={ name = 'smooth', inner = { name = 'quant-plus' } }"
RANDK = "compressor={ name = 'randk', k = 30 }"
DIANA = "method={ name = 'diana', stepsize = 'theory' }"
DCGD = "method={ name = 'dcgd', stepsize = 'theory' }"


def report(capsys, *words: str) -> str:
    return theory(capsys, *words, "run.rounds=1", epsilon="0.001")


def line(text: str, *start: str) -> list[str]:
    """The cells of the first line that begins with these."""
    lines = [one.split() for one in text.split("SAQ paper, constants")[1].splitlines()]
    wanted = " ".join(start).split()
    return next(cells for cells in lines if cells[: len(wanted)] == wanted)


class Derived:
    """The setting of `report` in NumPy, with the compressor's own cal-L_i and omega."""

    def __init__(self, *words: str):
        e = set_up(tomllib.loads("\n".join([*words, "run.rounds=0"])))
        self.compressor, self.n, self.mu = e.compressor, 5, 0.01
        self.M = matrices(e.problem)
        self.tops = np.linalg.eigvalsh(self.M)[:, -1]
        self.L = np.linalg.eigvalsh(self.M.mean(axis=0))[-1]
        x_star = e.cache.minimiser(e.star)[0]
        self.start = np.sum((e.problem.initial_point() - x_star) ** 2)
        self.at_star = e.problem.double().gradients(x_star)


def test_row_of_diana_plus(capsys):
    text = report(capsys, LOGISTIC, DIANA, QUANT)
    s = Derived(LOGISTIC, DIANA, QUANT)
    cal_L, omega = s.compressor.cal_L_max, s.compressor.inner.omega
    gamma = 1 / (s.L + 6 * cal_L / s.n)
    rho = min(gamma * s.mu, 0.5 / (1 + omega))
    row = line(text, "Theorem 2 DIANA+ smooth(quant-plus)")[4:]
    expected = [omega, cal_L, gamma, -1 / np.log1p(-rho), np.ceil(np.log(1000) / -np.log1p(-rho))]
    assert [float(x) for x in row] == pytest.approx(expected, rel=1e-3)
    squares = [g @ np.linalg.solve(M, g) for g, M in zip(s.at_star, s.M, strict=True)]
    phi = s.start + 4 * cal_L * (1 + omega) / s.n * gamma**2 * np.mean(squares)
    assert float(line(text, "Phi^0")[1]) == pytest.approx(phi / s.start, rel=1e-4)
    assert phi / s.start > 1.0001
    theory = line(text, "Theorem 6 DIANA+ quant+")[4:]  # the same, without rounding on the wire
    assert [float(x) for x in theory] == pytest.approx(expected, rel=1e-3)
    tables = text.split("SAQ paper, constants")[0]
    assert "SAQ's Theorem 2" in tables and "  DIANA  " not in tables


@pytest.mark.parametrize("compressor", [QUANT, RANDK], ids=["plus", "plain"])
def test_floor_of_dcgd(capsys, compressor):
    text = report(capsys, LOGISTIC, DCGD, compressor)
    s, name = Derived(LOGISTIC, DCGD, compressor), "DCGD randk"
    cal_L, squares = (123 / 30 - 1) * s.tops, (s.at_star**2).sum(axis=1) / s.tops
    if compressor is QUANT:
        name = "DCGD+ smooth(quant-plus)"
        cal_L = np.array([s.compressor.inner.cal_L(M, i) for i, M in enumerate(s.M)])
        squares = [g @ np.linalg.solve(M, g) for g, M in zip(s.at_star, s.M, strict=True)]
    sigma, gamma = np.mean(cal_L * squares), 1 / (s.L + 2 * cal_L.max() / s.n)
    assert float(line(text, "sigma*_+")[1]) == pytest.approx(sigma, rel=1e-4)
    floor = 2 * gamma * sigma / (s.mu * s.n) / s.start
    assert float(line(text, "floor")[1]) == pytest.approx(floor, rel=1e-4)
    assert float(line(text, f"Theorem 1 {name}")[6]) == pytest.approx(gamma, rel=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((LOGISTIC.replace("0.01", "0.0"), DIANA, QUANT), True),
        ((LOGISTIC.replace("logistic", "nonconvex-loss"), DIANA, RANDK), True),
        ((LOGISTIC, "method={ name = 'marina', stepsize = 0.1 }", RANDK), False),
        ((LOGISTIC, DIANA, "method.optimizer=heavy-ball", "method.stepsize=0.1", RANDK), False),
    ],
)
def test_where_the_theorems_say_nothing(capsys, words, said):
    """Why, in a report on the methods that they are about; else nothing at all."""
    text = report(capsys, *words)
    assert ("none: f must be strongly convex" in text) == ("SAQ paper" in text) == said
