"""Bits are what was sent: against hand-counted messages; `layouts` counts what MPI is handed."""

import numpy as np
import pytest

from mpisim.comm.clock import COMMUNICATE, COMPUTE, OTHER, SlowestPath
from mpisim.comm.ledger import Ledger
from tests.helpers import columns, run_tables, table

D, N = 123, 6


def test_senders_of_several_gathers_in_a_round():
    ledger = Ledger(5)
    for payload, paper, clients in (
        ([3, 8], [1, 1], [0, 4]),
        ([4], [2], [0]),
        ([1] * 5, [0] * 5, None),
    ):
        sizes = np.array([-(-bits // 8) for bits in payload])
        named = None if clients is None else np.array(clients)
        ledger.up(np.array(payload), np.array(paper), sizes, 32, named)
    ledger.end_round()
    assert ledger.worker_bits_up.tolist() == [8, 1, 1, 1, 9]
    assert [ledger.totals[name] for name in ("bits_up", "paper_bits_up")] == [20, 4]
    assert ledger.totals["framing_bits_up"] == 8 * 32 + 8 * 8 - 20
    assert ledger.totals["bits_up_max"] == 9
    ledger.up(np.array([2, 0]), np.array([2, 0]), np.array([1, 0]), 0, np.array([3, 4]))
    ledger.end_round()
    assert ledger.worker_bits_up.tolist() == [8, 1, 1, 3, 9]
    assert ledger.totals["bits_up_max"] == 9 + 2 and ledger.totals["messages_up"] == 9


@pytest.mark.parametrize(
    ("method", "compressor", "bits"),
    [
        ({"name": "pp-marina", "participants": 2, "p": 1e-9}, {"name": "randk", "k": 10}, 320),
        ({"name": "dcgd"}, {"name": "bernoulli", "p": 0.1}, 32 * 4),
        ({"name": "dcgd"}, {"name": "permk"}, 32),
    ],
    ids=lambda case: case["name"] if isinstance(case, dict) else None,
)
def test_empty_messages_are_not_counted(method, compressor, bits, tmp_path):
    """All messages that are sent are equally long, but for a first round in which all are dense."""
    n, d, log = 11, 4, tmp_path / "log.h5"
    problem = {"name": "quadratic", "dimension": d, "noise": 0.1, "workers": n}
    if method["name"] == "pp-marina":
        d = problem["dimension"] = 20
    tables = {"problem": problem, "method": method | {"stepsize": 0.01}, "compressor": compressor}
    run_tables(tables | {"run": {"rounds": 30}}, log)
    c = columns(log)
    first = n * 32 * d if method["name"] == "pp-marina" else 0
    sent = (c["bits_up"] - first * (c["round"] > 0)) / bits + n * (first > 0) * (c["round"] > 0)
    assert np.array_equal(c["messages_up"], sent)
    steps = np.diff(c["messages_up"])[1:]
    if compressor["name"] == "permk":
        assert set(steps) == {8}  # of 11 workers, 11 mod 4 are idle
    else:
        assert steps.max() < n and (steps.min() == 0) == (compressor["name"] == "bernoulli")


def test_a_length_that_crosses_is_a_message(tmp_path):
    """QSGD's lengths are known to the sender alone: each worker sends 32 bits at least."""
    log = tmp_path / "log.h5"
    run_tables(table({"name": "dcgd", "stepsize": 0.1}, {"name": "qsgd", "s": 5}, rounds=4), log)
    c = columns(log)
    assert np.array_equal(c["messages_up"], N * c["round"])
    assert (c["framing_bits_up"] >= 32 * c["messages_up"]).all()


def test_marina_randk_by_hand(tmp_path):
    log = tmp_path / "log.h5"
    run_tables(
        table({"name": "marina", "p": 0.3, "stepsize": 0.1}, {"name": "randk", "k": 10}, rounds=40),
        log,
    )
    c = columns(log)
    assert c["bits_up"][0] == c["bits_down"][0] == 0  # x^0 is known before anything is sent
    assert c["bits_up"][1] == N * 32 * D  # g^0 is dense
    steps = np.diff(c["bits_up"][1:])
    assert set(steps) == {N * 320, N * 32 * D}
    assert np.array_equal(np.diff(c["bits_down"]), np.full(40, N * 32 * D))
    assert np.array_equal(c["bits_up_max"] * N, c["bits_up"])
    assert np.array_equal(c["paper_bits_up"], c["bits_up"])
    assert c["framing_bits_up"][-1] == 0
    sync = (steps == N * 32 * D).sum()
    assert 4 <= sync <= 20  # 39 coins with p = 0.3: outside with probability below 1e-3
    assert np.array_equal(c["oracle_calls"], np.arange(41) * c["oracle_calls"][1])


def test_slowest_path():
    path = SlowestPath()
    own = [0.0] * 8
    own[COMPUTE], own[COMMUNICATE], own[OTHER] = 1.0, 3.0, 0.5
    path.add(own, [2.0, 0.5, 0.0], 1.5)  # the slowest rank was busy 1.5 s longer: rank 0 waited
    assert path.seconds[COMPUTE] == 2.0 and path.seconds[COMMUNICATE] == 1.5
    assert sum(path.seconds) == sum(own)
    path.add(own, [0.0, 0.0, 0.0], 0.0)
    assert sum(path.seconds) == sum(own)
