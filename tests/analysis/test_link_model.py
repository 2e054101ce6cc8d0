"""Modelled seconds of a network, by hand, and who sent in a run, drawn once more from its log."""

import dataclasses
import math

import numpy as np
import pytest

from mpisim.analysis.fleet_rounds import rounds_of, who_sent
from mpisim.analysis.fleet_seconds import seconds as fleet_seconds
from mpisim.analysis.link_model import ModelledSeconds, Traffic, seconds
from mpisim.analysis.link_model import traffic as traffic_of
from mpisim.analysis.verify import checks
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import Links, on_wire, parse
from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators import ESTIMATORS, estimator
from mpisim.runs.log.reader import read
from tests.helpers import columns, run_tables
from tests.methods import loops
from tests.methods.loops import SEED, N


def wire(bits, messages=1):
    """Bits on Ethernet: an envelope of 22 bytes a message, 66 a packet of up to 1448 bytes."""
    length = bits / messages / 8 + 22
    return 8 * messages * (length + 66 * math.ceil(length / 1448))


@pytest.mark.parametrize(
    ("text", "network"),
    [
        *(("100mbit,1ms", Links(1e8, 1e8, 1e-3)), ("unlimited,2s", Links(latency=2.0))),
        *(("1.5Gbit, ranks", Links(1.5e9, 1.5e9, ranks=True)), ("64kbit/unlimited", Links(64e3))),
        ("10mbit/1gbit,50us,shared", Links(1e7, 1e9, 5e-5, shared=True)),
        ("10mbit,shared,ranks,bucket", Links(1e7, 1e7, shared=True, ranks=True, bucket=True)),
    ],
)
def test_text_of_a_network(text, network):
    assert parse(text) == network
    assert parse(str(network)) == network


def traffic(rounds, up, down=0, most=0, messages=0, alone=0.0, workers=(0, 2, 1)):
    """Rows after so many rounds, each of ``alone`` seconds; all other numbers are totals, too."""
    k = np.array(rounds)
    columns = (np.broadcast_to(column, k.shape) for column in (up, down, most))
    return Traffic(k, alone * k, *columns, np.array(workers), np.array(messages))


# Two rows, after 1 and 3 rounds of 3 workers: each sends 1000, then 600, 400 and 200 bits.
SMALL = traffic([1, 3], [3000, 5400], [2400, 7200], [1000, 2200], [3, 9], alone=0.5)


@pytest.mark.parametrize(
    ("network", "wires"),
    [  # a link for each worker, or one of the server that all share
        (Links(100.0, 50.0, 0.25), [wire(1000), wire(600)]),
        (Links(100.0, 50.0, 0.25, shared=True), [wire(3000, 3), wire(1200, 3)]),
    ],
)
def test_links_of_workers_and_of_the_server(network, wires):
    """0.25 s each way, and 800 bits to each worker."""
    back = 0.5 + 2 * 0.25 + (3 if network.shared else 1) * wire(800) / 50
    first, second = (back + bits / 100 for bits in wires)
    result = seconds(network, SMALL)
    assert result == pytest.approx([first, first + 2 * second], rel=1e-14)


@pytest.mark.parametrize(
    ("workers", "shared", "up", "hosts"),
    [
        ((0, 2, 1), False, 2000, 1),  # the busiest host has two of the three workers
        ((0, 2, 1), True, 3000, 2),
        ((1, 1, 1), False, 1000, 1),  # the server's own worker sends over no link
        ((1, 1, 1), True, 2000, 2),
    ],
)
def test_workers_of_a_rank_on_one_host(workers, shared, up, hosts):
    network = Links(100.0, 50.0, 0.125, shared, ranks=True)
    expected = 0.5 + 2 * 0.125 + wire(up, hosts) / 100 + hosts * wire(800) / 50
    case = SMALL._replace(workers=np.array(workers))
    assert seconds(network, case)[0] == pytest.approx(expected, rel=1e-14)


