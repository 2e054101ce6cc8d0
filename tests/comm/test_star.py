"""The star network on one rank, its ledger by hand; what ranks compare before a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from mpisim.comm import communicators
from mpisim.comm.clock import COMMUNICATE, COMPUTE, OTHER, Clock, SlowestPath
from mpisim.comm.ledger import Ledger
from mpisim.comm.star import Star
from mpisim.compressors import make
from mpisim.compressors.sparse import RandK
from mpisim.core.numerics import processor
from mpisim.core.protocols import Round
from mpisim.core.rng import Draw, Streams
from mpisim.problems.linear_models import LeastSquares
from mpisim.problems.torch.problem import Torch
from mpisim.runs import host
from mpisim.runs.host import software, source
from mpisim.wire.base import Precision
from tests.helpers import columns, run_tables, table
from tests.wire.string_elias import omega


def star(n=4, wire="float32", round=None):
    precision = Precision(np.dtype(wire), np.dtype("float64"))
    return Star(MPI.COMM_SELF, n, "shared", Streams(1), precision, Clock(), round or Round(9))


@given(st.integers(1, 10_000), st.integers(1, 64))
def test_blocks_are_contiguous_and_even(n, ranks):
    starts = communicators.starts(n, ranks, "shared")
    sizes = np.diff(starts)
    assert starts[0] == 0 and starts[-1] == n
    assert sizes.max() - sizes.min() <= 1


def test_the_broadcast_can_be_compressed():
    network, v = star(), np.random.default_rng(0).normal(size=9)
    sent = network.broadcast(v, make({"name": "topk", "k": 3}).bind(9, 4, network.precision))
    assert np.count_nonzero(sent) == 3
    gaps = np.diff(np.flatnonzero(sent), prepend=-1)
    index_bits = min(3 * 4, sum(len(omega(int(gap))) for gap in gaps))
    assert network.ledger.totals["bits_down"] == 4 * (3 * 32 + index_bits)


def test_coin_is_a_function_of_the_round():
    round = Round(4000)
    network, coins = star(round=round), []
    for round.k in range(4000):
        coins.append(network.coin(0.3))
        network.end_round()
    assert abs(np.mean(coins) - 0.3) < 4 * np.sqrt(0.21 / 4000)
    round.k = 7
    assert network.coin(0.3) == coins[7]
    assert network.coin(1.0) and not network.coin(0.0)


def test_what_is_drawn_twice_in_a_round_is_drawn_anew():
    """The first draw of each purpose has message 0, in any round, and so do runs that resume."""
    round, v = Round(9), np.ones((4, 50))
    network = star(round=round)
    randk = make({"name": "randk", "k": 5}).bind(50, 4, network.precision)
    for round.k in (3, 4, 3):
        for message in range(3):
            network.average(network.dense(v))  # draws nothing, and counts for nothing
            up = network.compress(randk, v).decoded()
            down = network.broadcast(v[0], randk)
            drawn = up, down, network.sample(40), network.draw("batch").samples(np.full(4, 99), 9)
            purposes = (("up", 4), ("down", 1), ("sample", 1), ("batch", 4))
            address = [(purpose, round.k, 0, count) for purpose, count in purposes]
            item = [Draw(Streams(1), *one, message=message) for one in address]
            assert np.array_equal(up, randk.compress(v, item[0]).decoded())
            assert np.array_equal(down[None], randk.compress(v[:1], item[1]).decoded())
            assert np.array_equal(drawn[2], np.sort(item[2].samples(np.array([4]), 40)[0]))
            assert np.array_equal(drawn[3], item[3].samples(np.full(4, 99), 9))
        network.end_round()


def test_a_client_drawn_twice_sends_two_messages():
    """Each has its own coordinates and its own bits, and counts once in the mean of the five."""
    network, clients = star(), np.array([0, 2, 2, 2, 3])
    randk = make({"name": "randk", "k": 9}).bind(50, 4, network.precision)
    v = np.arange(1.0, 6)[:, None] * np.ones(50)
    upload = network.compress(randk, v, clients=clients)
    sent, total = upload.decoded(), network.mean(upload)
    assert np.allclose(total, sent.sum(axis=0) / 5)
    assert np.array_equal(np.count_nonzero(sent, axis=1), [9] * 5)
    assert len({tuple(np.flatnonzero(row)) for row in sent}) == 5
    network.ledger.end_round()
    assert network.ledger.worker_bits_up.tolist() == [9 * 32, 0, 3 * 9 * 32, 9 * 32]
    assert network.ledger.totals["bits_up"] == 5 * 9 * 32
    assert network.ledger.totals["bits_up_max"] == 3 * 9 * 32


D, N = 123, 6


def test_senders_of_several_gathers_in_a_round():
    ledger = Ledger(5)
    for payload, paper, clients in (
        *(([3, 8], [1, 1], [0, 4]), ([4], [2], [0]), ([1] * 5, [0] * 5, None)),
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
    marina = {"name": "marina", "p": 0.3, "stepsize": 0.1}
    run_tables(table(marina, {"name": "randk", "k": 10}, rounds=40), log)
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
    item = [0.0] * 8
    item[COMPUTE], item[COMMUNICATE], item[OTHER] = 1.0, 3.0, 0.5
    path.add(item, [2.0, 0.5, 0.0], 1.5)  # the slowest rank was busy 1.5 s longer: rank 0 waited
    assert path.seconds[COMPUTE] == 2.0 and path.seconds[COMMUNICATE] == 1.5
    assert sum(path.seconds) == sum(item)
    path.add(item, [0.0, 0.0, 0.0], 0.0)
    assert sum(path.seconds) == sum(item)


def test_software_tells_another_source_with_the_same_version(monkeypatch, tmp_path):
    source.cache_clear()
    item = software()
    assert {"mpisim", "Python", "numpy", "h5py", "mpi4py", "MPI"} <= item.keys()
    assert item == software() and "\n" not in str(item)
    monkeypatch.setattr(host, "PACKAGE", tmp_path)
    sources = {item["mpisim"]}
    try:
        for count, name in enumerate(("__init__.py", "methods.toml"), 2):
            (tmp_path / name).write_text("__version__ = 1")
            source.cache_clear()
            sources.add(software()["mpisim"])
            assert len(sources) == count
    finally:
        source.cache_clear()


@pytest.fixture
def seen(monkeypatch):
    """The facts that ranks compare."""
    facts = {}
    target = "mpisim.runs.setup.require_consistent"
    monkeypatch.setattr(target, lambda comm, given: facts.update(given))
    return facts


def test_a_set_up_compares_experiment_and_data(seen):
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=1))
    assert "sha256:" in seen["data"] and seen["problem.data"] == "'sample'"
    assert len(seen["module mpisim.compressors.base"]) == 12  # and so of a plugin's modules
    assert seen["run.rounds"] == "1" and seen["method.stepsize"] == "0.1"
    assert not processor.facts().keys() & seen.keys()  # the bits are the same on any


@pytest.mark.parametrize("tied", [LeastSquares, RandK])
def test_what_is_tied_to_the_processor_needs_the_same_on_all_ranks(seen, monkeypatch, tied):
    """PyTorch, say, or a plugin that uses BLAS: a problem, or a compressor inside another."""
    monkeypatch.setattr(tied, "portable", False)
    inner = {"name": "smooth", "inner": {"name": "randk", "k": 3}}
    problem = {"name": "least-squares"}
    run_tables(table({"name": "dcgd", "stepsize": 0.1}, inner, problem=problem, rounds=1))
    assert processor.facts().items() <= seen.items()
    assert not Torch.portable
