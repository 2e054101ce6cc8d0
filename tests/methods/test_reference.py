"""Trajectories against plain, independent NumPy loops, on real data where it is."""

import numpy as np
import pytest

from tests.helpers import dense_nonconvex, run_tables, table

ROUNDS = 100


def gd(grads, x, gamma, d, n):
    for _ in range(ROUNDS):
        x = x - gamma * np.mean(grads(x), axis=0)
    return x


def top(v, k):
    """Row-wise TopK; ties: the lower index wins."""
    kept = np.zeros_like(v)
    for i, row in enumerate(v):
        best = sorted(range(len(row)), key=lambda j: (-abs(row[j]), j))[:k]
        kept[i, best] = row[best]
    return kept


def ef21(grads, x, gamma, d, n, k=5):
    g_i = grads(x)
    for _ in range(ROUNDS):
        x = x - gamma * np.mean(g_i, axis=0)
        g_i = g_i + top(grads(x) - g_i, k)
    return x


def ef(grads, x, gamma, d, n, k=5):
    e_i = np.zeros((n, d))
    for _ in range(ROUNDS):
        v = e_i + grads(x)
        c = top(v, k)
        e_i = v - c
        x = x - gamma * np.mean(c, axis=0)
    return x


def diana(grads, x, gamma, d, n, alpha=0.25):
    h_i = np.zeros((n, d))
    for _ in range(ROUNDS):
        m_i = grads(x) - h_i
        x = x - gamma * (np.mean(h_i, axis=0) + np.mean(m_i, axis=0))
        h_i = h_i + alpha * m_i
    return x


CASES = [
    ("gd", {"name": "gd"}, None, gd),
    ("ef21", {"name": "ef21"}, {"name": "topk", "k": 5}, ef21),
    ("ef", {"name": "ef"}, {"name": "topk", "k": 5}, ef),
    ("diana", {"name": "diana", "alpha": 0.25}, {"name": "identity"}, diana),
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("data", ["sample", "mushrooms", "a9a"])
@pytest.mark.parametrize(("name", "method", "compressor", "loop"), CASES, ids=[c[0] for c in CASES])
def test_trajectory(data, name, method, compressor, loop, need_data):
    need_data(data)
    tables = table(
        method | {"stepsize": 0.5}, compressor, data=data, workers=5, rounds=ROUNDS, wire="float64"
    )
    result = run_tables(tables)
    grads, d = dense_nonconvex(data, 5)
    x = loop(grads, np.zeros(d), 0.5, d, 5)
    assert np.linalg.norm(result.x - x) <= 1e-9 * np.linalg.norm(x)


def final(method, compressor, **run):
    return run_tables(
        table(method | {"stepsize": 0.5}, compressor, data="sample", workers=6, rounds=30, **run)
    ).x


def test_float32_wire_changes_little_but_something():
    wide, narrow = (final({"name": "gd"}, None, wire=w) for w in ("float64", "float32"))
    assert 0 < np.linalg.norm(wide - narrow) < 1e-6 * np.linalg.norm(wide)