def large(alone):
    """Rows of 1 and of 3 rounds; each of 3 workers sends 20,000 bits and gets 40,000."""
    k = np.array([1, 3])
    return traffic(k, 60_000 * k, 120_000 * k, 20_000 * k, 3 * k, alone)


def test_what_a_bucket_holds_passes_at_once_and_refills_at_the_rate_of_its_link():
    # 1600 bytes and 125 us: 12,800 + 125 bits at 1 Mbit/s
    network = Links(1e6, 1e6, shared=True, bucket=True)
    a_round = 0.5 + (3 * wire(20_000) + 3 * wire(40_000) - 2 * (12_800 + 125)) / 1e6
    result = seconds(network, large(0.5))
    assert result == pytest.approx([a_round, 3 * a_round], rel=1e-14)
    # all of them: a round takes its own time
    within = Links(1e6, np.inf, bucket=True)
    assert seconds(within, SMALL) == pytest.approx([0.5, 1.5], rel=1e-14)
    # 10 kbit/s and 1 Gbit/s: a round takes what its bits take to pass, not less
    result = seconds(Links(1e9, 1e4, bucket=True), large(1e-9))
    assert result == pytest.approx(np.array([1, 3]) * wire(40_000) / 1e4, rel=1e-9)


@pytest.mark.parametrize("ranks", [False, True])
def test_idle_workers_pay_nothing(ranks):
    """Bernoulli: of three workers, two, none and one send; the rows are rounds, or all in one."""
    sent, most, messages = [0, 2000, 2000, 3000], [0, 1000, 1000, 2000], [0, 2, 2, 3]
    every = traffic(range(4), sent, range(4), most, messages, workers=(0, 1, 1, 1))
    shared = seconds(Links(up=100.0, latency=0.25, shared=True, ranks=ranks), every)
    a_message = wire(1000) / 100
    assert np.diff(shared) == pytest.approx([2 * a_message + 0.5, 0.25, a_message + 0.5])
    if not ranks:
        alone = seconds(Links(up=100.0), every)
        assert np.diff(alone) == pytest.approx([a_message, 0, a_message])
    last = traffic([0, 3], [0, 3000], [0, 3], [0, 2000], [0, 3], workers=(0, 1, 1, 1))
    result = seconds(Links(up=100.0, shared=True, ranks=ranks), last)
    assert result[-1] == pytest.approx(3 * a_message)


EXTRA = 8 * (22 + 66)  # bits of a message that fits a packet


def test_seconds_of_a_log(make_log):
    """The hand-made log: 5 workers, round 0 holds 4000 bits each, then 320 + 8 up, 4000 + 8 down;
    phase i of 8 takes i ms a round."""
    log = read(make_log())
    result = ModelledSeconds("seconds", True, links=parse("1mbit,2ms")).values(log)
    start = (4000 + EXTRA) / 1e6
    alone = 1e-3 * sum(range(1, 9))
    a_round = alone + 2 * 2e-3 + ((320 + 8) + (4000 + 8) + 2 * EXTRA) / 1e6
    # the hand-made bits_up_max leaves out what was sent ahead of round 0
    assert result == pytest.approx(a_round * np.arange(51), rel=1e-9)
    shared = ModelledSeconds("seconds", True, links=parse("1mbit,shared")).values(log)
    a_round = alone + 5 * (320 + 8 + 4000 + 8 + 2 * EXTRA) / 1e6
    assert shared == pytest.approx(5 * start + a_round * np.arange(51), rel=1e-9)


@pytest.mark.parametrize("every", [1, 10])
def test_a_sender_pays_the_framing_of_its_own_messages(every, make_log):
    """Two of the five workers send in each round; the hand-made log has 8 bits for each message."""
    k = np.arange(51)
    numbers = {"messages_up": 2 * k, "framing_bits_up": 2 * 8 * k}
    log = read(make_log(columns=numbers))
    rows = {name: values[::every] for name, values in log.columns.items()}
    log = dataclasses.replace(log, columns=rows)
    framing = traffic_of(log).bits_up_max - log.column("bits_up_max")
    assert framing == pytest.approx(8 * k[::every], rel=1e-12)


