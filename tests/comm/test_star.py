"""The star network on one rank, its ledger by hand; what ranks compare before a run."""

from functools import partial
from time import sleep

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpisim.comm import clock as phases
from mpisim.comm import communicators
from mpisim.comm.byzantine import Attack
from mpisim.comm.clock import COMMUNICATE, COMPUTE, EVALUATE, OTHER, Clock, SlowestPath
from mpisim.comm.ledger import BITS_UP_MAX, Ledger
from mpisim.comm.network import Observer
from mpisim.comm.star import lengths_of
from mpisim.compressors.sparse import RandK
from mpisim.core.errors import InputError
from mpisim.core.numerics import processor
from mpisim.problems.linear_models import LeastSquares
from mpisim.problems.torch.problem import Torch
from mpisim.runs import host
from tests.compressors.smooth_support import network
from tests.helpers import run_tables, set_up, table


@given(st.integers(1, 10_000), st.integers(1, 64))
def test_blocks_are_contiguous_and_even(n, ranks):
    starts = communicators.starts(n, ranks, "shared")
    sizes = np.diff(starts)
    assert starts[0] == 0 and starts[-1] == n
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("runs", [1, 2])
def test_the_bits_of_the_worker_that_sent_most_in_a_round(runs, seed):
    """A plain loop, over rounds with several gathers, of all workers and of some."""
    n, rng, ledger = 5, np.random.default_rng(seed), Ledger(5, runs)
    largest = np.zeros(runs, np.int64)
    for _ in range(40):
        of_round = np.zeros(runs * n, np.int64)
        for _ in range(rng.integers(4)):
            some = np.sort(rng.integers(runs * n, size=rng.integers(1, 2 * n)))  # some twice
            clients = None if rng.random() < 0.3 else some
            payload = rng.integers(1, 100, runs * n if clients is None else some.size)
            ledger.up(payload, payload, -(-payload // 8), clients=clients)
            np.add.at(of_round, slice(None) if clients is None else some, payload)
        ledger.end_round()
        largest += of_round.reshape(runs, n).max(axis=1)
        assert ledger.counts[:, BITS_UP_MAX].tolist() == largest.tolist()


DCGD = {"name": "dcgd", "stepsize": 0.1}
SENT = [  # bits of a message, and how many of 11 workers send one in a round
    ({"name": "bernoulli", "p": 0.1}, 32 * 4, range(11)),
    ({"name": "permk"}, 32, [8]),  # 11 mod 4 are idle
]


@pytest.mark.parametrize(("compressor", "bits", "senders"), SENT)
def test_empty_messages_are_not_counted(compressor, bits, senders):
    problem = {"name": "quadratic", "dimension": 4, "noise": 0.1, "workers": 11}
    tables = {"problem": problem, "method": DCGD, "compressor": compressor, "run": {"rounds": 30}}
    c = run_tables(tables, keep=True).columns
    assert np.array_equal(c["messages_up"], c["bits_up"] / bits)
    steps = np.diff(c["messages_up"])
    assert set(steps) <= {*senders} and steps.min() == senders[0]


def test_a_length_that_crosses_is_a_message():
    """QSGD's lengths are known to the sender alone: each worker sends 32 bits at least."""
    c = run_tables(table(DCGD, {"name": "qsgd", "s": 5}, rounds=4), keep=True).columns
    assert np.array_equal(c["messages_up"], 6 * c["round"])
    assert (c["framing_bits_up"] >= 32 * c["messages_up"]).all()


def test_a_length_that_does_not_fit_its_32_bits_is_one_line():
    assert lengths_of(np.array([0, 2**32 - 1])).tolist() == [0, 2**32 - 1]
    with pytest.raises(InputError, match=r"^a message takes 4\.29 GB; allowed: below 4\.29 GB"):
        lengths_of(np.array([1, 2**32]))


@pytest.mark.parametrize("exchange", ["send", "broadcast"])
def test_what_the_server_encodes_is_no_time_of_a_client(exchange, monkeypatch):
    star, seen = network(3), []
    monkeypatch.setattr(Clock, "to", lambda clock, phase: seen.append(phase))
    getattr(star, exchange)(np.ones(5))
    assert phases.SERVER in seen and phases.ENCODE not in seen


def test_what_a_network_does_not_send_is_no_time_of_a_method(monkeypatch):
    """What all ranks learn of flags, and what bad workers know of the good ones."""
    star, seen = network(3), []
    star.attack = Attack("ipm", share=0.4)

    def spied(exchange, *args):
        seen.append(star.clock.phase)
        return exchange(*args)

    for name in ("all_workers", "sum_over_workers"):
        monkeypatch.setattr(star, name, partial(spied, getattr(star, name)))
    star.compress(star._identity(5), np.ones((3, 5)))
    star.flags(np.array([True, False, True]))
    assert set(seen) == {EVALUATE} and len(seen) >= 2


def test_ranks_wait_for_what_a_network_does_not_charge(monkeypatch):
    """It interrupts a phase in which ranks work at the same time, or none."""
    star = network(3)
    monkeypatch.setattr(star, "_observers", [Observer()])
    monkeypatch.setattr(Observer, "up", lambda *_: sleep(0.01))
    monkeypatch.setattr(Observer, "down", lambda *_: sleep(0.01))
    before = star.clock.seconds[EVALUATE]
    star.compress(star._identity(5), np.ones((3, 5)))
    assert star.clock.phase == phases.COMPRESS and star.clock.delayed >= 0.01
    star.broadcast(np.ones(5), star._identity(5))
    assert star.clock.seconds[EVALUATE] - before >= star.clock.delayed + 0.01


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
    monkeypatch.setattr(host, "PACKAGE", tmp_path)
    monkeypatch.setattr(host, "source", host.source.__wrapped__)
    sources = {host.software()["mpisim"]}
    for name in ("__init__.py", "methods.toml"):
        (tmp_path / name).write_text("__version__ = 1")
        sources.add(host.software()["mpisim"])
    assert len(sources) == 3


@pytest.fixture
def seen(monkeypatch):
    """The facts that ranks compare."""
    facts = {}
    target = "mpisim.runs.setup.require_consistent"
    monkeypatch.setattr(target, lambda comm, given: facts.update(given))
    return facts


def test_a_set_up_compares_experiment_and_data(seen):
    set_up(table({"name": "gd", "stepsize": 0.1}, rounds=1))
    assert "sha256:" in seen["data"] and seen["problem.data"] == "'sample'"
    assert len(seen["module mpisim.compressors.base"]) == 12  # and so of a plugin's modules
    assert seen["run.rounds"] == "1" and seen["method.stepsize"] == "0.1"
    assert not processor.facts().keys() & seen.keys()  # the bits are the same on any


@pytest.mark.parametrize("tied", [LeastSquares, RandK])
def test_what_is_tied_to_the_processor_needs_the_same_on_all_ranks(seen, monkeypatch, tied):
    """PyTorch, say, or a plugin that uses BLAS: a problem, or a compressor inside another."""
    monkeypatch.setattr(tied, "portable", False)
    inner = {"name": "smooth", "inner": {"name": "randk", "k": 3}}
    set_up(table(DCGD, inner, problem={"name": "least-squares"}))
    assert processor.facts().items() <= seen.items()
    assert not Torch.portable
