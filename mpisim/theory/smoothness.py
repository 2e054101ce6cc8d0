"""Smoothness constants: L_i of f_i, L_- of f, L_+ and the Hessian variance L_± (PermK paper).

Let -M_i <= Hessian of f_i <= M_i everywhere. With M_i = B_i^T B_i, the Hessian is B_i^T C_i B_i,
|C_i| <= 1. So for every averaged Hessian H_i of Theorem 3

    |H_i u|^2 <= |B_i|^2 |B_i u|^2 = lambda_max(M_i) u^T M_i u,

which gives L_+^2 <= lambda_max((1/n) sum_i lambda_max(M_i) M_i), at most (1/n) sum L_i^2.
In L_± a penalty shared by all f_i cancels, so there M_i stands for the data's part alone. If the
Hessians lie between low M_i and high M_i, H_i = c M_i + E_i with c = (low + high) / 2 and
-h M_i <= E_i <= h M_i, h = (high - low) / 2. The standard deviation of a sum is at most the sum of
the standard deviations, so L_± <= |c| L_±(M) + h L_+, with L_±(M) of the quadratics u^T M_i u / 2.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from math import inf, sqrt
from typing import Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.numerics.eigen import eigvalsh, largest_eigenvalue
from mpisim.core.numerics.functions import power
from mpisim.core.protocols import ClosedForm, Collective, Matrices, Objective

OF_SAMPLES = "sup |phi''| max_t |a_t|^2 plus the penalty's curvature"
Bound = Literal["sharp", "published"]
Value = tuple[float, str, bool]  # a constant, its source, and whether it is sharp


@dataclasses.dataclass(frozen=True)
class Constants:
    """Smoothness constants of a problem, the same on every rank.

    Attributes
    ----------
    L_i : array, shape (n,)
        Of each f_i.
    L : float
        Of f (the PermK paper's ``L_-``).
    L_plus, L_pm : float
        ``L_+`` and ``L_±`` of the PermK paper, Assumption 2 and Definition 4.
    cal_L_i : array, shape (n,)
        max_j L_ij over a worker's samples, an upper bound of cal-L_i of MARINA's Assumption 3.1.
    mu : float or None
        Of strong convexity; None if f is not known to be strongly convex.
    source : dict
        Constant's name -> its source.
    sharp : dict
        Constant's name -> True if no smaller (for mu: larger) number is valid, False for a bound.
    """

    L_i: np.ndarray
    L: float
    L_plus: float
    L_pm: float
    cal_L_i: np.ndarray
    mu: float | None
    source: dict[str, str]
    sharp: dict[str, bool]


def constants(problem: Objective, star: Collective, bound: Bound = "sharp") -> Constants:
    """The constants of a loaded problem; collective. ``"published"``: those of the papers' code.

    `InputError` if nothing is known of the problem's Hessians. Correct to 1e-10, relative.
    """
    problem = problem.double()
    if bound == "published":
        return _published(problem, star)
    if (form := closed_form(problem)) is not None:
        return _of_closed_form(problem, form, star)
    matrices = problem.largest_hessian()
    norms = matrices.norms()
    smooth = _smooth(problem, matrices, star)
    plus = joint(problem, matrices, norms, smooth, star)
    return _constants(
        L_i=(star.all_workers(norms), *_attained(problem, "lambda_max(M_i)")),
        L=smooth,
        L_plus=plus,
        L_pm=variance(problem, matrices, norms, plus[0], star),
        cal_L_i=(star.all_workers(problem.sample_norms()), OF_SAMPLES, False),
        mu=_strong_convexity(problem, star, smooth[0]),
    )


def matrices(problem: Objective) -> np.ndarray:
    """M_i of this rank's workers, shape (m, d, d): the matrices L_i of SAQ.

    For logistic regression (1 / (4 r_i)) A_i^T A_i + l2 I.
    """
    problem = problem.double()
    largest = problem.largest_hessian()
    out = np.empty((problem.m, problem.d, problem.d))
    for i in range(problem.m):
        out[i] = largest.rows(i, 0, problem.d)
    return out


def _constants(**values) -> Constants:
    return Constants(
        **{name: value for name, (value, _, _) in values.items()},
        source={name: source for name, (_, source, _) in values.items()},
        sharp={name: sharp for name, (_, _, sharp) in values.items()},
    )


def _attained(problem: Objective, formula: str) -> tuple[str, bool]:
    if problem.attained == "nowhere":
        return f"{formula}, M_i a bound on the Hessians of f_i", False
    where = "everywhere" if problem.attained == "everywhere" else "at x = 0"
    return f"{formula}, M_i the Hessian of f_i {where}", True


def _top(
    times: Callable[[np.ndarray], np.ndarray], star: Collective, d: int, floor: float = 0.0
) -> float:
    """lambda_max of the mean over all workers of the matrices behind ``times``: (d,) -> (m, d)."""
    return largest_eigenvalue(lambda v: mean(star, times(v)), d, floor)


def _smooth(problem: Objective, matrices: Matrices, star: Collective) -> Value:
    norm = matrices.shared + _top(matrices.without_shared().times, star, problem.d)
    return norm, *_attained(problem, "lambda_max(mean M_i)")


def joint(
    problem: Objective, matrices: Matrices, norms: np.ndarray, smooth: Value, star: Collective
) -> Value:
    """L_+ of ``star``'s workers."""
    if problem.identical:
        return smooth[0], "L_+ = L, all f_i being the same", smooth[2]
    if problem.attained == "everywhere":
        square = _top(lambda v: matrices.times(matrices.times(v)), star, problem.d)
        return sqrt(square), "PermK paper, Theorem 3: lambda_max(mean M_i^2)^(1/2)", True
    square = _top(lambda v: norms[:, None] * matrices.times(v), star, problem.d)
    return sqrt(square), "lambda_max(mean L_i M_i)^(1/2), at most (mean L_i^2)^(1/2)", False


def variance(
    problem: Objective, matrices: Matrices, norms: np.ndarray, plus: float, star: Collective
) -> Value:
    """L_± of ``star``'s workers."""
    if problem.identical:
        return 0.0, "PermK paper, Example 1: all f_i are the same", True
    data = matrices.without_shared()
    floor = 1e-15 * power(plus, 2)  # rounding leaves this much of L_±^2

    def times(v: np.ndarray) -> np.ndarray:
        # (1/n) sum (M_i - M)^2 v, subtracting the products of M before they can cancel
        product = data.times(v)
        away = product - mean(star, product)
        return data.times(away) - data.times(mean(star, away))

    quadratic = sqrt(_top(times, star, problem.d, floor))
    if problem.attained == "everywhere":
        return quadratic, "PermK paper, Example 3: lambda_max(mean M_i^2 - M^2)^(1/2)", True
    norms = norms - matrices.shared
    bound = sqrt(_top(lambda v: norms[:, None] * data.times(v), star, problem.d, floor))
    low, high = problem.spread
    value = abs(low + high) / 2 * quadratic + (high - low) / 2 * bound
    return min(value, bound, plus), "|c| L_±(M) + h L_+, without the penalty", False


def _strong_convexity(problem: Objective, star: Collective, smooth: float):
    if not problem.convex:
        return None, "not convex", False
    matrices = problem.hessian(problem.initial_point())
    shared = matrices.shared
    if problem.attained != "everywhere" or problem.d > 1500:  # eigenvalues would take too long
        return shared or None, "the penalty's l2", False
    values = eigvalsh(mean_matrix(star, matrices.without_shared(), problem.d))
    rounding = problem.d * np.finfo(float).eps * smooth
    least = float(values[0]) if values[0] > rounding else 0.0
    return shared + least or None, "lambda_min(mean M_i)", True


def closed_form(problem: Objective) -> ClosedForm | None:
    """The problem's; `InputError` for another type, other than n L_i, or what is no constant."""
    form = problem.closed_form
    if form is None:
        return None
    where = f"problem {problem.name!r}: closed_form"
    if not isinstance(form, ClosedForm):
        raise InputError(f"{where} is of type {type(form).__name__}; allowed: a ClosedForm")
    for name in ("L_i", "L", "L_plus", "L_pm", "mu", "mu_i"):
        value, shape = getattr(form, name), (problem.n,) if name == "L_i" else ()
        least = -inf if name == "mu_i" else 0.0
        try:
            numbers = np.asarray(value or 0 if name == "mu" else value, float)
        except (TypeError, ValueError):
            numbers = np.array(np.nan)
        if numbers.shape != shape or not np.all((least <= numbers) & (numbers < inf)):
            allowed = f"finite numbers >= {least:g}, of shape {shape}"
            shown = " ".join(reprlib.repr(value).split())
            raise InputError(f"{where}.{name} is {shown}; allowed: {allowed}")
    return dataclasses.replace(form, L_i=np.asarray(form.L_i, float))


def _of_closed_form(problem: Objective, constants: ClosedForm, star: Collective) -> Constants:
    def closed(name: str) -> tuple[str, bool]:
        why = constants.source.get(name, f"closed_form of {problem.name!r}")
        return why, name in constants.source

    of_samples = constants.L_i, "L_i: a worker has one sample", closed("L_i")[1]
    if star.all_workers(problem.rows[:, None].astype(np.float64)).max() > 1:
        of_samples = star.all_workers(_sample_norms(problem)), "max_j L_ij", False
    return _constants(
        L_i=(constants.L_i, *closed("L_i")),
        L=(constants.L, *closed("L")),
        L_plus=(constants.L_plus, *closed("L_plus")),
        L_pm=(constants.L_pm, *closed("L_pm")),
        cal_L_i=of_samples,
        mu=(constants.mu or None, *closed("mu")),
    )


def _sample_norms(problem: Objective) -> np.ndarray:
    """max_j L_ij, shape (m,); NaN where the problem does not know them."""
    try:
        return problem.sample_norms()
    except InputError:
        return np.full(problem.m, np.nan)


def _published(problem: Objective, star: Collective) -> Constants:
    L_i = star.all_workers(problem.published_norms())
    top = float(L_i.max())
    if problem.published == "one":
        L_i = np.full(star.n, top)
        smooth = (top, "max L_i: MARINA's code has one L for all", False)
    elif problem.published == "mean":
        smooth = (float(L_i.mean()), "mean L_i: the PermK paper's code", False)
    else:
        smooth = _smooth(problem, problem.largest_hessian(), star)
    form = closed_form(problem)
    mu = form.mu if form is not None else 0.0
    if form is None and problem.convex:
        mu = problem.largest_hessian().shared
    rms = float(np.sqrt(np.mean(L_i**2)))
    return _constants(
        L_i=(L_i, "published code", False),
        L=smooth,
        L_plus=(rms, "(mean L_i^2)^(1/2): published code", False),
        L_pm=(rms, "L_+: published code", False),
        cal_L_i=(L_i, "L_i: published code", False),
        mu=(mu or None, "the penalty's l2, or lambda_min(mean A_i)", False),
    )


BLOCK = 1 << 23  # numbers of one exchange, over all workers


def mean(star: Collective, rows: np.ndarray) -> np.ndarray:
    """(1/n) sum_i rows_i of rows (m, k), shape (k,), on every rank."""
    return star.sum_over_workers(np.ascontiguousarray(rows, np.float64)) / star.n


def mean_matrix(star: Collective, matrices: Matrices, d: int) -> np.ndarray:
    """(1/n) sum_i H_i, shape (d, d), on every rank; a few rows at a time, to bound the memory."""
    height = min(d, max(1, BLOCK // (star.n * d)))
    out = np.empty((d, d))
    for start in range(0, d, height):
        stop = min(start + height, d)
        rows = np.empty((star.m, (stop - start) * d))
        for i in range(star.m):
            rows[i] = matrices.rows(i, start, stop).ravel()
        out[start:stop] = mean(star, rows).reshape(stop - start, d)
    return (out + out.T) / 2


def from_first(star: Collective, numbers: np.ndarray) -> np.ndarray:
    """``numbers`` (k,) of worker 0's rank, on every rank, bit for bit, but -0 becomes 0."""
    rows = np.zeros((star.m, len(numbers)))
    if star.first == 0 and star.m > 0:
        rows[0] = numbers
    return star.sum_over_workers(rows)
