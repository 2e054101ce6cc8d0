"""DASHA: reductions, what is sent and asked for, and PermK, which has no theorem."""

from math import sqrt

import numpy as np
import pytest
from mpi4py import MPI

from mpisim.methods.oracle import LazyGradients
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import columns, run_tables, table

RANDK = {"name": "randk", "k": 7}
N, M, D = 6, 1600 // 6, 123  # the sample among 6 workers
BITS = 32 * 7  # of a compressed message


def logged(method, tmp_path, compressor=RANDK, **options):
    run_tables(table(method | {"stepsize": 0.1}, compressor, **options), tmp_path / "log.h5")
    return columns(tmp_path / "log.h5")


def final(method, compressor=RANDK, rounds=30):
    tables = table(method | {"stepsize": 0.5}, compressor, rounds=rounds, wire="float64")
    return run_tables(tables).x


def near(one, other):
    return np.linalg.norm(one - other) <= 1e-12 * np.linalg.norm(other)


def test_reductions():
    """PAGE with p = 1 is DASHA; MVR and SYNC-MVR are the same with b = 0 and p = 0."""
    assert near(final({"name": "dasha-page", "batch": 3, "p": 1.0}), final({"name": "dasha"}))
    online = {"batch": 5, "big_batch": 40}
    never = final({"name": "dasha-sync-mvr", "p": 1e-12} | online)
    assert near(final({"name": "dasha-mvr", "b": 1e-15} | online), never)


SENT = [
    ({"name": "dasha"}, {N * BITS}, {N * M}),
    ({"name": "dasha-page", "batch": 4, "p": 0.2}, {N * BITS}, {N * M, 2 * N * 4}),
    ({"name": "dasha-mvr", "batch": 4, "big_batch": 50}, {N * BITS}, {2 * N * 4}),
    (
        {"name": "dasha-sync-mvr", "batch": 4, "big_batch": 50, "p": 0.2},
        {N * BITS, N * 32 * D},
        {2 * N * 4, N * 50},
    ),
]


@pytest.mark.parametrize("start", ["dense", "zero"])
@pytest.mark.parametrize(("method", "bits", "calls"), SENT, ids=[m["name"] for m, _, _ in SENT])
def test_what_a_round_sends_and_asks_for(method, bits, calls, start, tmp_path):
    c = logged(method | {"start": start}, tmp_path, rounds=60)
    assert set(np.diff(c["bits_up"][1:])) == bits
    assert set(np.diff(c["oracle_calls"][1:])) == calls
    assert c["bits_up"][1] == (N * 32 * D if start == "dense" else 0)
    assert c["oracle_calls"][1] == N * method.get("big_batch", M)


def bound(**method):
    return Setup(parse(table(method | {"stepsize": 0.1}, RANDK)), MPI.COMM_SELF).estimator


def test_parameters_of_the_theory():
    omega = D / 7 - 1
    assert bound(name="dasha").a == pytest.approx(1 / (2 * omega + 1), rel=1e-14)
    assert bound(name="dasha-page", batch=4).p == pytest.approx(4 / (4 + M), rel=1e-14)
    # the floors of DASHA-MVR and DASHA-SYNC-MVR with the same B', over sigma^2 / n
    b = bound(name="dasha-mvr", batch=4, big_batch=50).b
    floor = (96 * omega * (2 * omega + 1) * b**2 + 4 * b) / 4
    assert floor == pytest.approx(2 / 50, rel=1e-13)
    sync = {"name": "dasha-sync-mvr", "batch": 4}
    assert bound(**sync, big_batch=50).p == pytest.approx(7 / D, rel=1e-14)
    assert bound(**sync, big_batch=200).p == pytest.approx(4 / 200, rel=1e-14)


def configured(name, omega, mega):
    """b, p or nothing, and the first batch: `generate_yaml` of config_libsvm_zero_marina.py."""
    if name == "dasha-mvr":
        noise_momentum = min(1 / float(mega), 1 / (omega * sqrt(mega)))
        return {"b": noise_momentum}, int(max(mega, omega * sqrt(mega)))
    prob_sync = {"p": min(1 / float(mega), 1 / (omega + 1))}
    return prob_sync if name == "dasha-sync-mvr" else {}, int(max(mega, omega))


@pytest.mark.parametrize("B", [1, 4])  # there, mega counts gradients of B samples
@pytest.mark.parametrize("mega", [10, 50])
@pytest.mark.parametrize("name", ["dasha-mvr", "dasha-sync-mvr", "vr-marina-online"])
def test_published_parameters(name, mega, B, tmp_path):
    values, first = configured(name, D / 7 - 1, mega)
    assert first > mega or name != "dasha-mvr"
    method = {"name": name, "batch": B, "big_batch": B * mega, "first_batch": "published"}
    method |= {"b": "published"} if name == "dasha-mvr" else {}
    used = bound(**method)
    for key, value in values.items():
        assert getattr(used, key) == pytest.approx(value, rel=1e-14)
    assert logged(method, tmp_path, rounds=1)["oracle_calls"][1] == N * B * first


def test_a_round_on_the_quadratic_computes_what_is_sent(monkeypatch):
    """No gradient is worked out as a whole, and of g_i no more than what was sent is set."""

    def full(*_):
        raise AssertionError("a whole gradient")

    monkeypatch.setattr(LazyGradients, "fill", full)
    monkeypatch.setattr(LazyGradients, "fill_less", full)
    method = {"name": "dasha", "start": "zero", "stepsize": 0.3}
    tables = table(method, {"name": "randk", "k": 2}, rounds=25)
    quadratic = {"name": "quadratic", "workers": 40, "dimension": 300, "noise": 0.3}
    setup = Setup(parse(tables | {"problem": quadratic}), MPI.COMM_SELF)
    for _ in range(26):
        setup.state.step(0.3)
    assert 0 < np.count_nonzero(setup.estimator.g_i) <= 25 * 2 * 40
