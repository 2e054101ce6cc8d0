"""DCGD+ and DIANA+ contract as their theorems say, and break at a multiple of the step."""

import numpy as np
import pytest

from mpisim.core.numerics.eigen import eigh
from mpisim.runs.setup import ProblemCache
from mpisim.theory.smoothness import matrices
from tests.theory.test_lyapunov import LOGISTIC, Round, at, engine, excess, trajectory

MU, N = LOGISTIC["l2"], 5
QUANT = {"name": "quant-plus", "beta": 5.0}
BLOCKS = {"name": "block-quant-plus", "blocks": 5}
RAND = {"name": "rand-tau-plus", "tau": 6.0}
DIAGONAL = {"approximation": "diagonal"}


@pytest.fixture(autouse=True, scope="module")
def _eigenvectors_once():
    """The matrices are the same for all seeds, and their eigenvectors take half the time."""
    made: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def once(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = matrix.tobytes()
        if key not in made:
            made[key] = eigh(matrix)
        return made[key]

    patch = pytest.MonkeyPatch()
    patch.setattr("mpisim.compressors.matrix_roots.eigh", once)
    yield
    patch.undo()


def plus(inner: dict, **keys) -> dict:
    return {"name": "smooth", "inner": inner} | keys


def diana_case(inner: dict, multiple: float, **keys) -> float:
    """Phi^k / ((1 - min(gamma mu, alpha / 2))^k Phi^0) of SAQ's Theorem 2, at most 1 on average.

    Phi = |x - x*|^2 + (4 cal-L_max / (alpha n)) gamma^2 mean |h_i - grad f_i(x*)|^2 in the norm of
    L_i^†.
    """
    loaded = ProblemCache()
    minimum: list[np.ndarray] = []  # x*, the gradients there and L_i^-1: the same for all seeds

    def run(seed: int) -> np.ndarray:
        smooth = plus(inner, **keys)
        e = engine(at({"name": "diana"}, multiple), smooth, LOGISTIC, loaded, seed)
        gamma, alpha = e.step.gamma, e.estimator.alpha
        weight = 4 * e.compressor.cal_L_max / (alpha * N) * gamma**2
        if not minimum:
            minimum.extend(at_minimiser(e, loaded, keys))
        x_star, at_star, inverses = minimum

        def phi(r: Round) -> float:
            away = r.shift - at_star
            sigma = np.mean(np.einsum("nd,nde,ne->n", away, inverses, away))
            return float(np.sum((r.x - x_star) ** 2) + weight * sigma)

        values = np.array([phi(r) for r in trajectory(e, 30, "h_i")])
        rate = 1 - min(gamma * MU, alpha / 2)
        return values / (values[0] * rate ** np.arange(31))

    return excess(run)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("inner", "keys", "multiple"),
    [(QUANT, {}, 12.0), (BLOCKS, {}, 12.0), (RAND, {}, None), (QUANT, DIAGONAL, 40.0)],
    ids=str,
)
def test_diana_plus(inner, keys, multiple):
    """Theorems 6 and 4, and Theorem 2 with any other compressor."""
    assert diana_case(inner, 1.0, **keys) < 4
    assert multiple is None or diana_case(inner, multiple, **keys) > 5


def at_minimiser(e, loaded: ProblemCache, keys: dict) -> list[np.ndarray]:
    """x*, the gradients of all f_i there, and L_i^-1."""
    x_star = loaded.minimiser(e.star)[0]
    L = matrices(e.problem)
    if keys:  # SAQ, A.3: a diagonal matrix above each
        L = np.array([np.diag(np.abs(one).sum(axis=1)) for one in L])
    return [x_star, e.problem.gradients(x_star), np.linalg.inv(L)]
