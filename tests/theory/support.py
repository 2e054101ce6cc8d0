"""Settings with round numbers, and the calligraphic L of quantization by enumeration."""

from itertools import product
from math import ceil

import numpy as np

from mpisim.cli import main
from mpisim.theory import tables
from mpisim.theory.setting import Setting
from mpisim.theory.smoothness import Constants
from mpisim.theory.tables import Case, Guarantee
from tests.helpers import settings as words_of


def constants(L_i=(1.0, 7.0), L=4.0, L_plus=5.0, cal_L_i=(2.0, 14.0), mu=None) -> Constants:
    """MARINA's L is 5, its calligraphic L is 10, max L_i is 7."""
    of_workers = np.array(L_i), L, L_plus, 0.0, np.array(cal_L_i)
    return Constants(*of_workers, mu, source={}, sharp={"L": True})


def setting(omega=None, alpha=None, zeta=4.0, n=2, d=8, condition="nonconvex", **c) -> Setting:
    """n = 2 workers in d = 8 dimensions."""
    A, B = (None, None) if omega is None else (omega / n, 0.0)
    return Setting(n, d, False, constants(**c), omega, alpha, zeta, condition, A, B)


SAMPLE = ("problem.data=sample", "problem.workers=5", "run.rounds=1")


def theory(capsys, *settings: str, epsilon: str = "0.01") -> str:
    """What `mpisim theory` prints."""
    assert main(["theory", "--epsilon", epsilon, *words_of(*settings)]) == 0
    return capsys.readouterr().out


def true_cal_L(diagonal: np.ndarray, h: np.ndarray) -> tuple[float, np.ndarray]:
    """cal-L(Q_h, L) and where it is attained: v, shape (d,), |v| = 1."""
    best, where = -1.0, np.zeros(h.size)
    for cell in product(*(range(ceil(1 / step)) for step in h)):
        low, high = np.array(cell) * h, (np.array(cell) + 1) * h
        if (low**2).sum() <= 1 <= (high**2).sum():
            v = _best_in_cell(diagonal, low, high)
            value = float((diagonal * (v - low) * (high - v)).sum())
            if value > best:
                best, where = value, v
    return best, where


def _best_in_cell(diagonal, low, high):
    left, right = -float(diagonal.max()), 1e9
    for _ in range(200):
        middle = (left + right) / 2
        slope = diagonal + middle
        v = np.where(slope > 0, diagonal * (low + high) / (2 * np.where(slope > 0, slope, 1)), high)
        v = np.clip(v, low, high)
        left, right = (middle, right) if (v**2).sum() > 1 else (left, middle)
    return v


def by_name(case: Case, *rows: Guarantee) -> dict:
    """The table with a method's rows."""
    table = tables.merged(tables.rows(case)[0], rows)
    return {f"{one.setup} {one.method}": one for one in table}


STANDARD = {"rows": np.array([100, 100]), "delta": 3.0, "epsilon": 0.1}


def case(omega=8.0, **keys) -> Case:
    """m = 100, Delta_0 = 3, epsilon = 0.1; the constants and n, d as `support` says."""
    of_setting = {k: keys.pop(k) for k in ("condition", "mu", "alpha", "zeta", "n") if k in keys}
    return Case(setting(omega, **of_setting), **(STANDARD | keys))
