"""Methods with shifts and with skipped messages against plain NumPy loops, and special cases."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from tests.compressors.cases import DOUBLE
from tests.helpers import run_tables, set_up
from tests.methods.loops import SEED, Loop, N, near, top
from tests.methods.test_downlink import CASES as DOWN
from tests.methods.test_downlink import GAMMA, RANDK, ROUNDS, TOPK, tables


def ef21_sgdm(loop, eta):
    x = np.zeros(loop.d)
    v = g = loop.every(x)
    for loop.k in range(1, ROUNDS + 1):
        x = x - GAMMA * g.mean(axis=0)
        v = (1 - eta) * v + eta * loop.every(x)
        g = g + top(v - g, 5)
    return x


def shifted(loop, follow, nu=1.0):
    x, h = np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        gradients = loop.every(x)
        d = loop.randk(gradients - h, "up")
        x = x - GAMMA * (h + nu * d).mean(axis=0)
        h = follow(h, d, gradients)
    return x


def diana(loop, alpha):
    return shifted(loop, lambda h, d, gradients: h + alpha * d)


def ef_bv(loop, nu, **keys):
    return shifted(loop, lambda h, d, gradients: h + keys["lambda"] * d, nu)


def rand_diana(loop, p):
    """``loop.shifts_sent``: in how many rounds all send their shifts in full."""
    sent = []

    def follow(h, d, gradients):
        sent.append(loop.coin(p))
        return gradients if sent[-1] else h

    x = shifted(loop, follow)
    loop.shifts_sent = sum(sent)
    assert 0 < sum(sent) < ROUNDS
    return x


def adiana(loop, alpha, p, mu):
    y = z = w = np.zeros(loop.d)
    h = np.zeros((N, loop.d))
    theta = min(1 / 4, np.sqrt(GAMMA * mu / p))
    gamma = GAMMA / (2 * (theta + GAMMA * mu))
    beta = 1 - gamma * mu
    for loop.k in range(ROUNDS):
        x = theta * z + w / 2 + (1 - theta - 1 / 2) * y
        g = (h + loop.randk(loop.every(x) - h, "up")).mean(axis=0)
        h = h + alpha * loop.randk(loop.every(w) - h, "up", message=1)
        last, y = y, x - GAMMA * g
        z = beta * z + (1 - beta) * x + gamma / GAMMA * (y - x)
        w = last if loop.coin(p) else w
    return y


def canita(loop, alpha, p):
    x = w = np.zeros(loop.d)
    h = np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        theta = 2 / (p * (loop.k + max(4 / p, 8 / alpha)))
        y = theta * x + (1 - theta) * w
        g = (h + loop.randk(loop.every(y) - h, "up")).mean(axis=0)
        h = h + alpha * loop.randk(loop.every(w) - h, "up", message=1)
        x = x - GAMMA / theta * g
        w = theta * x + (1 - theta) * w if loop.coin(p) else w
    return w


def every_coordinate(loop):
    return np.arange(N), np.ones((N, loop.d))


def scaffnew(loop, p, eta=1.0, sent=every_coordinate):
    """``sent``: the clients of a round, and the coordinates that each of them sends, (c, d).

    x is the mean of what is sent, and who sends a coordinate moves its h_i there.
    """
    x, h = np.zeros(loop.d), np.zeros((N, loop.d))
    for loop.k in range(ROUNDS):
        clients, mask = sent(loop)
        x_i = np.tile(x, (N, 1))
        for _ in loop.steps(p):
            x_i = x_i - GAMMA * (loop.gradients(x_i) - h)
        x = (mask * x_i[clients]).sum(axis=0) / mask.sum(axis=0)
        h[clients] += p * eta / GAMMA * mask * (x - x_i[clients])
    return x


def locodl(loop, p, mu, chi, rho):
    x = np.zeros((N, loop.d))
    y, u, v = np.zeros(loop.d), np.zeros((N, loop.d)), np.zeros(loop.d)
    omega = loop.d / 20 - 1
    for loop.k in range(ROUNDS):
        for _ in loop.steps(p):
            x = x - GAMMA * (loop.gradients(x) - mu * x - u)
            y = y - GAMMA * (mu * y - v)
        d_i = loop.randk(x - y, "up")
        d = d_i.mean(axis=0) / 2
        x = (1 - rho) * x + rho * (y + d)
        y = y + rho * d
        factor = p * chi / (GAMMA * (1 + 2 * omega))
        u, v = u + factor * (d - d_i), v + factor * d
    return y


CASES = DOWN | {
    "scaffnew": (scaffnew, {"p": 0.3}, None),
    "canita": (canita, {"alpha": 0.1, "p": 0.3}, RANDK),
    "adiana": (adiana, {"alpha": 0.1, "p": 0.3, "mu": 0.1}, RANDK),
    "ef21-sgdm": (ef21_sgdm, {"eta": 0.3}, TOPK),
    "diana": (diana, {"alpha": 0.1}, RANDK),
    "ef-bv": (ef_bv, {"lambda": 0.2, "nu": 0.7}, RANDK),
    "rand-diana": (rand_diana, {"p": 0.3}, RANDK),
    "locodl": (locodl, {"p": 0.3, "mu": 0.05, "chi": 0.4, "rho": 0.6}, RANDK),
}


@pytest.mark.parametrize("name", CASES)
def test_trajectory(name):
    (function, keys, compressor), loop = CASES[name], Loop()
    end = run_tables(tables({"name": name} | keys, compressor))
    assert near(end.x, function(loop, **keys))
    if compressor == RANDK:
        messages = 2 if name in ("adiana", "canita") else 1
        dense = loop.shifts_sent * loop.d if name == "rand-diana" else 0
        assert end.row["bits_up"] == 64 * N * (messages * RANDK["k"] * ROUNDS + dense)


PATTERN = {"name": "pattern", "s": 2}
DEALT = [("compressed-scaffnew", {"name": "permk", "groups": s}, N) for s in (2, 6)]
DEALT += [("tamuna", PATTERN | {"s": s}, c) for s, c in ((2, 4), (3, 3), (N, N))]


@pytest.mark.parametrize(("name", "compressor", "c"), DEALT, ids=str)
def test_trajectory_and_bits_where_some_send_a_coordinate(name, compressor, c):
    """s of c clients send each coordinate: which ones the wire says, not the method."""
    loop, s = Loop(), compressor.get("s") or compressor["groups"]
    of_wire = make(compressor).bind(loop.d, N, DOUBLE)

    def sent(loop):
        S = loop.clients(c) if c < N else None
        draw = Draw(Streams(SEED), "up", loop.k, 0, N, S)
        mask = of_wire.compress(np.ones((c, loop.d)), draw).decoded() != 0
        assert (mask.sum(axis=0) == s).all() and np.ptp(mask.sum(axis=1)) <= 1
        return np.arange(N) if S is None else S, mask

    keys = {"name": name, "p": 0.3, "eta": 0.4} | ({"participants": c} if c < N else {})
    end = run_tables(tables(keys, compressor))
    assert near(end.x, scaffnew(loop, 0.3, 0.4, sent))
    assert end.row["bits_up"] == 64 * ROUNDS * s * loop.d
    assert name != "tamuna" or end.row["bits_down"] == 64 * ROUNDS * (c + s) * loop.d


def clag(loop, zeta, C=lambda v: top(v, 5)):
    """The last point, and how many messages were sent in all rounds but the first."""
    x, sent = np.zeros(loop.d), 0
    g = old = loop.every(x)
    for _ in range(ROUNDS - 1):
        x = x - GAMMA * g.mean(axis=0)
        now = loop.every(x)
        speak = ((now - g) ** 2).sum(axis=1) > zeta * ((now - old) ** 2).sum(axis=1)
        g = np.where(speak[:, None], g + C(now - g), g)
        sent, old = sent + speak.sum(), now
    return x - GAMMA * g.mean(axis=0), sent


@pytest.mark.parametrize(("name", "zeta", "compressor"), [("clag", 30, TOPK), ("lag", 5, None)])
def test_trajectory_with_skipped_messages(name, zeta, compressor):
    keys, loop = {"name": name, "zeta": float(zeta)}, Loop()
    end = run_tables(tables(keys, compressor))
    x, sent = clag(loop, zeta, *() if compressor else (lambda v: v,))
    assert near(end.x, x)
    assert 0.1 < sent / (N * (ROUNDS - 1)) < 0.9
    if name == "lag":
        assert end.row["bits_up"] == 64 * loop.d * (N + sent) + N * (ROUNDS - 1)
    silent = run_tables(tables(keys | {"zeta": 1e9}, compressor))
    assert silent.row["bits_up"] == N * (64 * loop.d + ROUNDS - 1)


@pytest.mark.parametrize(("name", "alpha"), [("diana", 3.0), ("diana", 0.0), ("adiana", 0.0)])
def test_uncompressed_shifts_have_a_theory_step_for_the_same_alpha(name, alpha):
    """With omega = 0, alpha = 3 had a step and diverged, and ADIANA divided by 0."""
    keys = {"name": name, "alpha": alpha, "stepsize": "theory"}
    keys |= {"p": 0.3, "mu": 0.1} if name == "adiana" else {}
    with pytest.raises(InputError, match="at most 1 / "):
        run_tables(tables(keys, {"name": "identity"}))


def test_steps_of_the_theory():
    def bound(compressor, **keys):
        return set_up(tables(keys | {"stepsize": "theory"}, compressor))

    tamuna = bound(PATTERN, name="tamuna", p=0.3).step
    assert tamuna.source == "derived for TAMUNA: 1 / L_max"
    assert bound(RANDK, name="byz-dasha-page", batch=7).step.gamma > 0
    canita, omega = bound(RANDK, name="canita"), 123 / 20 - 1
    p, alpha = canita.estimator.p, canita.estimator.alpha
    b = min(omega, np.sqrt(omega / N) * (1 + omega))
    assert (p, alpha) == pytest.approx((1 / (1 + b), 1 / (1 + omega)))
    L_max = canita.cache.constants(canita.star).L_i.max()
    worst = omega / N * (8 + 64 * p / alpha + 128 * (p / alpha) ** 2)
    assert canita.step.gamma == pytest.approx(1 / (L_max * worst))
    uncompressed = bound({"name": "identity"}, name="canita").step
    assert uncompressed.gamma == pytest.approx(1 / (2 * L_max))
    # a larger trigger has a smaller step
    clag = [bound(TOPK, name="clag", zeta=zeta).step.gamma for zeta in (0.0, 1e4, 1e8)]
    assert clag[0] > clag[1] > clag[2] > 0