LINKS = ["1mbit/4mbit,10ms", "300kbit/1mbit,40ms", "50kbit/2mbit,1ms", "2mbit,300ms"]
KEYS = {"links": LINKS, "devices": [1.0, 3.0, 0.5, 2.0, 8.0], "seconds": 1e-3}
RANDK = {"name": "randk", "k": 20}
METHODS = {
    "fedavg": {"local_steps": 2, "participants": 3},
    "pp-marina": {"p": 0.3, "participants": 4},
    "diana": {"alpha": 0.4},
}


def log_of(tmp_path, name, keys, compressor=RANDK, fleet=None, **run):
    tables = loops.tables({"name": name} | keys, compressor, rounds=30, **run)
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.h5"
    run_tables(tables | ({"fleet": fleet} if fleet else {}), path)
    return path


def modelled(path, keys=KEYS, seed=1):
    """Seconds of the clients alone: a server's seconds are none."""
    log = read(path)
    for name in log.columns:
        if name.startswith("time_"):
            log.columns[name] = np.zeros(log.rows)
    fleet = Fleet(**keys)
    return fleet_seconds(rounds_of(log, fleet), fleet, seed).seconds


@pytest.mark.parametrize(
    ("name", "keys", "rounds"),
    [
        *((name, keys, 31) for name, keys in METHODS.items()),
        ("pp-marina", {"p": 0.3, "participants": N}, 31),
        ("dasha", {"start": "zero"}, 2),  # nothing is sent in the first; the row is the computing's
    ],
)
def test_seconds_after_the_fact_are_those_of_a_simulated_run(name, keys, rounds, tmp_path):
    """DASHA computes a second gradient on a clock, as a client may have been away."""
    plain = log_of(tmp_path, name, keys)
    timed = log_of(tmp_path, name, keys, fleet=KEYS | {"simulate": True})
    expected = columns(timed)["simulated_seconds"][:rounds]
    assert modelled(plain)[:rounds] == pytest.approx(expected, rel=1e-9)
    # the run's participants are no draw of the fleet
    assert np.array_equal(modelled(plain, seed=2), modelled(plain, seed=1))


@pytest.mark.parametrize("name", ["fedavg", "pp-marina"])
def test_a_copy_of_a_method_is_modelled_as_the_method(name, tmp_path):
    """Also where its plugin is not loaded."""
    path = log_of(tmp_path, name, METHODS[name])
    expected = modelled(path)
    estimator("copy")(type("Copy", (ESTIMATORS[name],), {}))
    keys = {"estimator": "copy", "optimizer": "gd"} | METHODS[name]
    copied = log_of(tmp_path, "copy+gd", keys)
    del ESTIMATORS["copy"]
    assert modelled(copied) == pytest.approx(expected, rel=1e-12)
    log, copy = read(path), read(copied)
    assert traffic_of(copy).receivers == traffic_of(log).receivers
    assert who_sent(copy).who(7).tolist() == who_sent(log).who(7).tolist()
    for one in (log, copy):
        assert not [check for check in checks(one) if "totals" in check.text and check.problems]


