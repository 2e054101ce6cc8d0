"""Rules that combine messages, workers that lie, and fleets of unequal clients."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from mpisim.comm import fleet
from mpisim.comm.byzantine import Attack, Server
from mpisim.comm.fleet import Fleet
from mpisim.compressors.base import make
from mpisim.core.rng import Draw, Streams, normals
from mpisim.methods.estimators.batches import batch_size
from mpisim.methods.method_table import Schedule
from mpisim.methods.optimizers import warmup_rounds
from mpisim.testing import SINGLE
from tests.compressors.smooth_support import network
from tests.helpers import columns, run_tables, set_up, some_of
from tests.methods.loops import SEED, Loop, N, near, tables
from tests.methods.test_downlink import GAMMA

DRAW = Draw(Streams(1), "buckets", 0, 0, 1)
ROWS = np.random.default_rng(0).standard_normal((11, 5))


def test_the_geometric_median_has_the_least_sum_of_distances():
    result = Server(aggregate="geometric-median", steps=300).combine(ROWS, DRAW)
    best = minimize(lambda z: np.linalg.norm(ROWS - z, axis=1).sum(), ROWS.mean(axis=0), tol=1e-10)
    assert np.linalg.norm(result - best.x) < 1e-4


def geometric_median(rows, steps=8):
    z = rows.mean(axis=0)
    for _ in range(steps):
        w = 1 / np.sqrt(((rows - z) ** 2).sum(axis=1))
        z = w @ rows / w.sum()
    return z


def centered_clipping(rows, clip=0.5, steps=8):
    v = np.median(rows, axis=0)
    for _ in range(steps):
        steps_i = [min(1, clip / np.linalg.norm(row - v)) * (row - v) for row in rows]
        v = v + np.mean(steps_i, axis=0)
    return v


def trimmed_mean(rows, trim=0.34):
    b = int(trim * len(rows))
    return np.sort(rows, axis=0)[b : len(rows) - b].mean(axis=0)


REFERENCES = {
    "median": (partial(np.median, axis=0), {}),
    "trimmed-mean": (trimmed_mean, {"trim": 0.34}),
    "geometric-median": (geometric_median, {}),
    "centered-clipping": (centered_clipping, {"clip": 0.5}),
}


def bucketed(rows, size, draw):
    """Means of so many rows each, in the order that is drawn."""
    order = draw.batches(np.array([len(rows)]), len(rows))[0]
    return np.array([rows[order[k : k + size]].mean(axis=0) for k in range(0, len(rows), size)])


@pytest.mark.parametrize("buckets", [1, 2])
@pytest.mark.parametrize("name", REFERENCES)
def test_every_rule_is_that_of_a_plain_loop(name, buckets):
    rule, keys = REFERENCES[name]
    server = Server(aggregate=name, buckets=buckets, **keys)
    rows = ROWS if buckets == 1 else bucketed(ROWS, 2, DRAW)
    assert np.allclose(server.combine(ROWS, DRAW), rule(rows), rtol=1e-12, atol=1e-14)


def test_no_messages_are_zeros():
    """A round of a simulated fleet in which nobody arrives."""
    for name in ("mean", *REFERENCES):
        assert Server(name, buckets=2).combine(np.zeros((0, 5)), DRAW).tolist() == [0.0] * 5


SHARES = [(0.29, 100, 29), (0.34, 6, 2), (0.1, 9, 0), (0.4999999999, 10, 4), (0.4999999999, 2, 0)]


@pytest.mark.parametrize(("share", "n", "count"), SHARES)
def test_a_share_is_rounded_down_as_it_is_written(share, n, count):
    """The float 0.29 times 100 is 28.999999999999996."""
    assert Attack("ipm", share).bad(n).sum() == count
    kept = make({"name": "topk", "k": share}).bind(n, 1, SINGLE).K
    assert kept == max(1, count)
    rows = np.arange(n)[:, None] ** 2.0
    trimmed = Server("trimmed-mean", trim=share).combine(rows, DRAW)
    assert trimmed[0] == pytest.approx(rows[count : n - count].mean(), rel=1e-14)


def test_a_share_of_samples_or_rounds_is_rounded_up_as_it_is_written():
    """The float 0.07 times 100 is 7.000000000000001."""
    for first in (lambda m: batch_size(0.07, m, "batch"), partial(warmup_rounds, 0.07)):
        assert [first(m) for m in (100, 101, 10)] == [7, 8, 1]
    assert Schedule([0.07, 0.29, 40]).starts(100) == [7, 29, 40]
    assert Schedule([0.07]).multiple(6, 100) == 1.0 != Schedule([0.07]).multiple(7, 100)


def test_a_share_of_nobody_is_said(capsys):
    trim, flip = {"aggregate": "trimmed-mean", "buckets": 2}, {"name": "sign-flip"}
    for table, said in (
        ({"attack": flip | {"share": 0.34}, "server": trim | {"trim": 0.34}}, ""),
        ({"attack": flip | {"share": 0.0}}, ""),
        ({"attack": flip | {"share": 0.1}}, "attack.share: 0.1 of 6 workers is less than one"),
        ({"server": trim | {"trim": 0.3}}, "server.trim: 0.3 of 3 values is less than one"),
    ):
        run(GD, IDENTITY, rounds=1, **table)
        err = capsys.readouterr().err
        assert said in err and ("is less than one" in err) == bool(said)


@pytest.mark.parametrize("name", ["sign-flip", "alie", "ipm", "noise"])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_what_bad_workers_send(name, spread):
    """Of 11 workers with a share of 0.4, the last 4 lie; the others send what they have.

    Also where the workers nearly agree: a mean of squares less a squared mean would be rounding.
    """
    rows, draw = ROWS[0] + spread * (ROWS - ROWS[0]), Draw(Streams(1), "up/attack", 0, 0, 11)
    sent = Attack(name, 0.4, 2.0).corrupted(rows, np.arange(11), network(11), draw)
    expected = attacked(name, rows, np.arange(11) < 7, draw, 2.0)
    np.testing.assert_allclose(sent, expected, rtol=1e-12)
    if name in ("sign-flip", "noise"):  # these ask no other rank: the second rank, of five workers
        star = network(11)
        star.first, star.m = 6, 5
        draw = Draw(Streams(1), "up/attack", 0, 6, 5)
        part = Attack(name, 0.4, 2.0).corrupted(rows[6:], np.arange(5), star, draw)
        assert np.array_equal(part, sent[6:])


def attacked(name, v, good, draw, size=None):
    """What workers send for v (n, d): those that are not good lie, by the papers' formulas."""
    honest, out = v[good], v.copy()
    size = size or {"sign-flip": 1, "ipm": 0.1, "alie": 1.06, "noise": 10}[name]
    bad = {
        "sign-flip": lambda: -size * v[~good],
        "ipm": lambda: -size * honest.mean(axis=0),
        "alie": lambda: honest.mean(axis=0) - size * honest.std(axis=0),
        "noise": lambda: v[~good] + size * normals(draw.words(v.shape[1])[~good]),
    }
    out[~good] = bad[name]()
    return out


