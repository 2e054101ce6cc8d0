"""Whole runs of DCGD+ and DIANA+: reductions, bits of real messages, set-up, step sizes, resume."""

import numpy as np
import pytest

from tests.compressors.smooth_support import name_of, smooth
from tests.helpers import dense, run_tables, table

LOGISTIC = {"name": "logistic", "l2": 1e-3, "split": "sorted-by-norm", "scale": "row-max-abs"}
DIANA = {"name": "diana", "stepsize": "theory"}
DCGD = {"name": "dcgd", "stepsize": "theory"}


def run(method, compressor, **keys):
    keys = {"problem": LOGISTIC, "rounds": 12, "workers": 6} | keys
    return run_tables(table(method, compressor, **keys))


@pytest.fixture
def identity_data(tmp_path, monkeypatch):
    """Rows 2 sqrt(d) e_j: (1 / 4d) A^T A = I for every worker that has all d of them."""
    d, rng = 8, np.random.default_rng(0)
    path = tmp_path / "identity"
    places = [(j, label) for _ in range(3) for j, label in enumerate(rng.choice([-1, 1], d))]
    rows = (f"{label} {j + 1}:{2 * np.sqrt(d):.17g}\n" for j, label in places)
    path.write_text("".join(rows))
    return str(path)


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "inner",
    [
        {"name": "qsgd", "s": 1},
        {"name": "randk", "k": 3},
        {"name": "rand-tau", "tau": 2},
        {"name": "quant-plus", "beta": 3.0},
        {"name": "block-quant", "blocks": 2, "s": 1},
    ],
    ids=name_of,
)
@pytest.mark.parametrize("method", [DIANA, DCGD, {"name": "marina", "stepsize": "theory"}])
def test_with_identity_matrices_it_is_the_inner_one(identity_data, inner, method):
    """DIANA+ is DIANA, DCGD+ is DCGD: cal-L = omega where RandK's and QSGD's bound says so."""
    how = {"problem": {"name": "logistic", "data": identity_data}, "workers": 3, "rounds": 40}
    plus, plain = (run(method, c, wire="float64", **how) for c in (smooth(inner), inner))
    assert np.linalg.norm(plain.x) > 0.1
    np.testing.assert_allclose(plus.x, plain.x, rtol=1e-10, atol=1e-12)


def test_theory_steps():
    """1 / (L + 2 cal-L_max / n), 1 / (L + 6 cal-L_max / n) and 1 / (1 + omega_max), by NumPy."""
    rows, _ = dense("sample")
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    rows = rows[np.argsort(np.linalg.norm(rows, axis=1), kind="stable")]
    m, d, n, l2 = len(rows) // 6, 123, 6, 1e-3
    L_i = np.array([a.T @ a / (4 * m) for a in rows[: m * 6].reshape(6, m, d)]) + l2 * np.eye(d)
    L = np.linalg.eigvalsh(L_i.mean(axis=0))[-1]
    diagonals = L_i.diagonal(axis1=1, axis2=2)
    beta, cal_L, omega, cal_L_dcgd = d / n, [], [], []
    for row in diagonals:
        q = np.sqrt(1 + (row / (n * l2)) ** 2)
        h = np.sqrt(q.sum() / q) / beta
        cal_L.append(min((row * h**2).sum(), np.linalg.norm(row * h)))
        omega.append(min((h**2).sum(), np.linalg.norm(h)))
        h = np.sqrt(row.sum() / row) / beta
        cal_L_dcgd.append(min((row * h**2).sum(), np.linalg.norm(row * h)))
    end = run(DIANA, smooth({"name": "quant-plus"}), rounds=0).attributes
    assert end["stepsize"] == pytest.approx(1 / (L + 6 * max(cal_L) / n), rel=1e-5)
    assert end["method_alpha"] == pytest.approx(1 / (1 + max(omega)), rel=1e-5)
    assert "Theorem 2 (DIANA+)" in end["stepsize_source"]
    end = run(DCGD, smooth({"name": "quant-plus", "scheme": "dcgd"}), rounds=0).attributes
    assert end["stepsize"] == pytest.approx(1 / (L + 2 * max(cal_L_dcgd) / n), rel=1e-5)
    assert "Theorem 1 (DCGD+)" in end["stepsize_source"]