def test_idle_clients_of_a_compressor(tmp_path):
    p = 0.4
    path = log_of(tmp_path, "dcgd", {}, {"name": "bernoulli", "p": p})
    rows, (who, several) = columns(path), who_sent(read(path))
    d = int(read(path).attrs["dimension"])
    up, down = (on_wire(np.array([bits]), 1)[0] for bits in (64.0 * d, 64.0 * d))
    c, m = Fleet(**KEYS).clients(np.arange(N)), rows["oracle_calls"][-1] / 30 / N
    taken, now = 2 * c.latency + up / c.up + down / c.down + m * 1e-3 * c.factor, [0.0]
    for k in range(30):
        sends = Draw(Streams(SEED), "up", k, 0, N).uniforms(1)[:, 0] < p
        assert np.array_equal(who(k), np.flatnonzero(sends))
        silent = taken - c.latency - up / c.up  # where nobody sends, all have computed
        now.append(now[-1] + (taken[sends] if sends.any() else silent).max())
    assert several.max() == 1 and np.diff(rows["messages_up"]).min() == 0
    assert modelled(path) == pytest.approx(now, rel=1e-9)
    end = log_of(tmp_path, "dcgd", {}, {"name": "bernoulli", "p": p}, log_every=30)
    alone = modelled(end, {"links": "unlimited", "seconds": 1e-3})[-1]  # of all rounds in one row
    assert alone == pytest.approx(30 * m * 1e-3)


def test_a_row_with_a_message_in_several_rounds_is_not_silent(tmp_path):
    compressor = {"name": "bernoulli", "p": 0.02}
    path = log_of(tmp_path, "marina", {"p": 0.01}, compressor, log_every=5)
    messages = np.diff(columns(path)["messages_up"], prepend=0)
    assert 1 in messages and 0 in messages  # 1 of 5 rounds: 0.2 a round
    rounds = rounds_of(read(path), Fleet("unlimited", seconds=1.0))
    assert np.array_equal(rounds.silent[1:], messages[1:] == 0)
    assert np.array_equal(rounds.senders[messages == 1], [1] * (messages == 1).sum())


def test_participants_who_have_nothing_to_send_have_computed(tmp_path):
    path = log_of(tmp_path, "fedavg", METHODS["fedavg"], {"name": "bernoulli", "p": 0.3})
    assert {0, 1} < set(np.diff(columns(path)["messages_up"]))
    taken = modelled(path, {"links": "unlimited", "seconds": 1.0})
    assert taken == pytest.approx(columns(path)["oracle_calls"] / 3)
    late = Fleet("1kbit/unlimited", seconds=0.0, deadline=0.5)  # all messages are
    assert fleet_seconds(rounds_of(read(path), late), late).left_out[-1] == 1


SCAFFOLD = "scaffold", {"local_steps": 2}, 2, False
FEDNL = "fednl-pp", {"hessian": {"name": "topk", "k": 5}}, 3, True  # its start is of all clients


@pytest.mark.parametrize("r", [2, 3, 4])  # also where messages are as many as clients, or more
@pytest.mark.parametrize(("name", "keys", "several", "start"), [SCAFFOLD, FEDNL])
def test_a_client_that_sends_several_messages_is_one(name, keys, several, start, r, tmp_path):
    path = log_of(tmp_path, name, keys | {"participants": r})
    who, messages = who_sent(read(path))
    assert messages.tolist() == [0, 0 if start else several, *[several] * 29]
    sent = np.diff(columns(path)["messages_up"]).tolist()
    assert sent == [2 * N if start else several * r, *[several * r] * 29]
    for k in (0, 7):
        assert who(k).tolist() == Draw(Streams(SEED), "sample", k, 0, 1).subsets(N, r)[0].tolist()
    slow = {"links": ["1gbit", "1gbit", "1gbit", "1kbit"], "seconds": 0.0}
    waits = np.diff(modelled(path, slow)) > 1
    assert waits.tolist() == [3 in who(k).tolist() or start * (k == 0) for k in range(30)]


def test_participants_that_the_log_does_not_say_are_drawn_by_the_fleet(tmp_path):
    for r in (4, N):
        few = log_of(tmp_path, "pp-marina", {"p": 0.3, "participants": r}, log_every=5)
        assert who_sent(read(few)) is None
    log = read(log_of(tmp_path, "fedavg", METHODS["fedavg"]))
    log.columns["messages_up"] = log.columns["messages_up"] * 4 // 3
    assert who_sent(log) is None