GD = {"name": "dcgd"}
IDENTITY = {"name": "identity"}
CLAG = {"name": "clag", "zeta": 0.0}


def run(method, compressor=None, log=None, rounds=20, **extra):
    return run_tables(tables(method, compressor, rounds=rounds) | extra, log)


@pytest.mark.parametrize("name", ["sign-flip", "ipm", "noise"])
def test_workers_that_attack_keep_to_the_protocol(name):
    """CLAG with zeta = 0 is EF21, as nobody falls silent. What is sent before round 0 is true."""
    topk, attack = {"name": "topk", "k": 2}, {"name": name, "share": 0.34}
    ends = [run(method, topk, attack=attack) for method in ({"name": "ef21"}, CLAG)]
    assert np.array_equal(ends[0].x, ends[1].x)
    star = set_up(tables(GD, IDENTITY) | {"attack": attack}).star
    rows = np.arange(2.0 * star.n).reshape(star.n, 2)
    assert np.array_equal(star.send_once(rows)[1], rows)


def test_flipped_labels_are_another_data_set(tmp_path):
    """Gradient descent on the mean of f_1, ..., f_4 and two workers with y = -y."""
    loop, log = Loop(), tmp_path / "x.h5"
    good = slice(0, 4)
    end = run(GD, IDENTITY, log, attack={"name": "label-flip", "share": 0.34})
    norms = columns(log)["grad_norm_sq"]
    loop.y[4 * loop.m :] *= -1
    x = np.zeros(loop.d)
    for _ in range(20):
        x = x - GAMMA * loop.every(x).mean(axis=0)
    assert near(end.x, x)
    gradient = loop.every(x)[good].mean(axis=0)
    assert norms[-1] == pytest.approx(gradient @ gradient, rel=1e-10)


RULES = {"sign-flip": "median", "ipm": "geometric-median"}
RULES |= {"alie": "centered-clipping", "noise": "trimmed-mean"}


