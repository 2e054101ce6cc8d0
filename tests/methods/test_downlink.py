"""Messages down: compressed, one for all or another for each worker, against plain NumPy loops."""

from functools import partial

import numpy as np
import pytest

from tests.helpers import run_tables, set_up
from tests.methods import loops
from tests.methods.loops import Loop, N, top

ROUNDS, GAMMA = 25, 0.3
TOPK, RANDK = {"name": "topk", "k": 5}, {"name": "randk", "k": 20}
tables = partial(loops.tables, rounds=ROUNDS)


def ef21_p(loop, alpha, down):
    x, w, h = np.zeros(loop.d), np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        w = w + top((x - w)[None], down["k"])[0]
        m = loop.randk(loop.every(w) - h, "up")
        x = x - GAMMA * (h + m).mean(axis=0)
        h = h + alpha * m
    return x


def marina_p(loop, p, down):
    """x^T; ``loop.w``: the w_i of the last round."""
    x, w = np.zeros(loop.d), np.zeros((N, loop.d))
    old = x
    for loop.k in range(ROUNDS):
        if loop.k > 0:
            step = np.tile(x - old, (N, 1))
            w = np.tile(x, (N, 1)) if loop.coin(p) else w + loop.randk(step, "down", down["k"])
        old, x = x, x - GAMMA * loop.gradients(w).mean(axis=0)
    loop.w = w
    return x


MARINA_P = {"down": RANDK, "p": 0.2}
CASES = {  # test_shifts.py runs them with its own
    "ef21-p": (ef21_p, {"down": TOPK, "alpha": 0.1}, RANDK),
    "marina-p": (marina_p, MARINA_P, None),
}


def test_columns_of_the_points_of_the_workers():
    """The mean of f_i(w_i), and of |w_i - x|^2, of the last round."""
    run, loop = {"columns": ["points"], "log_every": ROUNDS}, Loop()
    rows = run_tables(tables({"name": "marina-p"} | MARINA_P, **run), keep=True).columns
    x = marina_p(loop, **MARINA_P)
    a, y = (part[: N * loop.m].reshape(N, loop.m, -1) for part in (loop.a, loop.y))
    f = np.log1p(np.exp(-y * (a @ loop.w[:, :, None]))).mean(axis=(1, 2))
    f += 0.05 * (loop.w**2).sum(axis=1)
    assert np.isnan(rows["points_loss"][0])
    assert rows["points_loss"][-1] == pytest.approx(f.mean(), rel=1e-12)
    spread = ((loop.w - x) ** 2).sum(axis=1).mean()
    assert rows["points_spread"][-1] == pytest.approx(spread, rel=1e-10) and spread > 1e-6


MESSAGES = [  # bits of all of a round, None where lengths differ
    ({"name": "permk"}, 64 * 20),  # all parts together are one vector
    ({"name": "randk", "k": 3}, 64 * 3 * N),
    ({"name": "identity"}, 64 * 20 * N),
    ({"name": "qsgd", "s": 3}, None),
]


@pytest.mark.parametrize(("compressor", "bits"), MESSAGES, ids=str)
def test_each_worker_is_sent_another_message(compressor, bits):
    """Rows of C_i(v): their mean over many rounds is v, and each is charged."""
    keys = {"name": "marina-p", "down": compressor, "stepsize": 0.1}
    quadratic = {"name": "quadratic", "workers": N, "dimension": 20}
    setup = set_up(tables(keys) | {"problem": quadratic})
    star, down, v = setup.star, setup.estimator.down, np.arange(1.0, 21.0)
    before = star.ledger.totals["bits_down"]
    rows = star.send(v, down)
    charged = star.ledger.totals["bits_down"] - before
    assert rows.shape == (N, 20) and (bits is None or charged == bits)
    other = star.send(np.tile(v, (N, 1)), down)
    same = compressor["name"] == "identity"
    assert np.array_equal(rows, other) == same == np.array_equal(rows[0], rows[1])
    if compressor["name"] == "permk":
        assert np.allclose(rows.mean(axis=0), v) and np.allclose(other.mean(axis=0), v)
    mean = sum(star.send(v, down) for _ in range(400)).mean(axis=0) / 400
    assert np.abs(mean - v).max() < 0.25 * v.max()
