"""CLAG, LAG and Byz-DASHA-PAGE against plain NumPy loops; skipped messages cost one bit."""

import numpy as np
import pytest

from mpisim.core.errors import InputError, WireError
from mpisim.core.rng import Draw, Streams
from mpisim.testing import DOUBLE
from mpisim.wire.flags import Flags, FlagsForm
from tests.helpers import run_tables
from tests.methods.test_downlink import GAMMA, L2, RANDK, ROUNDS, SEED, TOPK, Loop, N, tables
from tests.methods.test_reference import top
from tests.methods.test_shifts import every


def clag(loop, zeta, C=lambda v: top(v, 5)):
    """The last point, and how many messages were sent in all rounds but the first."""
    x, sent = np.zeros(loop.d), 0
    g = old = every(loop, x)
    for _ in range(ROUNDS - 1):
        x = x - GAMMA * g.mean(axis=0)
        now = every(loop, x)
        speak = ((now - g) ** 2).sum(axis=1) > zeta * ((now - old) ** 2).sum(axis=1)
        g = np.where(speak[:, None], g + C(now - g), g)
        sent, old = sent + speak.sum(), now
    return x - GAMMA * g.mean(axis=0), sent


def test_clag():
    end, loop = run_tables(tables({"name": "clag", "zeta": 30.0}, TOPK)), Loop()
    x, sent = clag(loop, 30.0)
    assert np.linalg.norm(end.x - x) <= 1e-12 * np.linalg.norm(x)
    assert 0.1 < sent / (N * (ROUNDS - 1)) < 0.9
    silent = run_tables(tables({"name": "clag", "zeta": 1e9}, TOPK))
    assert silent.row["bits_up"] == N * (64 * loop.d + ROUNDS - 1)


def test_lag():
    end, loop = run_tables(tables({"name": "lag", "zeta": 5.0})), Loop()
    x, sent = clag(loop, 5.0, lambda v: v)
    assert np.linalg.norm(end.x - x) <= 1e-12 * np.linalg.norm(x)
    assert 0.1 < sent / (N * (ROUNDS - 1)) < 0.9
    assert end.row["bits_up"] == 64 * loop.d * (N + sent) + N * (ROUNDS - 1)


def test_a_larger_trigger_has_a_smaller_step():
    steps = [
        run_tables(tables({"name": "clag", "zeta": zeta, "stepsize": "theory"}, TOPK, rounds=1))
        for zeta in (0.0, 1e4, 1e8)
    ]
    gammas = [end.attributes["stepsize"] for end in steps]
    assert gammas[0] > gammas[1] > gammas[2] > 0
    for bad in (-1.0, float("inf")):
        with pytest.raises(InputError, match=r"^method\.zeta: "):
            run_tables(tables({"name": "clag", "zeta": bad}, TOPK))


def test_bits_are_bytes_with_ones_behind():
    form, flags = FlagsForm(1, 3, DOUBLE), np.array([True, False, True])
    packed = Flags(form, flags).encode()
    assert packed.data.tolist() == [255, 127, 255] and packed.payload_bits.tolist() == [1, 1, 1]
    assert form.decode(packed.data, packed.sizes).decoded()[:, 0].tolist() == [1, 0, 1]
    for wrong in (0, 126, 254):
        with pytest.raises(WireError, match=r"message 1 of the block .*padding"):
            form.decode(np.array([255, wrong, 127], np.uint8), packed.sizes)


def byz_dasha_page(loop, rule, p=0.3, a=0.2, B=7):
    x = np.zeros(loop.d)
    h = g = every(loop, x)
    y = loop.a[: N * loop.m].reshape(N, loop.m, -1)
    labels = loop.y[: N * loop.m].reshape(N, loop.m)

    def gradient(i, x, rows):
        a, b = y[i, rows], labels[i, rows]
        return -a.T @ (b / (1 + np.exp(b * (a @ x)))) / len(rows) + L2 * x

    for loop.k in range(1, ROUNDS + 1):
        old, x = x, x - GAMMA * rule(g)
        if loop.coin(p):
            new = every(loop, x)
        else:
            batch = Draw(Streams(SEED), "batch", loop.k, 0, N).samples(np.full(N, loop.m), B)
            change = [gradient(i, x, r) - gradient(i, old, r) for i, r in enumerate(batch)]
            new = h + np.array(change)
        g = g + loop.randk(new - h - a * (g - h), "up")
        h = new
    return x


@pytest.mark.parametrize("aggregate", ["mean", "median"])
def test_byz_dasha_page(aggregate):
    keys = {"name": "byz-dasha-page", "batch": 7, "p": 0.3, "a": 0.2}
    settings = tables(keys, RANDK) | {"server": {"aggregate": aggregate}}
    end = run_tables(settings)
    x = byz_dasha_page(Loop(), lambda g: getattr(np, aggregate)(g, axis=0))
    assert np.linalg.norm(end.x - x) <= 1e-12 * np.linalg.norm(x)
    if aggregate == "mean":
        same = run_tables(tables(keys | {"name": "dasha-page"}, RANDK))
        assert np.linalg.norm(end.x - same.x) <= 1e-12 * np.linalg.norm(same.x)
    theory = tables(keys | {"stepsize": "theory", "a": "theory"}, RANDK)
    assert run_tables(theory).attributes["stepsize"] > 0
    with pytest.raises(InputError, match=r"^method\.stepsize: Byz-DASHA-PAGE"):
        run_tables(theory | {"server": {"aggregate": "median"}})