@pytest.mark.parametrize(("attack", "aggregate"), RULES.items())
def test_byz_vr_marina(attack, aggregate, p=0.3, b=7, T=20):
    """The rule over g_i = g^k + Q(difference), with buckets of two."""
    loop, good = Loop(), np.arange(N) < 4
    rule, keys = REFERENCES[aggregate]
    server = {"aggregate": aggregate, "buckets": 2} | keys
    x = old = np.zeros(loop.d)
    g = None
    for loop.k in range(T):

        def drawn(purpose, count=N):
            return Draw(Streams(SEED), purpose, loop.k, 0, count)

        if g is None or loop.coin(p):
            g_i = attacked(attack, loop.every(x), good, drawn("dense/attack"))
        else:
            batch = drawn("batch").batches(np.full(N, loop.m), b)
            now, before = (
                np.array([loop.gradient(i, point, rows) for i, rows in enumerate(batch)])
                for point in (x, old)
            )
            sent = attacked(attack, now - before, good, drawn("up/attack"))
            g_i = g + loop.randk(sent, "up")
        g = rule(bucketed(g_i, 2, drawn("buckets", 1)))
        old, x = x, x - GAMMA * g
    method, randk = {"name": "vr-marina", "p": p, "batch": b}, {"name": "randk", "k": 20}
    end = run(method, randk, rounds=T, attack={"name": attack, "share": 0.34}, server=server)
    assert near(end.x, x, 1e-11)


MILLION = np.arange(1_000_000)
TABLE = Path(fleet.__file__).with_name("mlab.csv")
COUNTRIES = list(csv.DictReader(line for line in TABLE.read_text().splitlines() if line[0] != "#"))
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])


def quantiles_of(row, name):
    """Of one column of a country, from the worst to the best."""
    return [float(row[f"{name}_p{round(100 * p)}"]) for p in LEVELS]


@some_of(1, code=["US", "DE", "BR", "IN"])
def test_a_country_has_the_quantiles_of_its_row(code):
    c = Fleet(f"mlab:{code}").clients(MILLION)
    row = next(row for row in COUNTRIES if row["country"] == code)
    drawn = {"up": c.up / 1e6, "down": c.down / 1e6, "rtt": 2e3 * c.latency, "loss": c.loss}
    for name, values in drawn.items():
        poor_is_high = name in ("rtt", "loss")
        quantiles = np.quantile(values, 1 - LEVELS if poor_is_high else LEVELS)
        expected = quantiles_of(row, name)
        assert quantiles == pytest.approx(expected, rel=0.02, abs=1e-3 * (name == "loss"))


def test_the_world_is_the_mixture_of_its_countries_by_tests():
    clients = Fleet("mlab:world").clients(MILLION)
    tests = np.array([int(row["tests"]) for row in COUNTRIES])
    assert len(COUNTRIES) == 238 and tests.sum() == 112945393 + 77079829
    for name, values in (("up", clients.up), ("down", clients.down)):
        quantiles = np.quantile(values / 1e6, LEVELS)
        share = np.zeros(9)
        for row, count in zip(COUNTRIES, tests, strict=True):  # P(rate <= quantile) in each country
            table = np.maximum(quantiles_of(row, name), 1e-3)
            score = np.interp(np.log(quantiles), np.log(table), norm.ppf(LEVELS))
            below, above = quantiles < table[0], quantiles >= table[-1]
            share += count * np.where(below, 0, np.where(above, 1, norm.cdf(score)))
        assert share / tests.sum() == pytest.approx(LEVELS, rel=0.02)


def test_a_client_depends_on_its_number_alone():
    fleet = Fleet("mlab:world", devices="phones")
    every, some = fleet.clients(np.arange(100)), fleet.clients(np.array([3, 97]))
    other = fleet.clients(np.arange(100), seed=2)
    for name in ("up", "down", "latency", "loss", "factor"):
        assert np.array_equal(getattr(every, name)[[3, 97]], getattr(some, name))
        assert not np.array_equal(getattr(every, name), getattr(other, name))


def test_log_normal_links_have_the_stated_median_spread_and_correlation(rho=0.6):
    fleet = Fleet("10mbit/50mbit,20ms", sigma=0.7, correlation=rho)
    c = fleet.clients(np.arange(200_000))
    up, down, wait = np.log(c.up / 1e7), np.log(c.down / 5e7), np.log(c.latency / 0.02)
    for values in (up, down, wait):
        assert abs(values.mean()) < 0.01 and values.std() == pytest.approx(0.7, rel=0.01)
    assert np.corrcoef(up, down)[0, 1] == pytest.approx(rho, abs=0.01)
    assert np.corrcoef(up, wait)[0, 1] == pytest.approx(-rho, abs=0.01)


def test_given_links_and_factors_are_dealt_in_turn():
    fleet = Fleet(["1mbit", "2mbit/4mbit,3ms"], devices=[1.0, 2.0, 4.0])
    clients = fleet.clients(np.arange(4))
    assert clients.up.tolist() == [1e6, 2e6, 1e6, 2e6]
    assert clients.down.tolist() == [1e6, 4e6, 1e6, 4e6]
    assert clients.latency.tolist() == [0, 3e-3, 0, 3e-3]
    assert clients.factor.tolist() == [1, 2, 4, 1]
